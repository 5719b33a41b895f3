package testkit_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"postern/internal/testkit"
)

const proxyHost = "postern.example.com" // in the examples

// proxied is an example of deploy/proxy, and how it is run.
type proxied struct {
	file    string
	replace func(p proxyPlaces) []string // pairs for [strings.NewReplacer]
	command func(dir, config string) []string
}

// proxyPlaces are what the example gets instead of its own addresses and files.
type proxyPlaces struct {
	listen, server, ops string // host:port
	cert, key, combined string // files
}

var proxies = []proxied{
	{
		file: "nginx.conf",
		replace: func(p proxyPlaces) []string {
			return []string{
				"listen 443", "listen " + p.listen, "127.0.0.1:8080", p.server,
				"/etc/ssl/postern/fullchain.pem", p.cert, "/etc/ssl/postern/privkey.pem", p.key,
			}
		},
		command: func(dir, config string) []string {
			whole := filepath.Join(dir, "whole.conf") // what Debian's nginx.conf has around it
			text := "daemon off; worker_processes 1; pid " + dir + "/pid; error_log stderr;\nevents {}\nhttp { " +
				"access_log off; gzip on;\n" +
				"client_body_temp_path " + dir + "/b; proxy_temp_path " + dir + "/p; fastcgi_temp_path " +
				"" + dir + "/f;\n" +
				"uwsgi_temp_path " + dir + "/u; scgi_temp_path " + dir + "/s;\ninclude " + config + ";\n}\n"
			if err := os.WriteFile(whole, []byte(text), 0o600); err != nil {
				return nil
			}
			return []string{"nginx", "-e", "stderr", "-p", dir, "-c", whole}
		},
	},
	{
		file: "Caddyfile",
		replace: func(p proxyPlaces) []string {
			_, port, _ := net.SplitHostPort(p.listen)
			return []string{
				"postern.example.com {", "{\n admin off\n auto_https off\n default_bind " +
					"127.0.0.1\n}\npostern.example.com:" + port +
					" {\n tls " + p.cert + " " + p.key, "127.0.0.1:8080", p.server,
			}
		},
		command: func(_, config string) []string {
			return []string{"caddy", "run", "--adapter", "caddyfile", "--config", config}
		},
	},
	{
		file: "haproxy.cfg",
		replace: func(p proxyPlaces) []string {
			_, ops, _ := net.SplitHostPort(p.ops)
			return []string{
				"bind :443", "bind " + p.listen, "/etc/ssl/postern/combined.pem", p.combined,
				"server one 10.0.0.11:8080 port 9090", "server one " + p.server + " port " + ops,
				"\tserver two 10.0.0.12:8080 port 9090\n", "", "\tserver three 10.0.0.13:8080 port 9090\n", "",
			}
		},
		command: func(_, config string) []string { return []string{"haproxy", "-db", "-f", config} },
	},
}

// Behind each proxy of deploy/proxy, streams are not held up, a large file is uploaded, pages are shown, and a
// client cannot claim another address.
func TestServerBehindProxies(t *testing.T) {
	t.Parallel()
	for _, p := range proxies {
		t.Run(p.file, func(t *testing.T) {
			t.Parallel()
			k := testkit.Start(t)
			c := k.Workspace("growth")
			c.Link(phone)
			k.Stop()
			k.Config.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			k.Config.BaseURL = "https://" + proxyHost
			k.Config.Addr = "127.0.0.1:" + testkit.FreePort(t)
			k.Boot()
			client := p.run(t, k)
			checkProxiedStream(t, k, c, client)
			checkProxiedUpload(t, c, client)
			checkProxiedPage(t, k, client)
		})
	}
}

// run starts the proxy and returns a client that reaches it as postern.example.com.
func (p proxied) run(t *testing.T, k *testkit.Kit) *http.Client {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "proxy", p.file))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pool := writeCertificate(t, cert, key, 1)
	at := proxyPlaces{
		listen: "127.0.0.1:" + testkit.FreePort(t),
		server: k.Config.Addr, ops: strings.TrimPrefix(k.OpsURL(), "http://"),
		cert: cert, key: key, combined: filepath.Join(dir, "combined.pem"),
	}
	joinFiles(t, at.combined, cert, key)
	config := filepath.Join(dir, p.file)
	changed := strings.NewReplacer(p.replace(at)...).Replace(string(text))
	if err := os.WriteFile(config, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	startProxy(t, p.command(dir, config), dir)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, at.listen)
		},
	}}
	t.Cleanup(client.CloseIdleConnections)
	testkit.Eventually(t, "the proxy passes requests on", func() (bool, any) {
		res, err := client.Get("https://" + proxyHost + "/v1/openapi.json") //nolint:noctx // the test ends with it
		if err != nil {
			return false, err
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK, res.Status
	})
	return client
}

// startProxy runs a proxy until the test ends.
func startProxy(t *testing.T, args []string, dir string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // ended below
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // its status is that of an interrupt
		if t.Failed() {
			t.Logf("the proxy printed\n%s", out.String())
		}
	})
}

// joinFiles writes files one after the other into another one.
func joinFiles(t *testing.T, to string, from ...string) {
	t.Helper()
	var all []byte
	for _, name := range from {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	if err := os.WriteFile(to, all, 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkProxiedStream reads an event from a stream, as it is recorded.
func checkProxiedStream(t *testing.T, k *testkit.Kit, c *testkit.Client, client *http.Client) {
	t.Helper()
	req := proxiedRequest(t, http.MethodGet, "/v1/events/stream?type=message.received", c, http.NoBody)
	req.Header.Set("Accept", "text/event-stream")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := k.Vendor.Send(t.Context(), phone, customer, "through the proxy"); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), "through the proxy") {
			return
		}
	}
	t.Error("the stream ended without the event")
}

// checkProxiedUpload uploads a file that is larger than the buffers and the default limits of the proxies.
func checkProxiedUpload(t *testing.T, c *testkit.Client, client *http.Client) {
	t.Helper()
	file := bytes.Repeat([]byte("0123456789abcdef"), 8<<20/16)
	req := proxiedRequest(t, http.MethodPost, "/v1/media?filename=large.txt", c, bytes.NewReader(file))
	req.Header.Set("Content-Type", "text/plain")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		t.Errorf("the upload is answered with %s", res.Status)
	}
}

// checkProxiedPage reads the page to sign in, and claims another address.
func checkProxiedPage(t *testing.T, k *testkit.Kit, client *http.Client) {
	t.Helper()
	req := proxiedRequest(t, http.MethodGet, "/signin", nil, http.NoBody)
	req.Header.Set("X-Forwarded-For", "192.0.2.77")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		t.Errorf("the page is answered with %s", res.Status)
	}
	if strings.Contains(k.Log.String(), "192.0.2.77") {
		t.Error("the server believes the address that the client claims")
	}
}

func proxiedRequest(t *testing.T, method, path string, c *testkit.Client, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "https://"+proxyHost+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if c != nil {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	return req
}
