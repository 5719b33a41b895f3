package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"postern/internal/postern"
)

// sendFile sends a message to a contact; members follow its device and its recipient.
func (t *tenant) sendFile(device, members string, headers ...string) *answerT {
	t.t.Helper()
	return t.do("POST", "/v1/messages", fmt.Sprintf(`{"deviceId":%q,"to":"+15551234567",%s}`, device, members), headers...)
}

// sentFile is what a message shows of its file.
type sentFile struct {
	Type, Body           string
	Media                postern.Media
	ViewOnce, GIF, Round bool
}

func (a *answerT) file() (m sentFile) {
	a.t.Helper()
	a.want(http.StatusAccepted, "")
	if err := json.Unmarshal(a.Body.Bytes(), &m); err != nil {
		a.t.Fatal(err)
	}
	return m
}

func TestMessagesOfEveryKindCarryFiles(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	device := connected(mine)
	image := mine.keep(picture, "a.png")
	const sound = "OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x13OpusHead\x01\x01\x00\x00\x80\xbb\x00\x00\x00\x00\x00"
	audio := mine.keep(sound, "a.ogg")
	place := regexp.MustCompile(`,"position":\d+`) // which the response to the request does not have
	for _, tt := range []struct{ members, name string }{
		{`"type":"image","media":{"id":"` + image + `"},"body":"A picture","viewOnce":true`, "a.png"},
		{`"type":"image","media":{"id":"` + image + `","filename":"b.png"}`, "b.png"},
		{`"type":"document","media":{"id":"` + image + `"},"body":"A picture"`, "a.png"},
		{`"type":"audio","media":{"id":"` + audio + `"},"viewOnce":true`, "a.ogg"},
		{`"type":"voice","media":{"id":"` + audio + `"},"viewOnce":true`, "a.ogg"},
		{`"type":"sticker","media":{"id":"` + image + `"}`, "a.png"},
		{`"type":"video","media":{"url":"https://files.test/a"},"gif":true,"body":"Look","viewOnce":true`, ""},
		{`"type":"video","media":{"url":"https://files.test/a","filename":"a.mp4"},"round":true`, "a.mp4"},
		{`"type":"document","media":{"data":"SGVsbG8=","mimeType":"image/png","filename":"../a.txt"}`, "a.txt"},
		{`"type":"image","media":{"data":"` + base64.StdEncoding.EncodeToString([]byte(picture)) + `","mimeType":"image/png"}`, ""},
	} {
		a := mine.sendFile(device, tt.members)
		a.what += " " + tt.members
		m := a.file()
		want := postern.MediaReady
		if strings.Contains(tt.members, "https") {
			want = postern.MediaPending
		}
		if m.Media.Status != want || m.Media.Filename != tt.name || m.Media.ID == "" || !strings.Contains(tt.members, `"`+m.Type+`"`) ||
			m.ViewOnce != strings.Contains(tt.members, "viewOnce") || (m.Body == "") == strings.Contains(tt.members, `"body"`) ||
			m.GIF != strings.Contains(tt.members, `"gif"`) || m.Round != strings.Contains(tt.members, `"round"`) {
			t.Errorf("%s is shown as %s", tt.members, a.Body)
		}
		b := mine.do("GET", "/v1/messages/"+a.member("id"), "")
		if place.ReplaceAllString(b.Body.String(), "") != a.Body.String() {
			t.Errorf("%s: later the message is %s", tt.members, b.Body)
		}
	}
	m := mine.sendFile(device, `"type":"document","media":{"data":"SGVsbG8=","mimeType":"image/png","filename":"a.txt"}`).file()
	if m.Media.MIMEType != "text/plain" || m.Media.SHA256 != hashOf("Hello") {
		t.Errorf("bytes in a message: %+v", m.Media)
	}
	if a := mine.do("GET", "/v1/media/"+string(m.Media.ID)+"/content", ""); a.Body.String() != "Hello" {
		t.Errorf("its bytes are %d %q", a.Code, a.Body)
	}
}

