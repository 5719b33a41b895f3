package media_test

import (
	"archive/zip"
	"bytes"
	"os"
	"strings"
	"testing"

	"postern/internal/media"
	"postern/internal/postern"
)

func TestTypesAreReadFromTheContent(t *testing.T) {
	t.Parallel()
	picture := pngOf(t, gradient(10, 10))
	for _, tt := range []struct {
		name string
		head []byte
		want string
	}{
		{"empty", nil, "text/plain"},
		{"text", []byte("hello"), "text/plain"},
		{"bytes", []byte{0, 1, 2, 3}, "application/octet-stream"},
		{"png", picture, "image/png"},
		{"jpeg", jpegOf(t, gradient(10, 10)), "image/jpeg"},
		{"page", []byte("<html><script>alert(1)</script>"), "text/html"},
		{"playlist", []byte("#EXTM3U\n#EXT-X-VERSION:3\nfile:///etc/passwd\n"), "application/vnd.apple.mpegurl"},
		{"picture and page", append(bytes.Clone(picture), "<script>alert(1)</script>"...), "image/png"},
		{"picture and archive", append(bytes.Clone(picture), archive(t, 10)...), "image/png"},
		{"script in a gif", []byte("GIF89a/*<script>*/=alert(1)"), "image/gif"},
		{"document and archive", append([]byte("%PDF-1.7\n"), archive(t, 10)...), "application/pdf"},
	} {
		if got := media.Sniff(tt.head); got != tt.want {
			t.Errorf("%s: type %q, want %q", tt.name, got, tt.want)
		}
	}
}

// archive is a zip file with a member of that many zeros.
func archive(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	member, err := w.Create("zeros")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = member.Write(make([]byte, size))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestKindsCarryTheirTypes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind     postern.Kind
		mimeType string
		ok       bool
	}{
		{postern.KindImage, "image/jpeg", true},
		{postern.KindImage, "image/gif", true},
		{postern.KindImage, "image/svg+xml", false},
		{postern.KindImage, "video/mp4", false},
		{postern.KindVideo, "video/mp4", true},
		{postern.KindVideo, "video/3gpp", true},
		{postern.KindVideo, "video/webm", false},
		{postern.KindVideo, "image/gif", false},
		{postern.KindAudio, "audio/mpeg", true},
		{postern.KindAudio, "audio/wav", false},
		{postern.KindAudio, "application/vnd.apple.mpegurl", false},
		{postern.KindVoice, "audio/wav", true},
		{postern.KindVoice, "text/html", false},
		{postern.KindSticker, "image/webp", true},
		{postern.KindSticker, "image/gif", false},
		{postern.KindDocument, "application/x-executable", true},
		{postern.KindText, "image/jpeg", false},
	} {
		err := media.Fits(tt.kind, tt.mimeType)
		if (err == nil) != tt.ok || !tt.ok && postern.ReasonOf(err) != postern.ValidationFailed {
			t.Errorf("%s as %s: %v, want accepted: %v", tt.mimeType, tt.kind, err, tt.ok)
		}
	}
}

func TestWrongNamesAndTypesAreIgnored(t *testing.T) {
	t.Parallel()
	c := withoutFFmpeg(t)
	p := prepare(t, c, postern.KindImage, file(t, "invoice.pdf", jpegOf(t, gradient(30, 20))))
	if p.MIMEType != "image/jpeg" || p.Width != 30 || p.Height != 20 {
		t.Errorf("a JPEG with another name is %+v", p.Description)
	}
	if text := refuse(t, c, postern.KindImage, file(t, "photo.jpg", []byte("MZ\x90\x00this is a program"))); text == "" {
		t.Error("a program with the name of a picture was accepted")
	}
}

