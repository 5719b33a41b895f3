package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/api/spec/spectest"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/testkit"
)

const exampleFile = "spec/examples/operations.json"

// example is a request of the document's and its answer.
type example struct {
	Request json.RawMessage `json:"request,omitzero"`
	Answer  json.RawMessage `json:"answer,omitzero"`
}

// examplePhone is a sandbox whose phone shows something.
type examplePhone struct{ fakeSandbox }

func (p examplePhone) Of(postern.WorkspaceID) (gateway.SandboxNetwork, error) { return p, nil }

func (examplePhone) Phone(number string) []gateway.PhoneMessage {
	return []gateway.PhoneMessage{{
		ID: "3EB0A1B2C3D4E5F60718", From: "+15551234567", To: number, Type: postern.KindText, Body: "Hello",
		At: postern.TimeOf(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)),
	}}
}

// showing has, for operations whose answer would show nothing, what shows
// something.
func showing() map[string]func(t *tenant) (target, body string) {
	return map[string]func(t *tenant) (string, string){
		"listDevices":  at("/v1/devices", nothingOf(connected), "", ""),
		"listWebhooks": at("/v1/webhooks", nothingOf(webhook), "", ""),
		"listMessages": func(t *tenant) (string, string) {
			device, _ := message(t)
			return "/v1/messages?deviceId=" + device, ""
		},
		"getWebhookStats": at("/v1/webhooks/", delivered, "/stats", ""),
		"streamEvents":    at("/v1/events/stream?deviceId=", connected, "", ""),
	}
}

// nothingOf makes something whose id is not asked for.
func nothingOf(build func(*tenant) string) func(*tenant) string {
	return func(t *tenant) string {
		build(t)
		return ""
	}
}

// TestExamplesAreAcceptedAndAnswered sends the example of each operation's
// request to a running server. The example of the answer must be what comes
// back. With -update the answers are written anew; an operation that has no
// example of a request gets that of the table of actors.
func TestExamplesAreAcceptedAndAnswered(t *testing.T) {
	t.Parallel()
	have, got, s := readExampleFile(t), map[string]example{}, newServerWith(t, examplePhone{})
	for id, r := range routes() {
		mine := s.tenant("enterprise")
		build := r.build
		if better, ok := showing()[id]; ok {
			build = better
		}
		target, body := build(mine)
		request := have[id].Request
		if request == nil && id != "uploadMedia" && body != "" {
			request = json.RawMessage(testkit.Example(body))
			if !*update {
				t.Errorf("%s has no example of a request: write one into %s, or run make openapi", id, exampleFile)
			}
		}
		if r.method == http.MethodGet || r.method == http.MethodDelete {
			request = nil
		}
		sent := withIDsOf(string(request), target+body)
		if id == "uploadMedia" { // its body is no JSON
			request, sent = nil, body
		}
		a := mine.exchange(r.method, target, sent, id)
		if a.Code != r.ok {
			t.Errorf("%s: the example is answered %d %s", id, a.Code, a.Body)
		}
		if x := (example{request, exampleOf(a)}); x.Request != nil || x.Answer != nil {
			got[id] = x
		}
	}
	if *update {
		writeExampleFile(t, got)
		return
	}
	for id, x := range got {
		if !equalJSON(x.Answer, have[id].Answer) {
			t.Errorf("%s: the answer is not the example: run make openapi\n got %s\nwant %s", id, x.Answer,
				have[id].Answer)
		}
	}
	for id := range have {
		if _, ok := got[id]; !ok {
			t.Errorf("there is an example of %s, which is no operation", id)
		}
	}
}

// exchange sends a request over a connection; a stream, which ends when its
// reader goes away, is asked for without one.
func (t *tenant) exchange(method, target, body, id string) *answerT {
	t.t.Helper()
	switch id {
	case "streamEvents":
		return t.followed(target)
	case "streamPresence":
		return t.present(target)
	}
	srv := httptest.NewServer(t.handler)
	defer srv.Close()
	req, err := http.NewRequestWithContext(t.t.Context(), method, srv.URL+target, strings.NewReader(body))
	if err != nil {
		t.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+t.key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.t.Fatal(err)
	}
	defer resp.Body.Close()
	a := &answerT{t.t, id, httptest.NewRecorder()}
	a.Code = resp.StatusCode
	maps.Copy(a.Header(), resp.Header)
	if _, err := a.Body.ReadFrom(resp.Body); err != nil {
		t.t.Fatal(err)
	}
	if err := described().check(req, a.Code, a.Header(), a.Body.Bytes()); err != nil {
		t.t.Errorf("%s: %v", id, err)
	}
	return a
}

