package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"postern/internal/gateway"
	"postern/internal/media/blob"
	"postern/internal/postern"
	"postern/internal/seal"
)

// picture is a PNG file of one pixel.
const picture = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
	"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"

// form is a body of type multipart/form-data with one part, and its type.
func form(t testing.TB, part, filename, content string) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	h := textproto.MIMEHeader{}
	disposition := `form-data; name="` + part + `"`
	if filename != "" {
		disposition += `; filename="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(filename) + `"`
	}
	h.Set("Content-Disposition", disposition)
	p, err := w.CreatePart(h)
	if err == nil {
		_, err = p.Write([]byte(content))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// keep uploads a file and returns its id.
func (t *tenant) keep(content, filename string) string {
	t.t.Helper()
	target := "/v1/media"
	if filename != "" {
		target += "?filename=" + url.QueryEscape(filename)
	}
	a := t.do("POST", target, content, "Content-Type", "application/octet-stream")
	a.want(http.StatusCreated, "")
	return a.member("id")
}

func TestUploadsComeBackByteForByte(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	every := make([]byte, 70_000)
	for i := range every {
		every[i] = byte(i * i >> 3)
	}
	content := string(every)
	body, kind := form(t, "file", "a.bin", content)
	nameless, nameBy := form(t, "file", "", content)
	for _, tt := range []struct{ name, target, body, kind, filename string }{
		{"as it is", "/v1/media?filename=a.bin", content, "application/octet-stream", "a.bin"},
		{"without a name", "/v1/media", content, "application/octet-stream", ""},
		{"without a type", "/v1/media?filename=a.bin", content, "", "a.bin"},
		{"with an invalid type", "/v1/media?filename=a.bin", content, "x;;", "a.bin"},
		{"as a form", "/v1/media", body, kind, "a.bin"},
		{"as a form with both names", "/v1/media?filename=b.bin", body, kind, "a.bin"},
		{"as a form without a name", "/v1/media?filename=b.bin", nameless, nameBy, "b.bin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := mine.do("POST", tt.target, tt.body, "Content-Type", tt.kind)
			a.t = t
			a.want(http.StatusCreated, "")
			if a.member("sha256") != hashOf(content) || a.member("filename") != tt.filename || a.member("status") != "ready" ||
				a.Header().Get("Location") != "/v1/media/"+a.member("id") {
				t.Errorf("got %s at %s", a.Body, a.Header().Get("Location"))
			}
			file := mine.do("GET", a.Header().Get("Location")+"/content", "")
			if file.Body.String() != content || file.Header().Get("Content-Length") != strconv.Itoa(len(content)) {
				t.Errorf("%d bytes came back with %v", file.Body.Len(), file.Header())
			}
		})
	}
}

func TestTypeOfAFileIsFoundInItsBytes(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	for _, tt := range []struct{ content, declared, want string }{
		{picture, "text/html", "image/png"},
		{"<!DOCTYPE html><script>alert(1)</script>", "image/png", "text/html"},
		{"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>", "image/jpeg", "image/svg+xml"},
		{"\x00\x01\x02", "image/png", "application/octet-stream"},
	} {
		a := mine.do("POST", "/v1/media", tt.content, "Content-Type", tt.declared)
		a.want(http.StatusCreated, "")
		if got := a.member("mimeType"); got != tt.want {
			t.Errorf("%.20q is of type %s, want %s", tt.content, got, tt.want)
		}
		h := mine.do("GET", "/v1/media/"+a.member("id")+"/content", "").Header()
		if h.Get("Content-Type") != tt.want || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment;") ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != "default-src 'none'; sandbox" {
			t.Errorf("%s: headers %v", tt.want, h)
		}
	}
}

