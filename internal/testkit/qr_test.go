package testkit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
)

// TestQRCodesCanBeScanned reads the images with a real QR reader.
func TestQRCodesCanBeScanned(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("starter")
	var d postern.Device
	c.Call("POST", "/v1/devices", map[string]any{"name": "support"}, 201, &d)
	path := "/v1/devices/" + string(d.ID) + "/link"
	if a := c.Do("GET", path+"/qr.png", nil); a.Status != 404 {
		t.Errorf("no attempt: %d %s, want 404", a.Status, a.Body)
	}
	c.Call("POST", path, nil, 201, nil)
	var l postern.Link
	testkit.Eventually(t, "a code", func() (bool, any) {
		c.Call("GET", path, nil, 200, &l)
		return l.QR != "", l.Status
	})
	for kind, mime := range map[string]string{"png": "image/png", "svg": "image/svg+xml"} {
		a := c.Do("GET", path+"/qr."+kind, nil)
		if a.Status != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), mime) || a.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("%s: %d %s %s", kind, a.Status, a.Header.Get("Content-Type"), a.Header.Get("Cache-Control"))
		}
		if got := scan(t, kind, a.Body); got != string(l.QR) {
			t.Errorf("the reader saw %q in the %s, want %q", got, kind, l.QR)
		}
	}
}

func scan(t *testing.T, kind string, image []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "qr."+kind)
	if err := os.WriteFile(file, image, 0o600); err != nil {
		t.Fatal(err)
	}
	if kind == "svg" {
		file = file + ".png"
		run(t, "rsvg-convert", "--output", file, strings.TrimSuffix(file, ".png"))
	}
	return strings.TrimSpace(run(t, "zbarimg", "--quiet", "--raw", file))
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return string(out)
}