func TestMembersOfMessagesWithFiles(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	device := connected(mine)
	image := mine.keep(picture, "a.png")
	nameless := mine.keep("Hello", "")
	const at = `"media":{"url":"https://files.test/a","filename":"a"}`
	for _, tt := range []struct{ members, pointers string }{
		{`"type":"image"`, "/media"},
		{`"type":"image","body":"x"`, "/media"},
		{`"type":"image",` + at + `,"gif":true`, "/gif"},
		{`"type":"image",` + at + `,"round":true,"poll":{}`, "/poll /round"},
		{`"type":"image",` + at + `,"body":""`, "/body"},
		{`"type":"video",` + at + `,"gif":true,"round":true`, "/round"},
		{`"type":"video",` + at + `,"location":{}`, "/location"},
		{`"type":"audio",` + at + `,"body":"x"`, "/body"},
		{`"type":"audio",` + at + `,"gif":true`, "/gif"},
		{`"type":"voice",` + at + `,"body":"x","round":true`, "/body /round"},
		{`"type":"document",` + at + `,"viewOnce":true`, "/viewOnce"},
		{`"type":"sticker",` + at + `,"body":"x","viewOnce":true,"contacts":[]`, "/body /contacts /viewOnce"},
		{`"body":"x",` + at, "/media"},
		{`"type":"text","body":"x","viewOnce":true`, "/viewOnce"},
		{`"type":"location","location":{"latitude":1,"longitude":1},` + at, "/media"},
		{`"type":"image","media":"x"`, "/media"},
		{`"type":"image","media":null`, "/media"},
		{`"type":"image","media":{}`, "/media"},
		{`"type":"image","media":{"filename":"a"}`, "/media"},
		{`"type":"image","media":{"id":""}`, "/media/id"},
		{`"type":"image","media":{"id":"med_x"}`, "/media/id"},
		{`"type":"image","media":{"id":"` + image + `","url":"https://files.test/a"}`, "/media/url"},
		{`"type":"image","media":{"id":"` + image + `","mimeType":"image/png"}`, "/media/mimeType"},
		{`"type":"image","media":{"id":"` + image + `","filename":"` + strings.Repeat("a", 201) + `"}`, "/media/filename"},
		{`"type":"image","media":{"url":"https://files.test/a","mimeType":"image/png"}`, "/media/mimeType"},
		{`"type":"image","media":{"url":"http://169.254.169.254/"}`, "/media/url"},
		{`"type":"image","media":{"url":"file:///etc/passwd"}`, "/media/url"},
		{`"type":"image","media":{"url":""}`, "/media/url"},
		{`"type":"image","media":{"url":7}`, "/media/url"},
		{`"type":"image","media":{"data":"SGVsbG8="}`, "/media/mimeType"},
		{`"type":"image","media":{"data":"","mimeType":"image/png"}`, "/media/data"},
		{`"type":"image","media":{"data":"SGVsbG8","mimeType":"image/png"}`, "/media/data"},
		{`"type":"image","media":{"data":"SGVs\nbG8=","mimeType":"image/png"}`, "/media/data"},
		{`"type":"image","media":{"data":"SGVsbG9=","mimeType":"image/png"}`, "/media/data"},
		{`"type":"image","media":{"data":"data:image/png;base64,SGVsbG8=","mimeType":"image/png"}`, "/media/data"},
		{`"type":"image","media":{"data":"SGVsbG8=","mimeType":"image/png"}`, "/media"},
		{`"type":"audio","media":{"id":"` + image + `"}`, "/media"},
		{`"type":"document","media":{"id":"` + nameless + `"}`, "/media/filename"},
		{`"type":"document","media":{"url":"https://files.test/a"}`, "/media/filename"},
		{`"type":"document","media":{"data":"SGVsbG8=","mimeType":"text/plain"}`, "/media/filename"},
		{`"type":"document","media":{"data":"SGVsbG8=","mimeType":"text/plain","filename":""}`, "/media/filename"},
	} {
		a := mine.sendFile(device, tt.members)
		a.what += " " + tt.members
		p := a.want(http.StatusUnprocessableEntity, postern.ValidationFailed)
		var pointers []string
		for _, e := range p.Errors {
			pointers = append(pointers, e.Pointer)
		}
		slices.Sort(pointers)
		if got := strings.Join(pointers, " "); got != tt.pointers {
			t.Errorf("%s is refused at %s, want %s: %s", tt.members, got, tt.pointers, a.Body)
		}
	}
	mine.sendFile(device, `"type":"image","media":{"ID":"x"}`).want(http.StatusBadRequest, postern.MalformedRequest)
	mine.sendFile(device, `"type":"image","media":{"id":"x","id":"y"}`).want(http.StatusBadRequest, postern.MalformedRequest)
	if l := mine.do("GET", "/v1/messages?deviceId="+device, "").list(); len(l.Data) != 0 {
		t.Errorf("%d messages were sent", len(l.Data))
	}
}

func TestMessageWithAFileIsSentOnce(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	device := connected(mine)
	file := mine.keep("Hello", "a.txt")
	for name, members := range map[string]string{
		"id":   `"type":"document","media":{"id":"` + file + `"}`,
		"url":  `"type":"document","media":{"url":"https://files.test/a","filename":"a.txt"}`,
		"data": `"type":"document","media":{"data":"SGVsbG8=","mimeType":"text/plain","filename":"a.txt"}`,
	} {
		first := mine.sendFile(device, members, "Idempotency-Key", name)
		first.want(http.StatusAccepted, "")
		again := mine.sendFile(device, members, "Idempotency-Key", name)
		again.want(http.StatusAccepted, "")
		if again.Header().Get("Idempotent-Replayed") != "true" || again.Body.String() != first.Body.String() {
			t.Errorf("%s: the second response is %v %s, the first %s", name, again.Header(), again.Body, first.Body)
		}
		mine.sendFile(device, members+`,"body":"x"`, "Idempotency-Key", name).want(http.StatusUnprocessableEntity, postern.IdempotencyReused)
	}
	if l := mine.do("GET", "/v1/messages?deviceId="+device, "").list(); len(l.Data) != 3 {
		t.Errorf("%d messages were sent, want 3", len(l.Data))
	}
}