func TestDocumentsAreNotOpened(t *testing.T) {
	t.Parallel()
	c := withFFmpeg(t)
	bomb := file(t, "bomb.zip", archive(t, 64<<20))
	before := allocated()
	p := prepare(t, c, postern.KindDocument, bomb)
	if p.MIMEType != "application/zip" || p.File != "" || p.Thumbnail != nil {
		t.Errorf("an archive is sent as %+v", p)
	}
	if grown := allocated() - before; grown > 1<<20 {
		t.Errorf("%d bytes were allocated for an archive", grown)
	}
	endless := file(t, "endless.zip", archive(t, 10))
	if err := os.Truncate(endless, 1<<40); err != nil { // takes no room on the disk
		t.Fatal(err)
	}
	if p := prepare(t, c, postern.KindDocument, endless); p.MIMEType != "application/zip" {
		t.Errorf("an endless archive is sent as %+v", p)
	}
}

func TestDescriptions(t *testing.T) {
	t.Parallel()
	c := withFFmpeg(t)
	for path, want := range map[string]media.Description{
		file(t, "a", pngOf(t, gradient(7, 5))):          {MIMEType: "image/png", Width: 7, Height: 5},
		file(t, "b", []byte("hello")):                   {MIMEType: "text/plain"},
		file(t, "c", []byte("\x89PNG\r\n\x1a\nxxx")):    {MIMEType: "image/png"},
		file(t, "d", []byte("\xff\xfb\x90\x00nothing")): {MIMEType: "audio/mpeg"},
	} {
		got, err := c.Describe(t.Context(), path)
		if err != nil || got != want {
			t.Errorf("Describe = %+v, %v; want %+v", got, err, want)
		}
	}
	if _, err := c.Describe(t.Context(), "/does/not/exist"); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestNamesAreSafe(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"photo.jpg":                       "photo.jpg",
		"":                                "file.pdf",
		"..":                              "file.pdf",
		"///":                             "file.pdf",
		"../../etc/passwd":                "passwd",
		`C:\Users\me\report.pdf`:          "report.pdf",
		"/etc/cron.d/../x.pdf":            "x.pdf",
		".bashrc":                         "bashrc",
		"a\x00b\nc\rd.pdf":                "ab c d.pdf",
		"invoice\u202efdp.exe":            "invoicefdp.exe",
		"\u2067\u061ca\u200fb.pdf":        "ab.pdf",
		"a\ufeff\u200bb.pdf":              "ab.pdf",
		"fami\u200dly 👩‍👩‍👧.pdf":          "fami\u200dly 👩‍👩‍👧.pdf",
		"می\u200cخواهم.pdf":               "می\u200cخواهم.pdf",
		"  many \t  spaces  .pdf ":        "many spaces .pdf",
		`a<b>c:"d|e?f*.pdf`:               "a_b_c__d_e_f_.pdf",
		"con.pdf":                         "_con.pdf",
		"LPT1":                            "_LPT1",
		"console.pdf":                     "console.pdf",
		"trailing.pdf. . .":               "trailing.pdf",
		"bad\xff\xfeutf8.pdf":             "badutf8.pdf",
		strings.Repeat("é", 300):          strings.Repeat("é", 100),
		strings.Repeat("a", 300) + ".pdf": strings.Repeat("a", 196) + ".pdf",
		"x." + strings.Repeat("y", 300):   "x." + strings.Repeat("y", 198),
	} {
		got := media.SafeName(in, "application/pdf")
		if got != want {
			t.Errorf("SafeName(%q) = %q, want %q", in, got, want)
		}
		if again := media.SafeName(got, ""); again != got {
			t.Errorf("SafeName(%q) = %q the second time", got, again)
		}
	}
	if got := media.SafeName("\u202e", "unknown/type"); got != "file" {
		t.Errorf("a name for an unknown type is %q", got)
	}
}

func FuzzSafeName(f *testing.F) {
	for _, name := range []string{"a.pdf", "../x", "con", "\u202e.", strings.Repeat("é.", 200)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := media.SafeName(name, "image/png")
		if got == "" || len(got) > 201 || strings.ContainsAny(got, "/\\\x00\n\u202e") || strings.HasPrefix(got, ".") {
			t.Errorf("SafeName(%q) = %q", name, got)
		}
	})
}