func TestRangesOfAFile(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	const content = "0123456789"
	target := "/v1/media/" + mine.keep(content, "a.txt") + "/content"
	tag := `"` + hashOf(content) + `"`
	for _, tt := range []struct {
		name, value, ifRange string
		status               int
		body, shown          string // the part, and Content-Range
	}{
		{"the start", "bytes=0-3", "", 206, "0123", "bytes 0-3/10"},
		{"the middle", "bytes=4-5", "", 206, "45", "bytes 4-5/10"},
		{"from a place", "bytes=7-", "", 206, "789", "bytes 7-9/10"},
		{"the end", "bytes=-2", "", 206, "89", "bytes 8-9/10"},
		{"more than all", "bytes=0-99", "", 206, content, "bytes 0-9/10"},
		{"of the same file", "bytes=0-3", tag, 206, "0123", "bytes 0-3/10"},
		{"of another file", "bytes=0-3", `"x"`, 200, content, ""},
		{"several", "bytes=0-1,4-5", "", 200, content, ""},
		{"behind the end", "bytes=10-", "", 416, "", "bytes */10"},
		{"backwards", "bytes=5-2", "", 416, "", ""},
		{"no range", "lines=1-2", "", 416, "", ""},
	} {
		a := mine.do("GET", target, "", "Range", tt.value, "If-Range", tt.ifRange)
		if tt.status == http.StatusRequestedRangeNotSatisfiable {
			a.want(tt.status, postern.RangeNotSatisfiable)
			h := a.Header()
			if h.Get("ETag") != "" || h.Get("Content-Disposition") != "" || h.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: headers %v", tt.name, h)
			}
		} else if a.Code != tt.status || a.Body.String() != tt.body {
			t.Errorf("%s: got %d %q, want %d %q", tt.name, a.Code, a.Body, tt.status, tt.body)
		}
		if got := a.Header().Get("Content-Range"); got != tt.shown {
			t.Errorf("%s: Content-Range %q, want %q", tt.name, got, tt.shown)
		}
	}
}

func TestConditionalRequestsForAFile(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	target, tag := "/v1/media/"+mine.keep("Hello", "a.txt")+"/content", `"`+hashOf("Hello")+`"`
	for value, status := range map[string]int{
		tag: 304, "W/" + tag: 304, "*": 304, `"x", ` + tag: 304, `"x"`: 200, "x": 200, "": 200,
	} {
		a := mine.do("GET", target, "", "If-None-Match", value)
		if a.Code != status || a.Header().Get("ETag") != tag || (status == 304) != (a.Body.Len() == 0) {
			t.Errorf("If-None-Match %s: %d %v %s", value, a.Code, a.Header(), a.Body)
		}
	}
	if a := mine.do("GET", target, "", "If-Match", `"x"`); a.Code != http.StatusOK {
		t.Errorf("If-Match: %d", a.Code)
	}
	a := mine.do("HEAD", target, "")
	if a.Code != http.StatusOK || a.Body.Len() != 0 ||
		a.Header().Get("Content-Length") != "5" || a.Header().Get("ETag") != tag ||
		a.Header().Get("Accept-Ranges") != "bytes" {
		t.Errorf("HEAD: %d %v", a.Code, a.Header())
	}
	if a := mine.do("GET", target, "", "Accept", "image/webp"); a.Code != http.StatusOK { // a file has the type that it has
		t.Errorf("Accept: %d %s", a.Code, a.Body)
	}
}

