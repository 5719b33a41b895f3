package listen

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"postern/internal/egress"
)

const (
	received = `{"eventId":"evt_1","type":"message.received","timestamp":"2026-11-21T09:00:00.120Z","deviceId":"dev_1","workspaceId":"ws_1","sequence":1,"message":{"id":"msg_1","from":"+15551234567","body":"the \"text\" <&> \u001b[31m","chatId":"+15551234567","to":"+15550001111"}}`
	hidden   = `{"eventId":"evt_1","type":"message.received","timestamp":"2026-11-21T09:00:00.120Z","deviceId":"dev_1","message":{"id":"msg_1","chatId":"lid:123"}}`
	failed   = `{"eventId":"evt_2","type":"message.failed","timestamp":"2026-11-21T09:00:00.120Z","deviceId":"dev_1","message":{"id":"msg_2","from":"+15550001111","to":"+15551234567","body":"the text","status":"failed","error":{"code":"RECIPIENT_NOT_FOUND","detail":"x"}}}`
	dropped  = `{"eventId":"evt_3","type":"device.disconnected","timestamp":"2026-11-21T09:00:00.120Z","deviceId":"dev_1","device":{"id":"dev_1","status":"disconnected","statusReason":"socket-closed"}}`
	called   = `{"eventId":"evt_4","type":"call.received","timestamp":"2026-11-21T09:00:00.120Z","deviceId":"dev_1","call":{"id":"3EB0","from":"+15551234567"}}`
	unknown  = `{"eventId":"evt_4","type":"group.joined","timestamp":"2026-11-21T09:00:00.120Z","deviceId":"dev_1","group":{}}`
	inGroup  = `{"eventId":"evt_6","type":"message.received","timestamp":"2026-11-21T09:00:00.120Z","deviceId":"dev_1",` +
		`"message":{"id":"msg_1","from":"+15551234567","to":"+15550001111","chatId":"group:1203"}}`
	toGroup = `{"eventId":"evt_7","type":"message.delivered","timestamp":"2026-11-21T09:00:00.120Z","deviceId":"dev_1",` +
		`"message":{"id":"msg_2","from":"+15550001111","chatId":"group:1203","status":"delivered"}}`
	hostile = "{\"eventId\":\"evt_5\",\"type\":\"x\",\"timestamp\":\"2026-11-21T09:00:00.120Z\",\"deviceId\":\"\\u001b]0;x\\u0007\\n\\u202e\"}"
)

func (p printer) line(t *testing.T, body string, o *outcome) string {
	t.Helper()
	var out bytes.Buffer
	p.out = &out
	e := read([]byte(body))
	if err := p.event(message{id: e.EventID, name: e.Type, data: []byte(body)}, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestLineIsForPeople(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC).Local().Format(time.DateTime)
	if time.Since(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)) < 24*time.Hour {
		at = at[len("2026-11-21 "):]
	}
	for _, tt := range []struct {
		body, want string
		text       bool
	}{
		{received, "message.received    dev_1  msg_1 from +15551234567", false},
		{received, "message.received    dev_1  msg_1 from +15551234567 \"the \\\"text\\\" <&> \\x1b[31m\"", true},
		{hidden, "message.received    dev_1  msg_1 from lid:123", false},
		{inGroup, "message.received    dev_1  msg_1 from +15551234567 in group:1203", false},
		{toGroup, "message.delivered   dev_1  msg_2 to group:1203", false},
		{failed, "message.failed      dev_1  msg_2 to +15551234567 RECIPIENT_NOT_FOUND", false},
		{dropped, "device.disconnected  dev_1  disconnected (socket-closed)", false},
		{called, "call.received       dev_1  3EB0 from +15551234567", false},
		{unknown, "group.joined        dev_1  ", false},
		{hostile, "x                   \uFFFD]0;x\uFFFD\uFFFD\uFFFD  ", false},
	} {
		if got := (printer{text: tt.text}).line(t, tt.body, nil); got != at+"  "+tt.want+"\n" {
			t.Errorf("printed as\n%qwant\n%q", got, at+"  "+tt.want+"\n")
		}
	}
}

