package linkpreview

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func TestFirst(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"see https://example.com/a?b=c#d.":           "https://example.com/a?b=c#d",
		"(http://example.com/x_(y)), then":           "http://example.com/x_(y)",
		"HTTPS://Example.com":                        "HTTPS://Example.com",
		"ftp://example.com and https://example.org/": "https://example.org/",
		"javascript:alert(1) mailto:a@example.com":   "",
		"example.com": "",
		"https://example.com/" + strings.Repeat("a", maxLink): "",
		"": "",
	} {
		if got := First(text); got != want {
			t.Errorf("First(%.60q) = %q, want %q", text, got, want)
		}
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for link, want := range map[string]string{
		"HTTPS://example.com/a#b":  "https://example.com/a",
		"https://example.com/ä b":  "https://example.com/%C3%A4%20b",
		"https://example.com/%zz/": "",
	} {
		if got := Address(link); got != want {
			t.Errorf("Address(%q) = %q, want %q", link, got, want)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	const at = "https://example.com/shop/page"
	for name, tt := range map[string]struct {
		page string
		want Page
	}{
		"open graph": {
			`<!DOCTYPE html><html><head><title>Other</title><meta property="og:title" content=" A &amp; B ">` +
				`<meta property="og:description" content="Two` + "\n" + `lines"><meta property="og:image" content="/a.png#x">`,
			Page{"A & B", "Two lines", "https://example.com/a.png"},
		},
		"no open graph": {
			`<HTML><HEAD><TITLE>Hello &amp;lt;you&gt;</TITLE><META NAME="Description" CONTENT="Text"></HEAD>`,
			Page{"Hello &lt;you>", "Text", ""},
		},
		"latin 1":         {"<html><head><meta charset=iso-8859-1><title>caf\xe9</title>", Page{Title: "café"}},
		"not in the body": {`<html><head></head><body><svg><title>icon</title></svg>`, Page{}},
		"no title":        {"<html><head></head>", Page{}},
		"a picture":       {"\x89PNG\r\n\x1a\n<title>x</title>", Page{}},
		"empty":           {"", Page{}},
		"a huge tag":      {`<html><title>ok</title><meta content="` + strings.Repeat("x", MaxPage), Page{Title: "ok"}},
		"beyond the end":  {"<html>" + strings.Repeat(" ", MaxPage) + "<title>late</title>", Page{}},
		"a long title": {
			"<title>" + strings.Repeat("ä", maxTitle+1), Page{Title: strings.Repeat("ä", maxTitle)},
		},
	} {
		got, err := Read(strings.NewReader(tt.page), at)
		if got != tt.want || (err == nil) != (tt.want != Page{}) || err != nil && !errors.Is(err, ErrNoPage) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, tt.want)
		}
	}
	broken := errors.New("broken")
	if _, err := Read(iotest.ErrReader(broken), at); !errors.Is(err, broken) {
		t.Errorf("a broken page gives %v", err)
	}
}

// FuzzRead reads hostile pages.
func FuzzRead(f *testing.F) {
	f.Add("<html><head><title>a</title><meta property=og:image content='//x/y'>")
	f.Add("<meta charset=utf-16><title>\xff\xfe")
	f.Fuzz(func(t *testing.T, page string) {
		p, err := Read(strings.NewReader(page), "https://example.com/")
		if (err == nil) != (p.Title != "") || !utf8.ValidString(p.Title+p.Description) ||
			strings.ContainsAny(p.Title+p.Description, "\x00\n") {
			t.Errorf("%q is read as %+v, %v", page, p, err)
		}
	})
}
