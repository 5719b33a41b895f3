package dash

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/web"
)

const svg = `<svg xmlns="http://www.w3.org/2000/svg">`

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
	made, err := s.g.Media.Upload(s.t.Context(), c, strings.NewReader(content), name, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return made.Value
}

// receivesFile records a message of a contact with a file in a state.
func (s *site) receivesFile(d postern.Device, kind postern.Kind, m postern.Media) postern.Message {
	s.t.Helper()
	return s.receivesFrom(d, kind, m, nil)
}

// receivesFrom is receivesFile with what is known of the file on the network.
func (s *site) receivesFrom(d postern.Device, kind postern.Kind, m postern.Media, source []byte) postern.Message {
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
		File: &store.MediaRow{
			Media: m, WorkspaceID: d.WorkspaceID, DeviceID: d.ID, MessageID: in.ID, Source: source,
			NextAt: at, CreatedAt: at, UsedAt: at,
		},
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
		"svg":      {"a.svg", svg + `<script>alert(1)</script></svg>`, "image/svg+xml", "attachment", `a.svg`},
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

// sendsFile posts a form with a file, as a browser does without scripts.
func (c *client) sendsFile(path string, fields [][2]string, name, content string, header ...string) answer {
	c.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		if err := w.WriteField(f[0], f[1]); err != nil {
			c.t.Fatal(err)
		}
	}
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		_, err = io.WriteString(part, content)
	}
	if err != nil || w.Close() != nil {
		c.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+path, &b)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", w.FormDataContentType())
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

// newest is the newest message of a workspace.
func (s *site) newest(ws postern.WorkspaceID) postern.Message {
	s.t.Helper()
	found, err := s.db.Messages.Search(s.t.Context(), ws, store.MessageSearch{}, store.MessagePlace{}, 1)
	if err != nil || len(found.Messages) != 1 {
		s.t.Fatalf("%d messages, %v", len(found.Messages), err)
	}
	return found.Messages[0]
}

func TestAFileIsSentFromAConversation(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	s.comes(d, contact, "Ada", "Hello")
	talk := chatPath(d.ID, contact)
	for name, tt := range map[string]struct {
		file, content, as string
		kind              postern.Kind
		named             string
	}{
		"picture":    {"a.png", drawn(t), "", postern.KindImage, "a.png"},
		"as it is":   {"a.png", drawn(t), "document", postern.KindDocument, "a.png"},
		"svg":        {"a.svg", svg + "</svg>", "", postern.KindDocument, "a.svg"},
		"false name": {"a.png", "<!DOCTYPE html>", "", postern.KindDocument, "a.png"},
		"upwards":    {`..\..\a/../b.txt`, "x", "", postern.KindDocument, "b.txt"},
		"turned":     {"a\u202etxt.exe", "x", "", postern.KindDocument, "atxt.exe"},
	} {
		fields := [][2]string{{"key", c.form(talk)}, {"body", "the caption\r\nof it"}, {"kind", tt.as}}
		c.want(c.sendsFile(talk, fields, tt.file, tt.content), http.StatusSeeOther, talk)
		m := s.newest(d.WorkspaceID)
		if m.Content.Kind != tt.kind || m.Content.Text != "the caption\nof it" || m.Content.Media == nil ||
			m.Content.Media.Filename != tt.named || m.Content.Media.Size != int64(len(tt.content)) {
			t.Errorf("%s is sent as a %s with %+v", name, m.Content.Kind, m.Content.Media)
		}
	}
	// The same form twice sends one message; without a file it is text.
	before := s.newest(d.WorkspaceID).ID
	fields := [][2]string{{"key", c.form(talk)}, {"body", "twice"}}
	for range 2 {
		c.want(c.sendsFile(talk, fields, "a.txt", "once"), http.StatusSeeOther, talk)
	}
	found, err := s.db.Messages.Search(t.Context(), d.WorkspaceID, store.MessageSearch{}, store.MessagePlace{}, 2)
	if err != nil || found.Messages[1].ID != before {
		t.Errorf("a form that was posted twice has sent two messages (%v)", err)
	}
	fields = [][2]string{{"key", c.form(talk)}, {"body", "no file"}}
	c.want(c.sendsFile(talk, fields, "", ""), http.StatusSeeOther, talk)
	if m := s.newest(d.WorkspaceID); m.Content.Kind != postern.KindText || m.Content.Text != "no file" {
		t.Errorf("a form without a file sends a %s", m.Content.Kind)
	}
}