func TestOutcomeForPeople(t *testing.T) {
	t.Parallel()
	failure := func(reason egress.Reason) error { return &egress.Error{Reason: reason, Err: errors.New("the cause")} }
	for _, tt := range []struct {
		o    outcome
		want string
	}{
		{outcome{200, 12 * time.Millisecond, nil}, "200 12 ms"},
		{outcome{204, 0, nil}, "204 0 ms"},
		{outcome{500, 3 * time.Millisecond, failure(egress.Status)}, "500 3 ms, not accepted"},
		{outcome{410, 3 * time.Millisecond, failure(egress.Status)}, "410 3 ms, not accepted (this would disable a webhook endpoint)"},
		{outcome{307, 3 * time.Millisecond, failure(egress.Redirect)}, "307 3 ms, not accepted: redirects are not followed"},
		{outcome{0, time.Millisecond, failure(egress.Connect)}, "not accepted: the cause"},
		{outcome{0, 15 * time.Second, failure(egress.Timeout)}, "not accepted: no complete response within 15s"},
		{outcome{200, 15 * time.Second, failure(egress.Timeout)}, "not accepted: no complete response within 15s"},
		{outcome{200, time.Second, failure(egress.Body)}, "not accepted: the cause"},
		{outcome{err: os.ErrInvalid}, "not accepted: invalid argument"},
	} {
		if got := tt.o.String(); got != tt.want {
			t.Errorf("%+v is %q, want %q", tt.o, got, tt.want)
		}
	}
}

func TestObjectIsForPrograms(t *testing.T) {
	t.Parallel()
	const head = `"timestamp":"2026-11-21T09:00:00.120Z","deviceId":"dev_1"`
	for _, tt := range []struct {
		body string
		text bool
		o    *outcome
		want string
	}{
		{received, false, nil, `{"eventId":"evt_1","type":"message.received",` + head + `,"messageId":"msg_1","from":"+15551234567","to":"+15550001111"}`},
		{received, true, nil, `{"eventId":"evt_1","type":"message.received",` + head + `,"messageId":"msg_1","from":"+15551234567","to":"+15550001111","event":` + received + `}`},
		{failed, false, &outcome{500, 3 * time.Millisecond, &egress.Error{Reason: egress.Status, Err: os.ErrInvalid}}, `{"eventId":"evt_2","type":"message.failed",` + head + `,"messageId":"msg_2","from":"+15550001111","to":"+15551234567","status":"failed","forward":{"taken":false,"httpStatus":500,"reason":"status","durationMs":3}}`},
		{dropped, false, &outcome{200, 12 * time.Millisecond, nil}, `{"eventId":"evt_3","type":"device.disconnected",` + head + `,"status":"disconnected","forward":{"taken":true,"httpStatus":200,"durationMs":12}}`},
		{unknown, false, nil, `{"eventId":"evt_4","type":"group.joined",` + head + `}`},
	} {
		if got := (printer{json: true, text: tt.text}).line(t, tt.body, tt.o); got != tt.want+"\n" {
			t.Errorf("printed as\n%swant\n%s", got, tt.want)
		}
	}
}

// TestTextIsShownOnlyOnRequest: conversations are private.
func TestTextIsShownOnlyOnRequest(t *testing.T) {
	t.Parallel()
	for _, body := range []string{received, failed} {
		for _, json := range []bool{false, true} {
			if got := (printer{json: json}).line(t, body, &outcome{status: 200}); strings.Contains(got, "the") {
				t.Errorf("without a request it prints %s", got)
			}
		}
	}
	long := strings.Replace(failed, "the text", strings.Repeat("ä", 1000), 1)
	if got := (printer{text: true}).line(t, long, nil); !strings.Contains(got,
		"\""+strings.Repeat("ä", shownText-1)+"…\"") {
		t.Errorf("a long text is printed as %s", got)
	}
}
