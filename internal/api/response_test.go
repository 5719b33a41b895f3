package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store"
)

// TestCreatedResourcesHaveALocation follows it, also when a response is repeated.
func TestCreatedResourcesHaveALocation(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	for _, tt := range []struct{ target, body string }{
		{"/v1/devices", `{"name":"d"}`},
		{"/v1/webhooks", `{"url":"https://hooks.test/"}`},
		{"/v1/media?filename=a.txt", "Hello"},
		{"/v1/devices/" + string(mine.device("d", postern.Unlinked)) + "/link", `{}`},
	} {
		a := mine.do("POST", tt.target, tt.body, "Idempotency-Key", tt.target)
		a.want(http.StatusCreated, "")
		there := a.Header().Get("Location")
		if b := mine.do("GET", there, ""); b.Code != http.StatusOK || b.member("id") != a.member("id") {
			t.Errorf("%s leads to %q, which is answered %d", tt.target, there, b.Code)
		}
		again := mine.do("POST", tt.target, tt.body, "Idempotency-Key", tt.target)
		if again.Header().Get("Idempotent-Replayed") != "true" || again.Header().Get("Location") != there {
			t.Errorf("repeated, %s has the headers %v", tt.target, again.Header())
		}
	}
	other := mine.tenant("growth")
	page := other.do("POST", "/v1/devices/"+linking(other)+"/link/page", `{}`)
	page.want(http.StatusCreated, "")
	if got := page.Header().Get("Location"); got == "" || got != page.member("url") {
		t.Errorf("a page is at %q", got)
	}
}

// TestPatchesMayBeSentAsWhatTheyAre: as merge patches, which no other operation takes.
func TestPatchesMayBeSentAsWhatTheyAre(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	id := string(mine.device("d", postern.Unlinked))
	for _, kind := range []string{"application/merge-patch+json", "application/merge-patch+json; charset=utf-8", "application/json"} {
		a := mine.do("PATCH", "/v1/devices/"+id, `{"name":"`+kind[:5]+`"}`, "Content-Type", kind)
		a.want(http.StatusOK, "")
		if a.member("name") != kind[:5] {
			t.Errorf("%s: the name is %q", kind, a.member("name"))
		}
	}
	for _, tt := range [][2]string{{"POST", "/v1/devices"}, {"PATCH", "/v1/devices/" + id}} {
		for _, kind := range []string{"application/merge-patch+json", "application/json-patch+json"} {
			a := mine.do(tt[0], tt[1], `{"name":"x"}`, "Content-Type", kind)
			if tt[0] == "PATCH" && kind == "application/merge-patch+json" {
				a.want(http.StatusOK, "")
				continue
			}
			a.want(http.StatusUnsupportedMediaType, postern.UnsupportedMediaType)
		}
	}
}

// TestPointersLeadToTheElement: not only to the field that contains it.
func TestPointersLeadToTheElement(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("growth")
	for body, want := range map[string]string{
		`{"url":"https://hooks.test/","events":["message.*","x"]}`:              "/events/1",
		`{"url":"https://hooks.test/","events":["*","device.*","x"]}`:           "/events/2",
		`{"url":"https://hooks.test/","events":["*",5]}`:                        "/events/1",
		`{"url":"https://hooks.test/","headers":{"X-A":"a","X-B":"ü"}}`:         "/headers/X-B",
		`{"url":"https://hooks.test/","headers":{"X-A":"a","A/~b":"b"}}`:        "/headers/A~1~0b",
		`{"url":"https://hooks.test/","headers":{"X-A":"a","Host":"b"}}`:        "/headers/Host",
		`{"url":"https://hooks.test/","signatures":["v1","v2"]}`:                "/signatures/1",
		`{"url":"https://hooks.test/","deviceIds":["dev_01JD8Z3NDEKTSV4R",{}]}`: "/deviceIds/1",
	} {
		p := mine.do("POST", "/v1/webhooks", body).want(http.StatusUnprocessableEntity, postern.ValidationFailed)
		if len(p.Errors) != 1 || p.Errors[0].Pointer != want {
			t.Errorf("%s: the places are %v, want %s", body, p.Errors, want)
		}
	}
	hook := mine.do("POST", "/v1/webhooks", `{"url":"https://hooks.test/"}`)
	hook.want(http.StatusCreated, "")
	p := mine.do("PATCH", "/v1/webhooks/"+hook.member("id"), `{"events":["message.*","x"]}`).want(
		http.StatusUnprocessableEntity, postern.ValidationFailed)
	if p.Errors[0].Pointer != "/events/1" {
		t.Errorf("of a change, the places are %v", p.Errors)
	}
	p = mine.do("GET", "/v1/events?type=message.*,x", "").want(http.StatusUnprocessableEntity, postern.ValidationFailed)
	if p.Errors[0].Pointer != "/query/type" {
		t.Errorf("of a query, the places are %v", p.Errors)
	}
}