// signed is the address of a file as the gateway of these tests signs it.
func signed(t testing.TB, ws postern.WorkspaceID, id string, expires time.Time) string {
	t.Helper()
	box, err := seal.NewBox(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	at := strconv.FormatInt(expires.Unix(), 10)
	mac := hex.EncodeToString(box.MAC("media link", string(ws)+" "+id+" "+at))
	return "/v1/media/" + id + "/file?workspace=" + string(ws) + "&expires=" + at + "&signature=" + mac
}

// otherSignature changes the first digit of the signature in a link.
func otherSignature(address string) string {
	before, signature, _ := strings.Cut(address, "signature=")
	digit := "0"
	if signature[0] == '0' {
		digit = "1"
	}
	return before + "signature=" + digit + signature[1:]
}

func TestLinkToAFileNeedsNoKey(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine, other := s.tenant("starter"), s.tenant("starter")
	id := mine.keep("Hello", "a.txt")
	a := mine.do("GET", "/v1/media/"+id, "")
	a.want(http.StatusOK, "")
	address, ok := strings.CutPrefix(a.member("url"), baseURL)
	at, err := time.Parse(time.RFC3339, a.member("urlExpiresAt"))
	if left := time.Until(at); !ok || err != nil || left > time.Hour || left < 59*time.Minute {
		t.Fatalf("a link %s", a.Body)
	}
	file := s.do("GET", address, "")
	if file.Code != http.StatusOK || file.Body.String() != "Hello" ||
		file.Header().Get("ETag") != `"`+hashOf("Hello")+`"` {
		t.Errorf("the link gives %d %s %v", file.Code, file.Body, file.Header())
	}
	part := s.do("GET", address, "", "Range", "bytes=1-2")
	if part.Code != http.StatusPartialContent || part.Body.String() != "el" {
		t.Errorf("a part: %d %s", part.Code, part.Body)
	}
	if a := s.do("GET", address, "", "Range", "bytes=9-"); a.Code != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("a range behind the end: %d %s", a.Code, a.Body)
	}
	if head := s.do("HEAD", address, ""); head.Code != http.StatusOK || head.Header().Get("Content-Length") != "5" {
		t.Errorf("HEAD: %d %v", head.Code, head.Header())
	}
	if a := s.do("GET", signed(t, mine.ws, id, time.Now().Add(time.Hour)), ""); a.Code != http.StatusOK {
		t.Errorf("a link of the test's own: %d %s", a.Code, a.Body)
	}
	second, foreign := mine.keep("Other", "b.txt"), other.keep("Foreign", "c.txt")
	query := address[strings.Index(address, "?"):]
	bodies := map[string]bool{}
	for name, target := range map[string]string{
		"expired":           signed(t, mine.ws, id, time.Now().Add(-2*time.Second)),
		"longer":            strings.Replace(address, "expires=1", "expires=2", 1),
		"another signature": otherSignature(address),
		"no signature":      "/v1/media/" + id + "/file",
		"another file":      "/v1/media/" + second + "/file" + query,
		"a foreign file":    "/v1/media/" + foreign + "/file" + query,
		"another workspace": strings.Replace(address, string(mine.ws), string(other.ws), 1),
		"no file":           "/v1/media/med_01JD8Z3NDEKTSV4RRFFQ69G5FA/file" + query,
		"odd id":            "/v1/media/%00/file" + query,
		"odd query":         "/v1/media/" + id + "/file?expires=%zz&signature=%00&workspace=%ff",
	} {
		a := s.do("GET", target, "")
		a.what += " " + name
		p := a.want(http.StatusNotFound, postern.NotFound)
		bodies[strings.ReplaceAll(a.Body.String(), p.RequestID, "")] = true
	}
	if len(bodies) != 1 {
		t.Errorf("the refusals differ: %v", bodies)
	}
	mine.do("DELETE", "/v1/media/"+id, "").want(http.StatusNoContent, "")
	s.do("GET", address, "").want(http.StatusNotFound, postern.NotFound)
}

func TestLinksCountForTheAddress(t *testing.T) {
	t.Parallel()
	s := newServerWithoutTime(t)
	mine := s.tenant("starter")
	id := mine.keep("Hello", "a.txt")
	good := signed(t, mine.ws, id, time.Now().Add(time.Hour))
	request := func(target string) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "https://postern.test"+target, nil)
		r.RemoteAddr = "203.0.113.9:1234"
		return r
	}
	for n := range 300 {
		ask := s.answer
		if n == 0 || n == 299 {
			ask = s.send
		}
		ask(request(good)).want(http.StatusOK, "")
		ask(request(good+"0")).want(http.StatusNotFound, postern.NotFound)
	}
	a := s.send(request(good))
	if a.Code != http.StatusTooManyRequests || a.Header().Get("Retry-After") == "" {
		t.Errorf("beyond the rate: %d %s", a.Code, a.Body)
	}
	mine.do("GET", "/v1/media/"+id+"/content", "").want(http.StatusOK, "") // with a key, and from elsewhere
}

func TestDeletedFileIsExpired(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	id := mine.keep("Hello", "a.txt")
	device := connected(mine)
	for range 2 {
		mine.do("DELETE", "/v1/media/"+id, "").want(http.StatusNoContent, "")
	}
	a := mine.do("GET", "/v1/media/"+id, "")
	a.want(http.StatusOK, "")
	if a.member("status") != "expired" || strings.Contains(a.Body.String(), "url") {
		t.Errorf("a deleted file is %s", a.Body)
	}
	mine.do("GET", "/v1/media/"+id+"/content", "").want(http.StatusNotFound, postern.NotFound)
	p := mine.do("POST", "/v1/messages", `{"deviceId":"`+device+`","to":"+15551234567","type":"document","media":{"id":"`+id+`"}}`).want(
		http.StatusUnprocessableEntity, postern.ValidationFailed)
	if p.Errors[0].Pointer != "/media/id" {
		t.Errorf("a deleted file is refused at %v", p.Errors)
	}
}

func TestFileThatIsBeingFetched(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	device := connected(mine)
	a := mine.do("POST", "/v1/messages", `{"deviceId":"`+device+`","to":"+15551234567","type":"image","media":{"url":"https://files.test/a"}}`)
	a.want(http.StatusAccepted, "")
	id := medOf(a.Body.String())
	if a := mine.do("GET", "/v1/media/"+id, ""); a.member("status") != "pending" || a.member("url") != "" {
		t.Errorf("a pending file is %s", a.Body)
	}
	a = mine.do("GET", "/v1/media/"+id+"/content", "")
	a.want(http.StatusNotFound, postern.NotFound)
	if a.Header().Get("Retry-After") == "" {
		t.Errorf("headers %v", a.Header())
	}
}