func TestAFileIsSentToSomebodyNew(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	fields := func(to, body string) [][2]string {
		return [][2]string{{"key", c.form("/messages/new")}, {"device", string(d.ID)}, {"to", to}, {"body", body}}
	}
	p := c.sendsFile("/messages", fields("12", "the caption"), "a.png", drawn(t))
	id := regexp.MustCompile(`name="media" value="(med_[^"]+)"`).FindStringSubmatch(p.body)
	if p.status != http.StatusUnprocessableEntity || id == nil || !strings.Contains(p.body, "Write a phone number") ||
		!strings.Contains(p.body, "\nthe caption</textarea>") {
		t.Fatalf("a wrong number is answered %d, without the file", p.status)
	}
	key := regexp.MustCompile(`name="key" value="([A-Z2-7]{26})"`).FindStringSubmatch(p.body)[1]
	p = c.post("/messages", url.Values{
		"key": {key}, "device": {string(d.ID)}, "to": {contact}, "body": {"the caption"}, "media": {id[1]},
	})
	m := s.newest(d.WorkspaceID)
	if c.want(p, http.StatusSeeOther, messagePath(m.ID)); m.Content.Kind != postern.KindImage ||
		m.Content.Text != "the caption" || string(m.Content.Media.ID) != id[1] {
		t.Errorf("%+v is sent", m.Content)
	}
	p = c.sendsFile("/messages", fields(contact, ""), "a.txt", "x")
	m = s.newest(d.WorkspaceID)
	if c.want(p, http.StatusSeeOther, messagePath(m.ID)); m.Content.Kind != postern.KindDocument {
		t.Errorf("a text file is sent as a %s", m.Content.Kind)
	}
	if p := c.sendsFile("/messages", fields(contact, ""), "", ""); p.status != http.StatusUnprocessableEntity {
		t.Errorf("neither a text nor a file is answered %d", p.status)
	}
}

// The preview is looked up when the message is sent. A file has none.
func TestAPreviewIsAskedFor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	talk := chatPath(d.ID, contact)
	const text = "look at https://shop.example/offers"
	for name, tt := range map[string]struct {
		path    string
		preview string
		want    bool
	}{
		"a new message": {"/messages", "yes", true}, "an answer": {talk, "yes", true}, "not wanted": {talk, "", false},
	} {
		form := "/messages/new"
		if tt.path == talk {
			form = talk
		}
		p := c.post(tt.path, url.Values{
			"key": {c.form(form)}, "device": {string(d.ID)}, "to": {contact}, "body": {text}, "preview": {tt.preview},
		})
		m := s.newest(d.WorkspaceID)
		if p.status != http.StatusSeeOther || (m.Content.LinkPreview != nil) != tt.want {
			t.Errorf("%s is answered %d, with the preview %+v", name, p.status, m.Content.LinkPreview)
		}
	}
	form := url.Values{"key": {c.form(talk)}, "body": {text}}
	c.want(c.post(talk, form), http.StatusSeeOther, talk)
	form.Set("preview", "yes")
	if p := c.post(talk, form); p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, "Press Send again") {
		t.Errorf("the same form with another choice is answered %d", p.status)
	}
	fields := [][2]string{{"key", c.form(talk)}, {"body", text}, {"preview", "yes"}}
	c.want(c.sendsFile(talk, fields, "a.txt", "x"), http.StatusSeeOther, talk)
	if m := s.newest(d.WorkspaceID); m.Content.Kind != postern.KindDocument || m.Content.LinkPreview != nil {
		t.Errorf("a file is sent with the preview %+v", m.Content.LinkPreview)
	}
	p := c.post(talk, url.Values{"key": {c.form(talk)}, "body": {""}, "preview": {"yes"}})
	if !regexp.MustCompile(`name="preview" value="yes" checked`).MatchString(p.body) {
		t.Error("a refused form forgets that a preview is wanted")
	}
}

