package vendorsim_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
)

// uploaded uploads a file as a client does, and returns the message that carries it.
func (c *client) uploaded(data []byte) *waE2E.ImageMessage {
	c.t.Helper()
	up, err := c.wa.Upload(c.t.Context(), bytes.Clone(data), whatsmeow.MediaImage)
	if err != nil {
		c.t.Fatal(err)
	}
	return &waE2E.ImageMessage{
		URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256,
		FileSHA256: up.FileSHA256, FileLength: &up.FileLength, Mimetype: new("image/png"),
	}
}

func TestMediaIsStoredAndHandedOut(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"", t.TempDir()} {
		v := openVendor(t, dir)
		a := link(t, v, alice)
		want := bytes.Repeat([]byte("media "), 10_000)
		msg := a.uploaded(want)
		if !strings.Contains(msg.GetDirectPath(), "?") {
			t.Errorf("the path %q has no parameters to append to", msg.GetDirectPath())
		}
		if got, err := a.wa.Download(t.Context(), msg); err != nil || !bytes.Equal(got, want) {
			t.Errorf("downloaded %d bytes, %v, want %d", len(got), err, len(want))
		}
		err := a.wa.DeleteMedia(t.Context(), whatsmeow.MediaImage, msg.GetDirectPath(), msg.GetFileEncSHA256(), "")
		if err != nil {
			t.Error(err)
		}
		if _, err := a.wa.Download(t.Context(), msg); !errors.Is(err, whatsmeow.ErrMediaDownloadFailedWith404) {
			t.Errorf("download of what was deleted: %v, want 404", err)
		}
	}
}

func TestMediaSurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := openVendor(t, dir)
	a := link(t, v, alice)
	msg := a.uploaded([]byte("keep me"))
	a.wa.Disconnect()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(dir, "media", "1.partial")
	if err := os.WriteFile(torn, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	v = openVendor(t, dir)
	again := newClient(t, v, a.device)
	again.connect()
	if got, err := again.wa.Download(t.Context(), msg); err != nil || string(got) != "keep me" {
		t.Errorf("downloaded %q, %v", got, err)
	}
	if _, err := os.Stat(torn); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the upload that was cut off: %v, want no file", err)
	}
}

// TestMediaOverTCPStaysWithTheVendor connects as a gateway does that was given the vendor's URL:
// only the upgrade is redirected, media go where the vendor says.
func TestMediaOverTCPStaysWithTheVendor(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	srv := httptest.NewTLSServer(v.Handler())
	t.Cleanup(srv.Close)
	address := srv.Listener.Addr().String()
	for name, host := range map[string]string{"redirected": address, "intercepted": "web.whatsapp.com"} {
		a := newClient(t, v, newContainer(t).NewDevice())
		upgrade := &http.Client{Transport: toHost{srv.Client().Transport, address, host}}
		a.wa.SetPreLoginHTTPClient(upgrade)
		a.wa.SetWebsocketHTTPClient(upgrade)
		transport := srv.Client().Transport.(*http.Transport).Clone()
		transport.DialContext = func(ctx context.Context, network, to string) (net.Conn, error) {
			if to != address {
				return nil, fmt.Errorf("media leave for %s", to)
			}
			return new(net.Dialer).DialContext(ctx, network, to)
		}
		a.wa.SetMediaHTTPClient(&http.Client{Transport: transport})
		a.link(v, alice)
		msg := a.uploaded([]byte(name))
		if got, err := a.wa.Download(t.Context(), msg); err != nil || string(got) != name {
			t.Errorf("%s: downloaded %q, %v", name, got, err)
		}
		a.wa.Disconnect()
	}
}

// toHost sends requests to an address, with the name of a host.
type toHost struct {
	http.RoundTripper
	address, host string
}

func (h toHost) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = "https", h.address, h.host
	return h.RoundTripper.RoundTrip(r)
}

// call sends a request to the vendor and returns the status and the body of the answer.
func call(t *testing.T, v *vendorsim.Vendor, method, path string, body io.Reader, header ...string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "https://media.vendorsim.invalid"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := v.HTTPClient().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, answer
}

func token(body string) string {
	sum := sha256.Sum256([]byte(body))
	return base64.URLEncoding.EncodeToString(sum[:])
}

