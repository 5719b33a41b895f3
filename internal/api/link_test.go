package api_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"
	"time"

	"rsc.io/qr"

	"postern/internal/gateway"
	"postern/internal/postern"
)

func TestPicturesOfACode(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	id := mine.device("d", postern.Unlinked)
	target := "/v1/devices/" + string(id) + "/link"
	mine.do("GET", target+"/qr.png", "").want(http.StatusNotFound, postern.NotFound)
	mine.do("POST", target, "").want(http.StatusCreated, "")
	p := mine.do("GET", target+"/qr.png", "").want(http.StatusNotFound, postern.NotFound)
	if !strings.Contains(p.Detail, "try again") {
		t.Errorf("before the first code: %s", p.Detail)
	}
	text := "2@" + strings.Repeat("AbC/+9", 39) + ",x,y,z" // as long as the vendor's
	mine.showCode(id, text, time.Now().Add(time.Minute))
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		t.Fatal(err)
	}

	a := mine.do("GET", target+"/qr.png", "")
	a.want(http.StatusOK, "")
	if a.Header().Get("Content-Type") != "image/png" || a.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("headers of the PNG: %v", a.Header())
	}
	img, err := png.Decode(bytes.NewReader(a.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	const quiet, scale = 4, 8
	if got, want := img.Bounds().Dx(), (code.Size+2*quiet)*scale; got != want {
		t.Errorf("the PNG is %d wide, want %d", got, want)
	}
	same(t, "PNG", code, func(x, y int) bool { return dark(img, (x+quiet)*scale+scale/2, (y+quiet)*scale+scale/2) })

	a = mine.do("GET", target+"/qr.svg", "")
	a.want(http.StatusOK, "")
	if a.Header().Get("Content-Type") != "image/svg+xml" || a.Header().Get("Content-Security-Policy") == "" ||
		a.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("headers of the SVG: %v", a.Header())
	}
	drawn := drawnBy(t, a.Body.Bytes())
	same(t, "SVG", code, func(x, y int) bool { return drawn[[2]int{x + quiet, y + quiet}] })
}

// same compares a picture with the code, and its margin with white.
func same(t *testing.T, what string, code *qr.Code, black func(x, y int) bool) {
	t.Helper()
	for y := -4; y < code.Size+4; y++ {
		for x := -4; x < code.Size+4; x++ {
			if black(x, y) != code.Black(x, y) {
				t.Fatalf("%s differs from the code at %d,%d", what, x, y)
			}
		}
	}
}

func dark(img image.Image, x, y int) bool {
	r, _, _, _ := img.At(x, y).RGBA()
	return r < 0x8000
}

// drawnBy reads the squares that the one path of the SVG fills.
func drawnBy(t *testing.T, svg []byte) map[[2]int]bool {
	t.Helper()
	var doc struct {
		XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
		Path    struct {
			D string `xml:"d,attr"`
		} `xml:"path"`
	}
	if err := xml.Unmarshal(svg, &doc); err != nil {
		t.Fatal(err)
	}
	drawn := map[[2]int]bool{}
	for run := range strings.SplitSeq(strings.TrimSuffix(doc.Path.D, "z"), "z") {
		var x, y, n, back int
		if _, err := fmt.Sscanf(run, "M%d %dh%dv1h-%d", &x, &y, &n, &back); err != nil || n != back {
			t.Fatalf("run %q: %v", run, err)
		}
		for i := range n {
			drawn[[2]int{x + i, y}] = true
		}
	}
	return drawn
}

func TestSandboxRoutesOnTheRealNetwork(t *testing.T) {
	t.Parallel()
	mine := newServerWith(t, nil).tenant("starter")
	id := string(mine.device("d", postern.Unlinked))
	for _, r := range [][3]string{
		{"POST", "scan", ""},
		{"POST", "inbound", `{"from":"+15551234567","body":"x"}`},
		{"POST", "faults", `{"kind":"ban"}`},
		{"GET", "phone", ""},
	} {
		mine.do(r[0], "/v1/sandbox/devices/"+id+"/"+r[1], r[2]).want(http.StatusNotFound, postern.SandboxOff)
	}
	if a := mine.do("GET", "/v1/devices/"+id, ""); a.member("mode") != "live" {
		t.Errorf("mode: %s", a.Body)
	}
}

func TestSandboxScan(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	id := linking(mine)
	a := mine.do("POST", "/v1/sandbox/devices/"+id+"/scan", `{"phoneNumber":"15550001111"}`)
	a.want(http.StatusOK, "")
	if got := a.Body.String(); got != `{"phoneNumber":"+15550001111"}` {
		t.Errorf("scan: %s", got)
	}
	a = mine.do("GET", "/v1/sandbox/devices/"+id+"/phone", "")
	a.want(http.StatusOK, "")
	if got := a.Body.String(); got != `{"data":[]}` {
		t.Errorf("phone: %s", got)
	}
}

// Anyone who sees the code can link a phone of their own, so a key that may only read sees the
// attempt without it.
func TestReadOnlyKeySeesNoCode(t *testing.T) {
	t.Parallel()
	srv, mine, id := serveTest(t)
	reader := mine.with(mine.newKey(gateway.NewKey{Scopes: []postern.Scope{postern.DevicesRead}}))
	target := "/v1/devices/" + string(id) + "/link"
	watching := follow(t, reader, srv, id)
	mine.showCode(id, "2@secret", time.Now().Add(time.Minute))
	if a := mine.do("GET", target, ""); a.member("qr") != "2@secret" {
		t.Fatalf("the writer sees %s", a.Body)
	}
	a := reader.do("GET", target, "")
	a.want(http.StatusOK, "")
	if a.member("qr") != "" || a.member("qrExpiresAt") != "" || strings.Contains(a.Body.String(), "secret") {
		t.Errorf("the reader sees %s", a.Body)
	}
	reader.do("GET", target+"/qr.svg", "").want(http.StatusForbidden, postern.MissingScope)
	reader.do("GET", target+"/qr.png", "").want(http.StatusForbidden, postern.MissingScope)
	mine.do("DELETE", target, "").want(http.StatusNoContent, "")
	watching.wants("ended", "", postern.LinkFailed, "canceled")
	watching.wantsEnd()

	mine.do("POST", target, `{"method":"code","phoneNumber":"+15550001111"}`).want(http.StatusCreated, "")
	mine.showCode(id, "ABCD1234", time.Now().Add(time.Minute))
	if a := mine.do("GET", target, ""); a.member("pairingCode") != "ABCD1234" {
		t.Fatalf("the writer sees %s", a.Body)
	}
	if a := reader.do("GET", target, ""); a.member("pairingCode") != "" || a.member("method") != "code" {
		t.Errorf("the reader sees %s", a.Body)
	}
}
