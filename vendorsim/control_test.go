package vendorsim_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow/proto/waE2E"
)

func TestControlRefusesNonsenseAndAnswersLists(t *testing.T) {
	t.Parallel()
	v, err := vendorsim.Open(vendorsim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	srv := httptest.NewServer(v.Control())
	defer srv.Close()
	call := func(method, path, body string) (int, map[string]any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		var out map[string]any
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatalf("%s %s = %d %s", method, path, res.StatusCode, text)
		}
		return res.StatusCode, out
	}
	for path, body := range map[string]string{
		"/scan":     `{"qr":"nonsense","phoneNumber":"+15550001111"}`,
		"/inbound":  `{"to":"+15550001111","from":"x","body":"y"}`,
		"/type":     `{}`,
		"/receipts": `{"account":"+15550001111","networkId":"A","status":"delivered"}`,
		"/faults":   `{"account":"*","kind":"tornado"}`,
		"/media":    `a file of nobody`, "/reactions": `{}`, "/edits": `{}`, "/revokes": `{}`, "/votes": `{}`, "/pins": `{}`, "/stars": `{}`, "/calls": `{}`,
	} {
		for _, b := range []string{body, "{", ""} {
			if status, out := call("POST", path, b); status != 400 || out["error"] == "" {
				t.Errorf("POST %s %q = %d %v, want 400 with an error", path, b, status, out)
			}
		}
	}
	for _, path := range []string{"/accounts", "/ledger", "/ledger?after=5&limit=2"} {
		if status, out := call("GET", path, ""); status != 200 || out["data"] == nil {
			t.Errorf("GET %s = %d %v", path, status, out)
		}
	}
	if status, _ := call("GET", "/media?number=x", ""); status != 400 {
		t.Errorf("the file of a message that is not there = %d, want 400", status)
	}
	if status, _ := call("GET", "/ledger?after=x", ""); status != 400 {
		t.Errorf("a ledger after x = %d, want 400", status)
	}
}

// control is the control interface of a vendor.
type control struct {
	t   *testing.T
	srv *httptest.Server
}

func newControl(t *testing.T, v *vendorsim.Vendor) control {
	t.Helper()
	srv := httptest.NewServer(v.Control())
	t.Cleanup(srv.Close)
	return control{t, srv}
}

// request sends a request and returns the body of the answer.
func (c control) request(method, path, contentType, body string) string {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.srv.URL+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	res, err := c.srv.Client().Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		c.t.Fatalf("%s %s = %d %s, %v", method, path, res.StatusCode, answer, err)
	}
	return string(answer)
}

// post sends a JSON body and returns the id of the message that is written.
func (c control) post(path, body string) string {
	c.t.Helper()
	var out struct{ NetworkID string }
	if err := json.Unmarshal([]byte(c.request("POST", path, "application/json", body)), &out); err != nil {
		c.t.Fatal(err)
	}
	return out.NetworkID
}

func TestControlWritesAndReadsMedia(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	c := newControl(t, v)
	var up struct{ Media json.RawMessage }
	answer := c.request("POST", "/media?account=%2B15550001111&type=image", "image/png", "picture")
	if err := json.Unmarshal([]byte(answer), &up); err != nil {
		t.Fatal(err)
	}
	id := c.post("/inbound", `{"to":"`+alice+`","from":"`+bob+`","type":"image","body":"look",
		"media":`+string(up.Media)+`}`)
	m := a.arrived(id)
	if got, err := a.wa.Download(t.Context(), m.Message.ImageMessage); err != nil || string(got) != "picture" ||
		m.Message.ImageMessage.GetMimetype() != "image/png" || m.Message.ImageMessage.GetCaption() != "look" {
		t.Errorf("downloaded %q, %v: %v", got, err, m.Message)
	}
	back := a.sent(&waE2E.Message{ImageMessage: a.uploaded([]byte("another"))})
	if got := c.request("GET", "/media?number=%2B15550002222&networkId="+back, "", ""); got != "another" {
		t.Errorf("bob's phone shows %q", got)
	}
}

func TestControlActs(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	c := newControl(t, v)
	poll := c.post("/inbound", `{"to":"`+alice+`","from":"`+bob+`","type":"poll",
		"poll":{"question":"drink?","options":["tea","coffee"]}}`)
	text := c.post("/inbound", `{"to":"`+alice+`","from":"`+bob+`","type":"text","body":"helo","secret":true}`)
	typed := c.post("/type", `{"account":"`+alice+`","to":"`+bob+`","type":"location",
		"location":{"latitude":1,"longitude":2}}`)
	by := func(path, who, target, members string) {
		t.Helper()
		a.arrived(c.post(path, `{"account":"`+alice+`","by":"`+who+`","target":"`+target+`"`+members+`}`))
	}
	by("/votes", alice, poll, `,"choices":["tea"]`)
	by("/reactions", bob, typed, `,"emoji":"👍"`)
	by("/pins", bob, typed, `,"seconds":86400`)
	c.request("POST", "/stars", "application/json", `{"account":"`+alice+`","target":"`+typed+`","starred":true}`)
	by("/edits", bob, text, `,"body":"hello"`)
	by("/edits", bob, text, `,"body":"hello!","sealed":true`)
	if got := shown(t, v, alice, text); got.Body != "hello!" {
		t.Errorf("alice's phone shows %+v, want the edited text", got)
	}
	by("/revokes", bob, text, "")
	c.post("/inbound", `{"to":"`+alice+`","from":"`+bob+`","type":"reaction","target":"`+poll+`","body":"🙂"}`)

	p, l := shown(t, v, bob, poll), shown(t, v, bob, typed)
	if len(p.Votes) != 1 || len(p.Reactions) != 1 || !l.Pinned || len(l.Reactions) != 1 || l.Location.Latitude != 1 {
		t.Errorf("bob's phone shows %+v and %+v", p, l)
	}
	if !shown(t, v, alice, typed).Starred || l.Starred {
		t.Error("alice's phone does not show the star, or bob's does")
	}
	if !shown(t, v, alice, text).Deleted {
		t.Error("alice's phone still shows the deleted text")
	}
}