// TestLimitsInCharactersCountCharacters: a name of 200 Chinese characters has 600 bytes.
func TestLimitsInCharactersCountCharacters(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("growth")
	for _, tt := range []struct {
		target, body string
		most         int
	}{
		{"/v1/devices", `{"name":"%s"}`, 200}, {"/v1/webhooks", `{"url":"https://hooks.test/","description":"%s"}`, 500},
	} {
		for _, letter := range []string{"x", "字", "👋"} {
			mine.do("POST", tt.target, fmt.Sprintf(tt.body, strings.Repeat(letter, tt.most))).want(http.StatusCreated, "")
			mine.do("POST", tt.target, fmt.Sprintf(tt.body, strings.Repeat(letter, tt.most+1))).want(
				http.StatusUnprocessableEntity, postern.ValidationFailed)
		}
	}
	if _, _, err := mine.g.Keys.Create(t.Context(), access.Operator(), mine.ws, gateway.NewKey{Name: strings.Repeat("字", 200)}); err != nil {
		t.Error(err)
	}
}

// TestTimesOfAMessageFollowEachOther: the network rounds its times down to whole seconds.
func TestTimesOfAMessageFollowEachOther(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("growth")
	device := connected(mine)
	a := mine.do("POST", "/v1/messages", `{"deviceId":"`+device+`","to":"+15551234567","body":"x"}`)
	a.want(http.StatusAccepted, "")
	id := postern.MessageID(a.member("id"))
	m, err := mine.db.Messages.Get(t.Context(), mine.ws, id)
	if err != nil {
		t.Fatal(err)
	}
	early := m.CreatedAt.Add(-time.Second)
	if err := mine.db.Outbox.Finish(t.Context(), store.FinishOutbound{
		MessageID: id, Status: postern.Sent, SentAt: early, At: m.CreatedAt,
	}); err != nil {
		t.Fatal(err)
	}
	var sent, list struct {
		CreatedAt, SentAt string
		Data              []struct {
			Message struct{ CreatedAt, SentAt string }
		}
	}
	for target, into := range map[string]any{"/v1/messages/" + string(id): &sent, "/v1/events?type=message.sent": &list} {
		b := mine.do("GET", target, "")
		b.want(http.StatusOK, "")
		if err := json.Unmarshal(b.Body.Bytes(), into); err != nil {
			t.Fatal(err)
		}
	}
	if sent.SentAt == "" || sent.SentAt < sent.CreatedAt || len(list.Data) != 1 ||
		list.Data[0].Message.SentAt < list.Data[0].Message.CreatedAt {
		t.Errorf("the message is %+v, its event %+v", sent, list.Data)
	}
}

// TestRetryAfterWhileACodeIsOnItsWay: until the first one is there, and only then.
func TestRetryAfterWhileACodeIsOnItsWay(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	id := mine.device("d", postern.Unlinked)
	link := "/v1/devices/" + string(id) + "/link"
	opened := mine.do("POST", link, `{}`)
	opened.want(http.StatusCreated, "")
	if got := opened.Header().Get("Retry-After"); got != "1" {
		t.Errorf("a new attempt without a code has Retry-After %q", got)
	}
	targets := []string{link, link + "/qr.svg", link + "/qr.png"}
	told := func(key string) (list []string) {
		for _, target := range targets {
			if a := mine.do("GET", target, "", "Authorization", "Bearer "+key); a.Header().Get("Retry-After") == "1" {
				list = append(list, target)
			}
		}
		return list
	}
	reader := mine.newKey(gateway.NewKey{Scopes: []postern.Scope{postern.DevicesRead}})
	if got := told(mine.key); !slices.Equal(got, targets) {
		t.Errorf("while the code is on its way, %v say when to look again", got)
	}
	if got := told(reader); got != nil { // it never sees a code
		t.Errorf("for a key that sees no code, %v say when to look again", got)
	}
	mine.showCode(id, "2@a", time.Now().Add(time.Minute))
	if got := told(mine.key); got != nil {
		t.Errorf("when the code is there, %v say when to look again", got)
	}
	mine.do("DELETE", link, "").want(http.StatusNoContent, "")
	if got := told(mine.key); got != nil {
		t.Errorf("when the attempt has ended, %v say when to look again", got)
	}
}
