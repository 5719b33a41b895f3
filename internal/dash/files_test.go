package dash

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store"
)

// drawn is a picture as a PNG file.
func drawn(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 20))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// uploads keeps a file of a workspace.
func (s *site) uploads(ws postern.WorkspaceID, name, content string) postern.Media {
	s.t.Helper()
	c, err := s.g.Workspaces.Caller(s.t.Context(), access.Operator(), ws)
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := s.g.Media.Upload(s.t.Context(), c, strings.NewReader(content), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// receivesFile records a message of a contact with a file in a state.
func (s *site) receivesFile(d postern.Device, kind postern.Kind, m postern.Media) postern.Message {
	s.t.Helper()
	at := s.db.Now()
	if m.ID == "" {
		m.ID = postern.NewMediaID()
	}
	in := postern.Message{
		ID: postern.NewMessageID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Inbound,
		Content: postern.Content{Kind: kind, Media: &m}, ChatID: contact, From: contact, FromName: "Ada",
		Status: postern.Received, NetworkID: postern.NewNetworkID(), Source: postern.FromContact,
		Metadata: map[string]string{}, CreatedAt: at, SentAt: at,
	}
	if err := s.db.Messages.RecordInbound(s.t.Context(), store.RecordInbound{
		Message: in, Sender: contact, Type: postern.MessageReceived, Now: at,
		File: &store.MediaRow{Media: m, WorkspaceID: d.WorkspaceID, DeviceID: d.ID, MessageID: in.ID,
			NextAt: at, CreatedAt: at, UsedAt: at},
	}); err != nil {
		s.t.Fatal(err)
	}
	return in
}

func TestFilesAreShownOrDownloaded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	for name, tt := range map[string]struct{ file, content, kind, how, called string }{
		"picture":  {"a.png", drawn(t), "image/png", "inline", `a.png`},
		"as html":  {"a.html", drawn(t), "image/png", "inline", `a.html`},
		"svg":      {"a.svg", `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`, "image/svg+xml", "attachment", `a.svg`},
		"page":     {"a.png", "<!DOCTYPE html><script>alert(1)</script>", "text/html", "attachment", `a.png`},
		"text":     {"a.txt", "hello", "text/plain", "attachment", `a.txt`},
		"pdf":      {"a.pdf", "%PDF-1.7\n", "application/pdf", "attachment", `a.pdf`},
		"nothing":  {"", "\x00\x01\x02", "application/octet-stream", "attachment", "file"},
		"upwards":  {"../../etc/passwd", "root", "text/plain", "attachment", "passwd"},
		"turned":   {"invoice\u202efdp.exe", "MZ", "", "attachment", "invoicefdp.exe"},
		"new line": {"a\r\nSet-Cookie: x=y.txt", "x", "text/plain", "attachment", "a Set-Cookie_ x=y.txt"},
		"quotes":   {`a".txt; x="y`, "x", "text/plain", "attachment", "a_.txt; x=_y"},
	} {
		m := s.uploads(s.workspace(), tt.file, tt.content)
		p := c.want(c.get(filePath(m.ID)), http.StatusOK, "")
		if got := p.header.Get("Content-Type"); p.body != tt.content || !strings.HasPrefix(got, tt.kind) {
			t.Errorf("%s is served as %q with %d bytes", name, got, len(p.body))
		}
		got := p.header.Get("Content-Disposition")
		if how, _, _ := strings.Cut(got, ";"); how != tt.how || !strings.Contains(got, tt.called) ||
			strings.ContainsAny(got, "\r\n\u202e") {
			t.Errorf("%s has the disposition %q", name, got)
		}
		for header, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox",
			"Cache-Control": fileCached, "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := p.header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
		if p := c.get(filePath(m.ID) + "?download"); !strings.HasPrefix(p.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s is not downloaded", name)
		}
	}
}

func TestPartsOfAFile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	path := filePath(s.uploads(s.workspace(), "a.txt", "0123456789").ID)
	p := c.do(http.MethodGet, path, nil, "Range", "bytes=2-4")
	if p.status != http.StatusPartialContent || p.body != "234" {
		t.Errorf("a range is answered %d with %q", p.status, p.body)
	}
	if p := c.do(http.MethodGet, path, nil, "Range", "bytes=20-"); p.status != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("a range behind the end is answered %d", p.status)
	}
	tag := p.header.Get("ETag")
	if p := c.do(http.MethodGet, path, nil, "If-None-Match", tag); p.status != http.StatusNotModified || tag == "" {
		t.Errorf("a file that the browser has is answered %d", p.status)
	}
}

func TestFilesAreForMembers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	other, err := s.g.Workspaces.Create(t.Context(), access.Operator(), gateway.NewWorkspace{Name: "other", Plan: "free"})
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours := s.uploads(other.ID, "a.txt", "theirs"), s.uploads(s.workspace(), "a.txt", "ours")
	c.want(c.get(filePath(theirs.ID)), http.StatusNotFound, "")
	c.want(c.get("/media/med_none"), http.StatusNotFound, "")
	if p := s.browser().get(filePath(ours.ID)); p.status != http.StatusSeeOther {
		t.Errorf("nobody is answered %d", p.status)
	}
	s.as(postern.Viewer)
	c.want(c.get(filePath(ours.ID)), http.StatusOK, "")
}

func TestFileThatCouldNotBeFetchedIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	m := s.receivesFile(d, postern.KindImage, postern.Media{
		MIMEType: "image/png", Status: postern.MediaFailed, Recoverable: true, Detail: "the phone is off",
	})
	file := filePath(m.Content.Media.ID)
	c.want(c.get(file), http.StatusNotFound, "")
	c.want(c.post(file+"/fetch", map[string][]string{"message": {string(m.ID)}}), http.StatusSeeOther, messagePath(m.ID))
	c.says(messagePath(m.ID), "The file is being fetched.")
	if row, err := s.db.Media.Get(t.Context(), d.WorkspaceID, m.Content.Media.ID); err != nil ||
		row.Status != postern.MediaPending {
		t.Errorf("the file is %s (%v)", row.Status, err)
	}
}