func TestAPollIsAnswered(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	talk := chatPath(d.ID, contact)
	poll := func(most int) string {
		return string(s.receives(d, contact, "Ada", postern.Content{Kind: postern.KindPoll, Extra: postern.Extra{
			Poll: &postern.Poll{Question: "Where?", Options: []string{"<i>Here", "There", "No\u202ewhere"}, MaxSelections: most},
		}}).ID)
	}
	one, many := poll(1), poll(2)
	c.says(talk, talk+"?message="+one+"&amp;do=vote#write", `aria-label="Vote: Where?"`)
	if p := c.says(talk+"?message="+one+"&do=vote", `type="radio"`, "&lt;i&gt;Here", "Choose one."); strings.Contains(p.body, "Remove vote") {
		t.Error("a vote that was not given can be removed")
	}
	c.says(talk+"?message="+many+"&do=vote", `name="option" value="2"`, `type="checkbox"`)
	vote := func(id string, fields url.Values) answer {
		fields["do"], fields["message"] = []string{"vote"}, []string{id}
		return c.post(talk, fields)
	}
	for name, tt := range map[string]struct {
		id     string
		fields url.Values
		says   string
	}{
		"nothing":     {one, url.Values{}, "choose an option"},
		"two of one":  {one, url.Values{"option": {"0", "1"}}, "too many options"},
		"one twice":   {many, url.Values{"option": {"1", "1"}}, "chosen once"},
		"far away":    {one, url.Values{"option": {"3"}}, "among the options"},
		"a text":      {one, url.Values{"option": {"There"}}, "among the options"},
		"not a poll":  {string(s.comes(d, contact, "Ada", "hi").ID), url.Values{"option": {"0"}}, "not a poll"},
		"less than 0": {one, url.Values{"option": {"-1"}}, "among the options"},
	} {
		p := vote(tt.id, tt.fields)
		if p.status != http.StatusUnprocessableEntity || !strings.Contains(strings.ToLower(p.body), strings.ToLower(tt.says)) {
			t.Errorf("%s is answered %d, without %q", name, p.status, tt.says)
		}
	}
	c.want(vote(one, url.Values{"option": {"2"}}), http.StatusSeeOther, talk+"#m-"+one)
	c.want(vote(many, url.Values{"option": {"0", "2"}}), http.StatusSeeOther, talk+"#m-"+many)
	c.want(vote(one, url.Values{"option": {"1"}, "none": {"yes"}}), http.StatusSeeOther, talk+"#m-"+one)
	want := [][]string{{"No\u202ewhere"}, {"<i>Here", "No\u202ewhere"}, nil}
	if got := s.votes(d); !reflect.DeepEqual(got, want) {
		t.Errorf("the votes are %q, want %q", got, want)
	}
	s.as(postern.Viewer)
	c.want(vote(one, url.Values{"option": {"0"}}), http.StatusForbidden, "")
	c.saysNot(talk, "do=vote")
}

// votes are the options of the votes that wait to be sent, oldest first.
func (s *site) votes(d postern.Device) (list [][]string) {
	s.t.Helper()
	waiting, err := s.db.Outbox.Next(s.t.Context(), d.ID, nil, 9)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range slices.Concat(waiting[:]...) {
		if m.Content.Kind == postern.KindVote {
			list = append(list, m.Content.Poll.Options)
		}
	}
	return list
}

func TestAMessageIsCanceled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	talk := chatPath(d.ID, contact)
	first, second, sent := c.sends(d, contact, "one"), c.sends(d, contact, "two"), c.sends(d, contact, "three")
	s.ends(sent, postern.Sent, "")
	later := s.schedules(d, "for tomorrow")
	for _, id := range []postern.MessageID{first, later} {
		c.says(talk+"?message="+string(id), "Cancel sending")
		form := url.Values{"do": {"cancel"}, "message": {string(id)}}
		c.want(c.post(talk, form), http.StatusSeeOther, talk+"#m-"+string(id))
		c.says(talk, "The message was canceled.")
		if p := c.post(talk, form); p.status != http.StatusUnprocessableEntity {
			t.Errorf("canceling twice is answered %d", p.status)
		}
	}
	own := messagePath(second)
	c.says(own, own+"/cancel", "Cancel sending")
	c.want(c.post(own+"/cancel", nil), http.StatusSeeOther, own)
	p := c.says(own, "The message was canceled.", "canceled before it was sent")
	if strings.Contains(p.body, own+"/cancel") {
		t.Error("a canceled message can be canceled")
	}
	c.saysNot(messagePath(sent), "Cancel sending")
	c.want(c.post(messagePath(sent)+"/cancel", nil), http.StatusSeeOther, messagePath(sent))
	c.says(messagePath(sent), "too late to cancel")
	c.says("/messages?status=canceled", "one", "two", "for tomorrow")
	c.want(c.post("/messages/msg_none/cancel", nil), http.StatusNotFound, "")
	waits := c.sends(d, contact, "four")
	s.as(postern.Viewer)
	c.want(c.post(messagePath(waits)+"/cancel", nil), http.StatusForbidden, "")
	c.saysNot(messagePath(waits), "Cancel sending")
}