// medOf is the first id of a file in a text.
func medOf(text string) string {
	for _, id := range anID.FindAllString(text, -1) {
		if strings.HasPrefix(id, "med_") {
			return id
		}
	}
	return ""
}

func TestNamesOfFilesAreSafe(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	for name, want := range map[string]string{
		"invoice.pdf": "invoice.pdf", "../../etc/passwd": "passwd", `..\..\boot.ini`: "boot.ini", "..": "file",
		"fdp.\u202eexe": "fdp.exe", "a\r\nSet-Cookie: x=1": "a Set-Cookie_ x=1", `a"; filename="b.exe`: "a_; filename=_b.exe",
		"Übersicht 日本.txt": "Übersicht 日本.txt", "100%.txt": "100%.txt", "a'b(c).txt": "a'b(c).txt", "CON": "_CON",
		"a;b.txt": "a;b.txt", " . ": "file",
	} {
		a := mine.do("POST", "/v1/media?filename="+url.QueryEscape(name), "Hello", "Content-Type", "text/plain")
		a.want(http.StatusCreated, "")
		h := mine.do("GET", "/v1/media/"+a.member("id")+"/content", "").Header()
		kind, params, err := mime.ParseMediaType(h.Get("Content-Disposition"))
		if err != nil || kind != "attachment" || params["filename"] != want || a.member("filename") != want {
			t.Errorf("%q: %s as %q, %v, want %q", name, a.member("filename"), h.Get("Content-Disposition"), err, want)
		}
		if strings.ContainsFunc(h.Get("Content-Disposition"), func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Errorf("%q gives the header %q", name, h.Get("Content-Disposition"))
		}
	}
	long := strings.Repeat("a", 10_000)
	body, kind := form(t, "file", long, "Hello")
	for target, p := range map[string]refusal{
		"query": mine.do("POST", "/v1/media?filename="+long, "Hello").want(http.StatusUnprocessableEntity, postern.ValidationFailed),
		"form":  mine.do("POST", "/v1/media", body, "Content-Type", kind).want(http.StatusUnprocessableEntity, postern.ValidationFailed),
	} {
		if want := map[string]string{"query": "/query/filename", "form": "/file"}[target]; p.Errors[0].Pointer != want {
			t.Errorf("a long name in the %s: %v", target, p.Errors)
		}
	}
	body, kind = form(t, "file", "a\xff", "Hello")
	mine.do("POST", "/v1/media", body, "Content-Type", kind).want(http.StatusUnprocessableEntity, postern.ValidationFailed)
}

// TestFileThatTheStorageHasLost is not answered as if it were there.
func TestFileThatTheStorageHasLost(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	id := mine.keep("Hello", "a.txt")
	m, err := mine.g.Media.Get(t.Context(), mine.caller(), postern.MediaID(id))
	if err != nil {
		t.Fatal(err)
	}
	hash, err := blob.ParseHash(m.SHA256)
	if err == nil {
		err = mine.blobs.Delete(t.Context(), blob.Name{Workspace: mine.ws, Hash: hash})
	}
	if err != nil {
		t.Fatal(err)
	}
	a := mine.do("GET", "/v1/media/"+id+"/content", "")
	a.want(http.StatusNotFound, postern.NotFound)
	if h := a.Header(); h.Get("Content-Disposition") != "" || h.Get("ETag") != "" {
		t.Errorf("headers %v", h)
	}
}

func TestLimitedKeyUsesItsOwnFiles(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	device := mine.device("other", postern.Connected)
	limited := mine.with(mine.newKey(gateway.NewKey{Devices: []postern.DeviceID{device}}))
	file, uploaded := receivedFile(mine), mine.keep("Hello", "a.txt")
	send := func(id string) *answerT {
		return limited.do("POST", "/v1/messages", fmt.Sprintf(
			`{"deviceId":%q,"to":"+15551234567","type":"document","media":{"id":%q}}`, device, id))
	}
	send(file).want(http.StatusForbidden, postern.ResourceNotAllowed)
	send(uploaded).want(http.StatusAccepted, "")
	limited.do("GET", "/v1/media/"+uploaded, "").want(http.StatusOK, "")
	send(mine.server.tenant("starter").keep("Hello", "a.txt")).want(http.StatusForbidden, postern.ResourceNotAllowed)
}
