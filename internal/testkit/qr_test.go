package testkit_test

import (
	"bytes"
	"image"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/qrcode"
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
		if a.Status != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), mime) ||
			a.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("%s: %d %s %s", kind, a.Status, a.Header.Get("Content-Type"), a.Header.Get("Cache-Control"))
		}
		if got := scan(t, kind, a.Body); got != string(l.QR) {
			t.Errorf("the reader saw %q in the %s, want %q", got, kind, l.QR)
		}
	}
}

// The code that a terminal shows is read from a picture of the screen.
func TestQRCodeInATerminalCanBeScanned(t *testing.T) {
	t.Parallel()
	const want = "2@abc,def,ghi,jkl"
	text, err := qrcode.Text(want)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, screen(strings.Split(strings.TrimRight(text, "\n"), "\n"))); err != nil {
		t.Fatal(err)
	}
	if got := scan(t, "png", b.Bytes()); got != want {
		t.Errorf("the reader saw %q, want %q", got, want)
	}
}

// screen draws lines of half blocks, white on black.
func screen(lines []string) image.Image {
	const size = 8
	img := image.NewGray(image.Rect(0, 0, size*len([]rune(lines[0])), 2*size*len(lines)))
	for y, line := range lines {
		for x, r := range []rune(line) {
			for half, lit := range []bool{r == '▀' || r == '█', r == '▄' || r == '█'} {
				if lit {
					draw.Draw(img, image.Rect(x*size, (2*y+half)*size, (x+1)*size, (2*y+half+1)*size), image.White,
						image.Point{}, draw.Src)
				}
			}
		}
	}
	return img
}

func scan(t *testing.T, kind string, picture []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "qr."+kind)
	if err := os.WriteFile(file, picture, 0o600); err != nil {
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
