package egress

import (
	"io"
	"strings"
	"testing"
)

func TestCheckURLRefusesWhatMayNotBeRegistered(t *testing.T) {
	t.Parallel()
	c := NewClient(Options{})
	for _, url := range []string{
		"", "hooks.example.com", "/hook", "http://example.com", "ftp://example.com", "https:///x", "https://",
		"https:example.com", "javascript:alert(1)", "file:///etc/passwd",
		"gopher://example.com",
		"https://user@example.com", "https://user:pass@example.com", "https://@example.com/",
		"https://example.com/#top", "https://example.com/#",
		"https://example.com:0", "https://example.com:65536", "https://example.com:-1", "https://example.com:",
		"https://example.com:http", "https://exa mple.com", "https://example..com",
		"https://.example.com",
		"https://localhost", "https://LOCALHOST", "https://localhost.", "https://localhost:8443/x",
		"https://app.localhost",
		"https://2130706433", "https://0x7f000001", "https://0x7f.1", "https://0x7f.0x0.0x0.0x1", "https://0177.0.0.1",
		"https://017700000001", "https://127.1", "https://127.0.1", "https://127.0.0.1.", "https://0",
		"https://example.0x",
		"https://①②⑦.0.0.1", "https://127。0。0。1", "https://ⓔxample.com", "https://bücher.example",
		"https://example.com/?a b", "https://example.com/?x HTTP/1.1", "https://example.com/?q=é",
		"https://example.com/ü", "https://127.0.0.1%2f@example.com", "https://%31%32%37.0.0.1",
		"https://[fe80::1%25eth0]", "https://[::1", "https://[::1]x", "https://[127.0.0.1]",
		"https://[example.com]", "https://[1:2]",
		"https://exam\tple.com", "https://example.com/\x00", "https://example.com\\@evil.com",
		"https://" + strings.Repeat("a",
			maxURL),
	} {
		err := c.CheckURL(url)
		if err == nil {
			t.Errorf("CheckURL(%q) allows it", url)
			continue
		}
		if host := strings.TrimPrefix(url, "https://"); len(host) > 8 &&
			!strings.Contains("https://hooks.example.com/postern", host) &&
			strings.Contains(err.Error(),
				host) {
			t.Errorf("the refusal of %q repeats it: %v", url, err)
		}
	}
}

func TestCheckURLAllowsWhatIsRight(t *testing.T) {
	t.Parallel()
	c := NewClient(Options{})
	for _, url := range []string{
		"https://example.com", "https://hooks.example.com/a/b?c=d&e=%20f", "https://example.com:8443/x",
		"https://EXAMPLE.com.", "https://xn--bcher-kva.example", "https://8.8.8.8/hook",
		"https://[2606:4700:4700::1111]:443/",
		"https://my_app.example.com", "https://1password.com", "https://a.b1", "HTTPS://example.com",
	} {
		if err := c.CheckURL(url); err != nil {
			t.Errorf("CheckURL(%q) = %v", url, err)
		}
	}
	dev := NewClient(Options{AllowPrivate: true})
	for _, url := range []string{
		"http://127.0.0.1:8080/x", "http://localhost:9000", "https://[::1]:9",
		"http://10.0.0.1",
	} {
		if err := dev.CheckURL(url); err != nil {
			t.Errorf("with private addresses allowed CheckURL(%q) = %v", url, err)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	c := NewClient(Options{})
	for _, s := range []string{
		"https://example.com/x?y#z", "https://[::ffff:7f00:1]:443", "https://0x7f.1",
		"https://a%00b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if c.CheckURL(raw) != nil {
			return
		}
		u, err := c.allowed(raw)
		if err != nil {
			t.Fatalf("%q is allowed but cannot be read: %v", raw, err)
		}
		if err := new(exchange).request(t.Context(), u, nil, nil).Write(io.Discard); err != nil {
			t.Errorf("%q is allowed but makes no request: %v", raw, err)
		}
	})
}