// schedules accepts a text for tomorrow.
func (s *site) schedules(d postern.Device, text string) postern.MessageID {
	s.t.Helper()
	caller, err := s.g.Workspaces.Caller(s.t.Context(), access.Operator(), d.WorkspaceID)
	if err != nil {
		s.t.Fatal(err)
	}
	made, err := s.g.Messages.Send(s.t.Context(), caller, gateway.NewMessage{
		DeviceID: d.ID, To: contact, Content: postern.Text(text), SendAt: s.db.Now().Add(24 * time.Hour),
	}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return made.Value.ID
}

func TestAVideoHasAPoster(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	box, err := seal.NewBox(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	known := func(id postern.MediaID, thumbnail string) []byte {
		b, err := json.Marshal(map[string]any{"v": 1, "thumbnail": []byte(thumbnail)})
		if err != nil {
			t.Fatal(err)
		}
		return box.Seal(b, "media "+string(id))
	}
	// A video that was sent: what the network knows of it is stored for each device.
	sent := s.uploads(s.workspace(), "a.mp4", "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom")
	own := filePath(sent.ID) + "/poster"
	c.want(c.get(own), http.StatusNoContent, "")
	for _, kind := range []postern.Kind{postern.KindDocument, postern.KindVideo} {
		if err := s.db.Media.SetUpload(t.Context(), sent.ID, d.ID, kind, known(sent.ID, drawn(t)), s.db.Now()); err != nil {
			t.Fatal(err)
		}
		if kind == postern.KindDocument {
			c.want(c.get(own), http.StatusNoContent, "")
		}
	}
	p := c.want(c.get(own), http.StatusOK, "")
	if p.body != drawn(t) || p.header.Get("Content-Type") != "image/png" || p.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the poster has %d bytes and %v", len(p.body), p.header)
	}
	// A received one: its sender attached the picture. What is no picture is not served.
	m := sent
	m.ID = postern.NewMediaID()
	for content, status := range map[string]int{
		drawn(t): http.StatusOK, "<script>alert(1)</script>": http.StatusNoContent, "": http.StatusNoContent,
	} {
		m.ID = postern.NewMediaID()
		s.receivesFrom(d, postern.KindVideo, m, known(m.ID, content))
		c.want(c.get(filePath(m.ID)+"/poster"), status, "")
	}
	c.says(chatPath(d.ID, contact), `poster="`+filePath(m.ID)+`/poster"`)
	other := s.browser()
	other.want(other.get(own), http.StatusSeeOther, "/signin?next="+url.QueryEscape(own))
	c.want(c.get("/media/med_none/poster"), http.StatusNotFound, "")
}

func TestARefusedFileNeedNotBeSentAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	talk := chatPath(d.ID, contact)
	wave := "RIFF\x24\x00\x00\x00WAVEfmt "
	long := [][2]string{{"key", c.form(talk)}, {"body", strings.Repeat("字", postern.MaxText+1)}}
	p := c.sendsFile(talk, long, "<b>.txt", wave)
	id := regexp.MustCompile(`name="media" value="(med_[^"]+)"`).FindStringSubmatch(p.body)
	if p.status != http.StatusUnprocessableEntity || id == nil || !strings.Contains(p.body, "_b_.txt") {
		t.Fatalf("a text that is too long is answered %d, without the file", p.status)
	}
	key := regexp.MustCompile(`name="key" value="([A-Z2-7]{26})"`).FindStringSubmatch(p.body)[1]
	c.want(c.post(talk, url.Values{"key": {key}, "body": {"short"}, "media": {id[1]}}), http.StatusSeeOther, talk)
	if m := s.newest(d.WorkspaceID); m.Content.Media == nil || string(m.Content.Media.ID) != id[1] {
		t.Errorf("%+v is sent", m.Content)
	}
	for _, none := range []string{"med_none", "../x"} {
		p := c.post(talk, url.Values{"key": {c.form(talk)}, "body": {"x"}, "media": {none}})
		if p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, "choose it again") {
			t.Errorf("the file %q is answered %d", none, p.status)
		}
	}
}

func TestWhoSendsFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	s.comes(d, contact, "Ada", "Hello")
	talk := chatPath(d.ID, contact)
	fields := [][2]string{{"key", c.form(talk)}, {"body", "x"}}
	other := append([][2]string{{"at", "ws_other"}}, fields...)
	if p := c.sendsFile(talk, other, "a.txt", "x"); p.status != http.StatusConflict {
		t.Errorf("a form of another workspace is answered %d", p.status)
	}
	if p := c.sendsFile(talk, fields, "a.txt", "x", "Sec-Fetch-Site", "cross-site"); p.status != http.StatusForbidden {
		t.Errorf("a form of another site is answered %d", p.status)
	}
	for _, path := range []string{"/devices", "/account/password", "/messages/" + string(s.newest(d.WorkspaceID).ID) + "/cancel"} {
		if p := c.sendsFile(path, fields, "a.txt", "x"); p.status != http.StatusBadRequest {
			t.Errorf("%s takes a file: %d", path, p.status)
		}
	}
	large := [][2]string{{"key", "x"}, {"body", strings.Repeat("x", maxTextForm)}}
	if p := c.sendsFile(talk, large, "a.txt", "x"); p.status != http.StatusBadRequest {
		t.Errorf("large fields are answered %d", p.status)
	}
	if p := s.browser().sendsFile(talk, fields, "a.txt", "x"); p.status != http.StatusSeeOther ||
		p.header.Get("Location") != "/signin" {
		t.Errorf("a stranger is answered %d", p.status)
	}
	theirs := postern.DeviceID(strings.TrimPrefix(s.device(), "/devices/"))
	c.want(c.get(chatPath(theirs, contact)), http.StatusNotFound, "")
	s.as(postern.Viewer)
	c.want(c.sendsFile(talk, fields, "a.txt", "x"), http.StatusForbidden, "")
	c.want(c.sendsFile("/messages", fields, "a.txt", "x"), http.StatusForbidden, "")
	c.saysNot(talk, `type="file"`, "Options")
}

func TestAFileThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	talk := chatPath(d.ID, contact)
	head := "--b\r\nContent-Disposition: form-data; name=key\r\n\r\n" + c.form(talk) +
		"\r\n--b\r\nContent-Disposition: form-data; name=file; filename=a.bin\r\n\r\n"
	body := io.MultiReader(
		strings.NewReader(head), io.LimitReader(zeros{}, postern.MaxMedia+1), strings.NewReader("\r\n--b--\r\n"),
	)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, talk, body)
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	r.AddCookie(&http.Cookie{Name: "postern", Value: c.token()})
	w := httptest.NewRecorder()
	s.serve.ServeHTTP(w, r)
	if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "at most 100 MiB") {
		t.Errorf("it is answered %d: %.300s", w.Code, w.Body)
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestMessagesAreChangedInAConversation(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	in := s.comes(d, contact, "Ada", "the <question>")
	out := c.sends(d, contact, "the answer")
	talk := chatPath(d.ID, contact)
	c.says(talk, talk+"?message="+string(in.ID)+"#write", talk+"?message="+string(out)+"#write")
	c.says(talk+"?message="+string(in.ID), "React with 👍", "the &lt;question&gt;", "do=reply")
	c.saysNot(talk+"?message="+string(in.ID), "do=edit", "do=delete")
	c.says(talk+"?message="+string(out)+"&do=edit", "Edit the message", "\nthe answer</textarea>")
	c.says(talk+"?message="+string(out)+"&do=delete", "Delete this message for everyone?")
	c.says(talk+"?message="+string(in.ID)+"&do=delete", "React with 👍") // what cannot be done is not offered
	const done, wrong = http.StatusSeeOther, http.StatusUnprocessableEntity
	theirs, ours := string(in.ID), string(out)
	for name, tt := range map[string]struct {
		do, message, field, value string
		status                    int
	}{
		"reaction":       {"react", theirs, "emoji", "👍", done},
		"own reaction":   {"react", ours, "emoji", "", done},
		"no emoji":       {"react", theirs, "emoji", strings.Repeat("x", 999), wrong},
		"pin":            {"pin", theirs, "", "", done},
		"unpin":          {"unpin", ours, "", "", done},
		"star":           {"star", theirs, "", "", done},
		"unstar":         {"unstar", ours, "", "", done},
		"edit":           {"edit", ours, "body", "better", done},
		"empty edit":     {"edit", ours, "body", "", wrong},
		"edit of theirs": {"edit", theirs, "body", "better", wrong},
		"theirs":         {"delete", theirs, "", "", wrong},
		"nothing":        {"burn", ours, "", "", wrong},
		"no message":     {"delete", "msg_none", "", "", http.StatusNotFound},
		"delete":         {"delete", ours, "", "", done},
	} {
		p := c.post(talk, url.Values{"do": {tt.do}, "message": {tt.message}, tt.field: {tt.value}})
		if p.status != tt.status {
			t.Errorf("%s is answered %d, want %d: %.200s", name, p.status, tt.status, p.body)
		}
	}
	c.saysNot(talk, "Starred")
	if err := s.g.Sessions.Starred(t.Context(), d, contact, in.NetworkID, true, postern.TimeOf(time.Now())); err != nil {
		t.Fatal(err)
	}
	c.says(talk, "Starred")
	c.says(talk+"?message="+theirs, "Remove star")
	c.says("/messages/"+theirs, "Starred")
	other := chatPath(d.ID, "+15550009999")
	c.want(c.post(other, url.Values{"do": {"delete"}, "message": {string(out)}}), http.StatusNotFound, "")
	c.want(c.get(other+"?message="+string(out)), http.StatusNotFound, "")
	s.as(postern.Viewer)
	c.want(c.post(talk, url.Values{"do": {"delete"}, "message": {string(out)}}), http.StatusForbidden, "")
	c.saysNot(talk+"?message="+string(in.ID), "React with")
}

func TestUploadsAreBounded(t *testing.T) {
	t.Parallel()
	u := &uploads{of: map[postern.UserID]int{}, each: 2, all: 3}
	var ends []func()
	for i, tt := range []struct {
		user postern.UserID
		ok   bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"c", false}} {
		end, err := u.begin(tt.user)
		if (err == nil) != tt.ok {
			t.Fatalf("%d: %s begins with %v", i, tt.user, err)
		}
		if err == nil {
			ends = append(ends, end)
		}
	}
	for _, end := range ends {
		end()
	}
	if _, err := u.begin("c"); err != nil || len(u.of) != 1 || u.sum != 1 {
		t.Errorf("after the end %d arrive of %d people (%v)", u.sum, len(u.of), err)
	}
}

// A file may take longer than the server waits for other requests, if it keeps coming.
func TestASlowFileArrives(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	talk := chatPath(s.connected(s.workspace(), "Support").ID, contact)
	key := c.form(talk)
	srv := httptest.NewUnstartedServer(web.New(web.Options{Dashboard: s.serve}))
	srv.Config.ReadTimeout = 2 * time.Second // also for the work before the file, on a busy machine
	srv.Start()
	t.Cleanup(srv.Close)
	body, write := io.Pipe()
	form := multipart.NewWriter(write)
	go func() {
		_ = form.WriteField("key", key)
		part, err := form.CreateFormFile("file", "a.bin")
		for range 3 {
			if err == nil {
				_, err = io.CopyN(part, zeros{}, filePace)
			}
			<-time.After(srv.Config.ReadTimeout)
		}
		write.CloseWithError(errors.Join(err, form.Close()))
	}()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+talk, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.AddCookie(&http.Cookie{Name: "postern", Value: c.token()})
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if m := s.newest(s.workspace()); res.StatusCode != http.StatusSeeOther || m.Content.Media.Size != 3*filePace {
		t.Errorf("it is answered %d, and %+v is sent", res.StatusCode, m.Content.Media)
	}
}