func TestUploadIsChecked(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	auth := a.mediaAuth()
	for _, tt := range []struct {
		name, path string
		want       int
	}{
		{"right", "/mms/image/" + token("x") + "?auth=" + auth, http.StatusOK},
		{"no permission", "/mms/image/" + token("x"), http.StatusUnauthorized},
		{"another permission", "/mms/image/" + token("x") + "?auth=" + auth + "0", http.StatusUnauthorized},
		{"another body", "/mms/image/" + token("y") + "?auth=" + auth, http.StatusBadRequest},
		{"no hash", "/mms/image/***?auth=" + auth, http.StatusBadRequest},
		{"no such kind", "/mms/tape/" + token("x") + "?auth=" + auth, http.StatusNotFound},
	} {
		if got, answer := call(t, v, http.MethodPost, tt.path, strings.NewReader("x")); got != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.name, got, answer, tt.want)
		}
	}
	fault(t, v, alice, vendorsim.FaultLogout)
	if got, _ := call(t, v, http.MethodPost, "/mms/image/"+token("x")+"?auth="+auth, strings.NewReader("x")); got != 401 {
		t.Errorf("the permission of an account that is no longer linked: %d, want 401", got)
	}
}

// mediaAuth returns the permission to upload that the client has.
func (c *client) mediaAuth() string {
	c.t.Helper()
	internals := c.wa.DangerousInternals() //nolint:staticcheck // whatsmeow shows the permission only there
	conn, err := internals.RefreshMediaConn(c.t.Context(), true)
	if err != nil {
		c.t.Fatal(err)
	}
	return conn.Auth
}

func TestRangeOfMedia(t *testing.T) {
	t.Parallel()
	v := openVendor(t, t.TempDir())
	path := link(t, v, alice).uploaded(bytes.Repeat([]byte("0123456789"), 100)).GetDirectPath()
	_, whole := call(t, v, http.MethodGet, path, nil)
	status, got := call(t, v, http.MethodGet, path, nil, "Range", "bytes=100-149")
	if status != http.StatusPartialContent || !bytes.Equal(got, whole[100:150]) {
		t.Errorf("range: %d with %d bytes, want 206 with the 50 asked for", status, len(got))
	}
}

// TestLargeMediaUseLittleMemory is not parallel, because it measures what the process allocates.
func TestLargeMediaUseLittleMemory(t *testing.T) {
	const size, allowed = 100 << 20, 16 << 20
	v := openVendor(t, t.TempDir())
	a := link(t, v, alice)
	auth := a.mediaAuth()
	hash := sha256.New()
	if _, err := io.CopyN(hash, zeros{}, size); err != nil {
		t.Fatal(err)
	}
	path := "/mms/video/" + base64.URLEncoding.EncodeToString(hash.Sum(nil)) + "?auth=" + auth
	before := allocated()
	status, answer := call(t, v, http.MethodPost, path, io.LimitReader(zeros{}, size))
	if status != http.StatusOK {
		t.Fatalf("upload: %d %s", status, answer)
	}
	if got := allocated() - before; got > allowed {
		t.Errorf("an upload of %d bytes allocates %d, want at most %d", size, got, allowed)
	}
	before = allocated()
	file, err := v.Upload(alice, vendorsim.TypeVideo, io.LimitReader(zeros{}, size))
	if err != nil {
		t.Fatal(err)
	}
	r, err := v.OpenMedia(file)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); err != nil || n != size {
		t.Errorf("a phone reads %d bytes, %v, want %d", n, err, size)
	}
	if got := allocated() - before; got > allowed {
		t.Errorf("a phone that writes and reads %d bytes allocates %d, want at most %d", size, got, allowed)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	tooMuch := io.LimitReader(zeros{}, size+100)
	if status, _ := call(t, v, http.MethodPost, path, tooMuch); status != http.StatusRequestEntityTooLarge {
		t.Errorf("an upload above the limit: %d, want 413", status)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// zeros is an endless file.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestCloseEndsAnUpload closes a vendor behind a server of the caller, which stays open, while a
// client has stopped in the middle of an upload.
func TestCloseEndsAnUpload(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	begun := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		v.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	body, end := io.Pipe()
	t.Cleanup(func() { _ = end.Close() })
	url := srv.URL + "/mms/image/" + token("x") + "?auth=" + a.mediaAuth()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if res, err := srv.Client().Do(req); err == nil {
			_ = res.Body.Close()
		}
	}()
	<-begun
	closed := make(chan error, 1)
	go func() { closed <- v.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(waitLimit):
		t.Fatal("Close waits for the client")
	}
}

func TestMediaAreNotInTheJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := openVendor(t, dir)
	a := link(t, v, alice)
	data := bytes.Repeat([]byte("x"), 1<<20)
	written(t, v, a, vendorsim.Content{Type: vendorsim.TypeImage, Media: &vendorsim.Media{Data: data}})
	a.sent(&waE2E.Message{ImageMessage: a.uploaded(data)})
	info, err := os.Stat(filepath.Join(dir, "vendor.journal"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 256<<10 {
		t.Errorf("the journal has %d bytes after two files of %d", info.Size(), len(data))
	}
}