// followed is what a stream of events gives a reader that saw the first event.
func (t *tenant) followed(target string) *answerT {
	t.t.Helper()
	var list struct{ Data []struct{ EventID string } }
	if err := json.Unmarshal(t.do("GET", "/v1/events", "").Body.Bytes(), &list); err != nil || len(list.Data) == 0 {
		t.t.Fatalf("no event to begin at: %v", err)
	}
	device := postern.DeviceID(target[strings.Index(target, "dev_"):])
	m := postern.Message{
		WorkspaceID: t.ws, DeviceID: device, Direction: postern.Inbound, Status: postern.Received,
		ChatID: "+15551234567", From: "+15551234567", Content: postern.Text("Hello"), NetworkID: "n",
		Source: postern.FromContact, SentAt: postern.TimeOf(time.Now()),
	}
	if err := t.g.Sessions.Receive(t.t.Context(), m, "+15551234567", postern.MessageReceived, gateway.ArrivedFile{}); err != nil {
		t.t.Fatal(err)
	}
	return t.do("GET", target, "", "Last-Event-ID", list.Data[0].EventID)
}

// present is what a stream of what others show gives a reader while something is shown.
func (t *tenant) present(target string) *answerT {
	t.t.Helper()
	board, at := t.g.Sessions.Presence(), postern.TimeOf(time.Now())
	board.Watch(func(id postern.DeviceID) {
		for _, u := range []gateway.Update{
			{Watching: &postern.Watching{Watching: true, NotWatched: []string{}}},
			{Typing: &postern.ShownTyping{
				ChatID: "+15551234567", From: "+15551234567", FromLID: "lid:123456789012345", Typing: postern.TypingText, At: at,
			}},
			{Presence: &postern.ShownPresence{ChatID: "+15551234567", LastSeenAt: at, At: at}},
		} {
			board.Publish(id, u)
		}
	})
	defer board.Watch(func(postern.DeviceID) {})
	return t.do("GET", target, "")
}

// exampleOf is an answer's body as JSON; a stream and an SVG are strings, and
// a PNG has no example.
func exampleOf(a *answerT) json.RawMessage {
	kind := a.Header().Get("Content-Type")
	text := aSignature.ReplaceAllString(a.Body.String(), "expires=1795251600&signature=9f86d081884c7d659a2feaa0c55ad015")
	text = strings.NewReplacer(`"name":"d"`, `"name":"Support"`, "https://hooks.test/a",
		"https://hooks.example.com/postern", `"qr":"code"`,
		`"qr":"2@7hQkX0t9…"`).Replace(text)
	switch {
	case text == "" || kind == "image/png" || a.Header().Get("Content-Disposition") != "" || a.Code >= 400:
		return nil
	case kind == "application/json":
		return json.RawMessage(testkit.Example(strings.TrimSpace(text)))
	}
	b, err := postern.EncodeJSON(testkit.Example(text))
	if err != nil {
		a.t.Fatal(err)
	}
	return b
}

var aSignature = regexp.MustCompile(`expires=\d+&signature=[0-9a-f]+`)

var anID = regexp.MustCompile(`\b(dev|msg|med|whk|evt|dlv|rpl|ct)_[0-9A-Z]{26}`)

// withIDsOf puts the ids that are there in place of an example's.
func withIDsOf(request, there string) string {
	for _, id := range anID.FindAllString(there, -1) {
		request = strings.ReplaceAll(request, id[:4]+"01JD8Z3NDEKTSV4RRFFQ69G5FA", id)
	}
	return request
}

func readExampleFile(t *testing.T) (list map[string]example) {
	t.Helper()
	raw, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func writeExampleFile(t *testing.T, list map[string]example) {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprint(&b, "{")
	for i, id := range slices.Sorted(maps.Keys(list)) {
		if i > 0 {
			fmt.Fprint(&b, ",")
		}
		x, err := postern.EncodeJSON(list[id])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%q:%s", id, x)
	}
	fmt.Fprint(&b, "}")
	var out bytes.Buffer
	if err := json.Indent(&out, b.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	if err := os.WriteFile(exampleFile, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func equalJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// TestExamplesAreInTheDocumentAndValid: an example for each body of a request
// and of an answer, for each webhook and for each refusal.
func TestExamplesAreInTheDocumentAndValid(t *testing.T) {
	t.Parallel()
	d, n := described(), 0
	valid := func(what, place string, text json.RawMessage) {
		n++
		if text == nil {
			t.Errorf("%s has no example", what)
		} else if err := d.schemas.ValidJSON(place, text); err != nil {
			t.Errorf("%s: the example %.200s is not valid: %v", what, text, err)
		}
	}
	for _, methods := range d.Paths {
		for _, op := range methods {
			for kind, c := range op.RequestBody.Content {
				valid(op.OperationID+" request", spectest.Pointer(op.place, "requestBody", "content", kind, "schema"), c.Example)
			}
			for code, r := range op.Responses {
				for kind, c := range r.Content {
					if code < "400" && kind != "image/png" && kind != "*/*" {
						valid(op.OperationID+" answer", spectest.Pointer(op.place, "responses", code, "content", kind, "schema"),
							c.Example)
					}
				}
			}
		}
	}
	for kind, methods := range d.Webhooks {
		valid(kind, spectest.Event(kind),
			methods["post"].RequestBody.Content["application/json"].Example)
	}
	for reason, x := range d.Components.Examples {
		var e struct{ Value json.RawMessage }
		if err := json.Unmarshal(x, &e); err != nil {
			t.Fatal(err)
		}
		valid(reason, "/components/schemas/Problem", e.Value)
	}
	if n < 70 {
		t.Errorf("%d examples only", n)
	}
}
