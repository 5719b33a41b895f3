package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/api"
	"postern/internal/gateway"
	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
)

// canary is in every bad input: no answer and no log may repeat it.
const canary = "CANARYVALUE4711"

type badBody struct {
	name, body string
	status     int
	reason     postern.Reason
	pointers   string // of a 422, with spaces between
}

// badBodies are bodies for POST /v1/messages; D is a connected device.
func badBodies() []badBody {
	const (
		malformed, invalid = postern.MalformedRequest, postern.ValidationFailed
		good               = `"deviceId":"D","to":"+15551234567"`
	)
	deep := func(n int) string {
		return `{` + good + `,"body":"` + canary + `","metadata":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	return []badBody{
		{"nothing", ``, 400, malformed, ""},
		{"blanks", `   `, 400, malformed, ""},
		{"no JSON", canary, 400, malformed, ""},
		{"half an object", `{` + good + `,"body":"` + canary, 400, malformed, ""},
		{"single quotes", `{'body':'` + canary + `'}`, 400, malformed, ""},
		{"comment", `{` + good + `,"body":"` + canary + `"} // ok`, 400, malformed, ""},
		{"comma at the end", `{` + good + `,"body":"` + canary + `",}`, 400, malformed, ""},
		{"two values", `{` + good + `,"body":"` + canary + `"}{}`, 400, malformed, ""},
		{"text after it", `{` + good + `,"body":"` + canary + `"}` + canary, 400, malformed, ""},
		{"byte order mark", "\xef\xbb\xbf{" + good + `,"body":"` + canary + `"}`, 400, malformed, ""},
		{"UTF-16", "\xff\xfe{\x00}\x00" + canary, 400, malformed, ""},
		{"duplicate member", `{` + good + `,"body":"` + canary + `","body":"b"}`, 400, malformed, ""},
		{"duplicate label", `{` + good + `,"body":"b","metadata":{"a":"` + canary + `","a":"2"}}`, 400, malformed, ""},
		{"duplicate by escape", `{` + good + `,"body":"` + canary + `","\u0062ody":"b"}`, 400, malformed, ""},
		{"member in another case", `{"deviceId":"D","To":"` + canary + `","body":"b"}`, 400, malformed, ""},
		{"members in both cases", `{` + good + `,"TO":"` + canary + `","body":"b"}`, 400, malformed, ""},
		{"Kelvin sign for k", `{` + good + `,"body":"b","\u212Anown":"` + canary + `"}`, 422, invalid, "/\u212Anown"},
		{"long s in a name", `{` + good + `,"body":"b","expire\u017FIn":1,"x":"` + canary + `"}`, 400, malformed, ""},
		{"lone high surrogate", `{` + good + `,"body":"` + canary + `\ud800"}`, 400, malformed, ""},
		{"lone low surrogate", `{` + good + `,"body":"` + canary + `\udc00"}`, 400, malformed, ""},
		{"swapped surrogates", `{` + good + `,"body":"` + canary + `\udc00\ud800"}`, 400, malformed, ""},
		{"broken UTF-8", `{` + good + `,"body":"` + canary + "\xff\"}", 400, malformed, ""},
		{"overlong UTF-8", `{` + good + `,"body":"` + canary + "\xc0\xaf\"}", 400, malformed, ""},
		{"NUL escaped", `{` + good + `,"body":"` + canary + `\u0000"}`, 400, malformed, ""},
		{"NUL in a label", `{` + good + `,"body":"` + canary + `","metadata":{"a":"\u0000"}}`, 400, malformed, ""},
		{"NUL in a name", `{` + good + `,"body":"` + canary + `","metadata":{"a\u0000":"b"}}`, 400, malformed, ""},
		{"NUL in an unknown member", `{` + good + `,"body":"` + canary + `","x":["\u0000"]}`, 400, malformed, ""},
		{"NUL raw", `{` + good + `,"body":"` + canary + "\x00\"}", 400, malformed, ""},
		{"line feed raw", `{` + good + `,"body":"` + canary + "\n\"}", 400, malformed, ""},
		{"33 levels", deep(32), 400, malformed, ""},
		{"a hundred thousand levels", deep(100_000), 400, malformed, ""},
		{"infinite number", `{` + good + `,"body":"` + canary + `","expiresIn":Infinity}`, 400, malformed, ""},
		{"number with a zero in front", `{` + good + `,"body":"` + canary + `","expiresIn":010}`, 400, malformed, ""},

		{"32 levels", deep(31), 422, invalid, "/metadata"},
		{"a list", `["` + canary + `"]`, 422, invalid, ""},
		{"a text", `"` + canary + `"`, 422, invalid, ""},
		{"null", `null`, 422, invalid, ""},
		{"empty object", `{}`, 422, invalid, "/body /deviceId /to"},
		{"unknown member", `{` + good + `,"body":"b","colour":"` + canary + `"}`, 422, invalid, "/colour"},
		{"assigned members", `{` + good + `,"body":"b","workspaceId":"` + canary + `","status":"sent"}`, 422, invalid, "/status /workspaceId"},
		{"unknown name with signs", `{` + good + `,"body":"b","a/b~c.d[0]":"` + canary + `"}`, 422, invalid, "/a~1b~0c.d[0]"},
		{"text for a number", `{` + good + `,"body":"b","expiresIn":"` + canary + `"}`, 422, invalid, "/expiresIn"},
		{"number for a text", `{"deviceId":"D","to":15551234567,"body":"` + canary + `"}`, 422, invalid, "/to"},
		{"null for a text", `{"deviceId":"D","to":null,"body":"` + canary + `"}`, 422, invalid, "/to"},
		{"null for what may be left out", `{` + good + `,"body":"` + canary + `","metadata":null}`, 422, invalid, "/metadata"},
		{"object for a text", `{` + good + `,"body":{"a":"` + canary + `"}}`, 422, invalid, "/body"},
		{"list for metadata", `{` + good + `,"body":"b","metadata":["` + canary + `"]}`, 422, invalid, "/metadata"},
		{"number in metadata", `{` + good + `,"body":"` + canary + `","metadata":{"x":1}}`, 422, invalid, "/metadata/x"},
		{"dots in metadata", `{"deviceId":"D","body":"` + canary + `","metadata":{"a.b":1,"c[0]":true}}`, 422, invalid, "/metadata/a.b /metadata/c[0] /to"},
		{"nested metadata", `{` + good + `,"body":"b","metadata":{"x":{"y":"` + canary + `"}}}`, 422, invalid, "/metadata/x"},
		{"fraction", `{` + good + `,"body":"` + canary + `","expiresIn":1.5}`, 422, invalid, "/expiresIn"},
		{"whole number with a point", `{` + good + `,"body":"` + canary + `","expiresIn":1.0}`, 422, invalid, "/expiresIn"},
		{"exponent", `{` + good + `,"body":"` + canary + `","expiresIn":1e2}`, 422, invalid, "/expiresIn"},
		{"number beyond range", `{` + good + `,"body":"` + canary + `","expiresIn":1e400}`, 422, invalid, "/expiresIn"},
		{"number of 64 bits", `{` + good + `,"body":"` + canary + `","expiresIn":9223372036854775808}`, 422, invalid, "/expiresIn"},
		{"zero", `{` + good + `,"body":"` + canary + `","expiresIn":0}`, 422, invalid, "/expiresIn"},
		{"minus zero", `{` + good + `,"body":"` + canary + `","expiresIn":-0}`, 422, invalid, "/expiresIn"},
		{"negative", `{` + good + `,"body":"` + canary + `","expiresIn":-1}`, 422, invalid, "/expiresIn"},
		{"too long a wait", `{` + good + `,"body":"` + canary + `","expiresIn":604801}`, 422, invalid, "/expiresIn"},
		{"unknown kind", `{` + good + `,"body":"b","type":"` + canary + `"}`, 422, invalid, "/type"},
		{"empty kind", `{` + good + `,"body":"` + canary + `","type":""}`, 422, invalid, "/type"},
		{"unknown choice", `{` + good + `,"body":"b","whenDisconnected":"` + canary + `"}`, 422, invalid, "/whenDisconnected"},
		{"empty text", `{` + good + `,"body":""}`, 422, invalid, "/body"},
		{"no device", `{"deviceId":"","to":"+15551234567","body":"` + canary + `"}`, 422, invalid, "/deviceId"},
		{"number with letters", `{"deviceId":"D","to":"` + canary + `","body":"b"}`, 422, invalid, "/to"},
		{"number of a group", `{"deviceId":"D","to":"1555` + canary + `@g.us","body":"b"}`, 422, invalid, "/to"},
		{"number with zeros", `{"deviceId":"D","to":"001 (555) 123 4567","body":"` + canary + `"}`, 422, invalid, "/to"},
		{"Arabic digits", `{"deviceId":"D","to":"+١٥٥٥١٢٣٤٥٦٧","body":"` + canary + `"}`, 422, invalid, "/to"},
		{"full-width digits", `{"deviceId":"D","to":"+１５５５１２３４５６７","body":"` + canary + `"}`, 422, invalid, "/to"},
		{"number too long", `{"deviceId":"D","to":"+1234567890123456","body":"` + canary + `"}`, 422, invalid, "/to"},
		{"all wrong", `{"deviceId":1,"to":2,"body":3,"type":4,"metadata":5,"expiresIn":"` + canary + `","whenDisconnected":7,"y":8}`, 422, invalid, "/body /deviceId /expiresIn /metadata /to /type /whenDisconnected /y"},

		{"text of 64 KiB and one", `{` + good + `,"body":"` + canary + strings.Repeat("a", 65_536-len(canary)+1) + `"}`, 413, postern.PayloadTooLarge, ""},
		{"label of 501 bytes", `{` + good + `,"body":"b","metadata":{"a":"` + canary + strings.Repeat("a", 501) + `"}}`, 413, postern.PayloadTooLarge, ""},
		{"a thousand labels and one", `{` + good + `,"body":"b","metadata":{` + labels(1001) + `"z":"` + canary + `"}}`, 413, postern.PayloadTooLarge, ""},
		{"body over 1 MiB", `{` + good + `,"body":"` + canary + strings.Repeat("a", 1<<20) + `"}`, 413, postern.PayloadTooLarge, ""},
	}
}

func labels(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":"v",`, i)
	}
	return b.String()
}

func TestStrictInput(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("enterprise")
	device := connected(mine)
	for _, tt := range badBodies() {
		a := mine.do("POST", "/v1/messages", strings.Replace(tt.body, `"D"`, `"`+device+`"`, 1), "Content-Type",
			"application/json")
		a.what = tt.name
		p := a.want(tt.status, tt.reason)
		var pointers []string
		for _, f := range p.Errors {
			pointers = append(pointers, f.Pointer)
			if f.Detail == "" {
				t.Errorf("%s: %s has no detail", tt.name, f.Pointer)
			}
		}
		if got := strings.Join(pointers, " "); got != tt.pointers || tt.status == 422 && len(p.Errors) == 0 {
			t.Errorf("%s: pointers %q, want %q", tt.name, got, tt.pointers)
		}
		if strings.Contains(a.Body.String(), canary) {
			t.Errorf("%s: the answer repeats the input: %s", tt.name, a.Body)
		}
	}
	rows, err := s.g.Messages.List(t.Context(), mine.caller(), gateway.MessageQuery{})
	if err != nil || len(rows.Data) != 0 {
		t.Errorf("bad bodies made %d messages, %v", len(rows.Data), err)
	}
	if used, err := s.db.Usage.Messages(t.Context(), mine.ws, postern.TimeOf(time.Now()).String()[:7]); err != nil ||
		used != 0 {
		t.Errorf("bad bodies cost %d messages, %v", used, err)
	}
	if log := s.log.String(); strings.Contains(log, canary) || strings.Contains(log, "15551234567") {
		t.Error("the log repeats the input")
	}
}

// TestGoodInput shows what strictness must not refuse.
func TestGoodInput(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	device := connected(mine)
	for name, body := range map[string]string{
		"blanks around":      " \n{\"deviceId\":\"D\",\"to\":\"+15551234567\",\"body\":\"b\"}\r\n ",
		"escapes":            `{"deviceId":"D","to":"+15551234567","body":"\ud83d\ude00 <&> \u2028\\"}`,
		"bare digits":        `{"deviceId":"D","to":"15551234567","body":"b"}`,
		"hidden number":      `{"deviceId":"D","to":"lid:123456789","body":"b"}`,
		"labels in any case": `{"deviceId":"D","to":"+15551234567","body":"b","metadata":{"to":"1","To":"2","":"3"}}`,
		"64 KiB of text":     `{"deviceId":"D","to":"+15551234567","body":"` + strings.Repeat("a", 65_536) + `"}`,
		"longest wait":       `{"deviceId":"D","to":"+15551234567","body":"b","expiresIn":604800}`,
	} {
		a := mine.do("POST", "/v1/messages", strings.Replace(body, `"D"`, `"`+device+`"`, 1), "Content-Type",
			"Application/JSON; charset=UTF-8")
		a.what = name
		a.want(http.StatusAccepted, "")
		if name == "escapes" && a.member("body") != "😀 <&> \u2028\\" || strings.Contains(a.Body.String(), `\u003c`) {
			t.Errorf("%s: came back as %s", name, a.Body)
		}
	}
}

func TestOtherBodies(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	device := connected(mine)
	for _, tt := range []struct{ target, body, pointer string }{
		{"/v1/devices", `{"name":""}`, "/name"},
		{"/v1/devices", `{"name":"` + strings.Repeat("ä", 201) + `"}`, "/name"},
		{"/v1/devices", `{"name":"a\u0007"}`, "/name"},
		{"/v1/devices", `{"name":"a","status":"connected","plan":"pro"}`, "/plan"},
		{"/v1/devices/" + device + "/unlink", `{"a":1}`, "/a"},
		{"/v1/devices/" + device + "/link", `{"method":"sms"}`, "/method"},
		{"/v1/devices/" + device + "/link", `{"allowNewNumber":"true"}`, "/allowNewNumber"},
		{"/v1/webhooks", `{"url":"http://hooks.test"}`, "/url"},
		{"/v1/webhooks", `{"url":"https://hooks.test","events":["nope"]}`, "/events/0"},
		{"/v1/webhooks", `{"url":"https://hooks.test","events":[]}`, "/events"},
		{"/v1/webhooks", `{"url":"https://hooks.test","events":["*",1]}`, "/events/1"},
		{"/v1/webhooks", `{"url":"https://hooks.test","secret":"short"}`, "/secret"},
		{"/v1/webhooks", `{"url":"https://hooks.test","maxInFlight":65}`, "/maxInFlight"},
		{"/v1/webhooks", `{"url":"https://hooks.test","headers":{"Host":"x"}}`, "/headers/Host"},
		{"/v1/webhooks", `{"url":"https://hooks.test","headers":{"X-A":1}}`, "/headers/X-A"},
		{"/v1/sandbox/devices/" + device + "/scan", `{"phoneNumber":"x"}`, "/phoneNumber"},
		{"/v1/sandbox/devices/" + device + "/inbound", `{"from":"x","body":"b"}`, "/from"},
		{"/v1/sandbox/devices/" + device + "/faults", `{"kind":"explode"}`, "/kind"},
		{"/v1/sandbox/devices/" + device + "/receipts", `{"messageId":"m","status":"seen"}`, "/status"},
	} {
		p := mine.do("POST", tt.target, tt.body).want(http.StatusUnprocessableEntity, postern.ValidationFailed)
		if !slices.ContainsFunc(p.Errors, func(f postern.Field) bool { return f.Pointer == tt.pointer }) {
			t.Errorf("%s %s: %+v, want %s", tt.target, tt.body, p.Errors, tt.pointer)
		}
	}
}

func TestA422NamesTwentyPlacesAtMost(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	body := `{"metadata":{` + strings.ReplaceAll(labels(900), `"v"`, "0") + `"a":0}}`
	p := mine.do("POST", "/v1/messages", body).want(http.StatusUnprocessableEntity, postern.ValidationFailed)
	if len(p.Errors) != 20 {
		t.Errorf("%d places", len(p.Errors))
	}
}

func TestEveryFaultIsTaken(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	device := connected(mine)
	for _, kind := range []string{"drop", "logout", "ban", "restrict", "conflict", "silence", "limit", "unlimit"} {
		mine.do("POST", "/v1/sandbox/devices/"+device+"/faults",
			fmt.Sprintf(`{"kind":%q}`, kind)).want(http.StatusNoContent,
			"")
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("enterprise")
	for _, tt := range []struct {
		query   string
		status  int
		pointer string
	}{
		{"limit=1", 200, ""},
		{"limit=200&direction=inbound&status=received&since=2026-01-01T00:00:00Z&until=2026-01-02T00:00:00.000%2B01:00&chatId=%2B15551234567", 200, ""},
		{"limit=0", 422, "/query/limit"},
		{"limit=201", 422, "/query/limit"},
		{"limit=-1", 422, "/query/limit"},
		{"limit=2147483648", 422, "/query/limit"},
		{"limit=9223372036854775807", 422, "/query/limit"},
		{"limit=9223372036854775808", 422, "/query/limit"},
		{"limit=" + canary, 422, "/query/limit"},
		{"limit=1.0", 422, "/query/limit"},
		{"limit=", 422, "/query/limit"},
		{"limit=1&limit=2", 422, "/query/limit"},
		{"Limit=1", 422, "/query/Limit"},
		{"limit[]=1", 422, "/query/limit[]"},
		{"foo=" + canary, 422, "/query/foo"},
		{"direction=" + canary, 422, "/query/direction"},
		{"status=" + canary, 422, "/query/status"},
		{"since=" + canary, 422, "/query/since"},
		{"since=2026-01-01", 422, "/query/since"},
		{"until=2026-13-01T00:00:00Z", 422, "/query/until"},
		{"chatId=%00" + canary, 400, ""},
		{"chatId=%ff" + canary, 400, ""},
		{"chatId=%zz" + canary, 400, ""},
		{"a;b=" + canary, 400, ""},
		{"cursor=" + canary, 400, ""},
		{"cursor=" + strings.Repeat("A", 5000), 400, ""},
	} {
		a := mine.do("GET", "/v1/messages?"+tt.query, "")
		a.what = tt.query
		switch tt.status {
		case 200:
			a.want(200, "")
		case 400:
			a.want(400, postern.MalformedRequest)
		default:
			if p := a.want(422, postern.ValidationFailed); len(p.Errors) != 1 || p.Errors[0].Pointer != tt.pointer {
				t.Errorf("%s: %+v", tt.query, p.Errors)
			}
		}
		if strings.Contains(a.Body.String(), canary) {
			t.Errorf("%s: the answer repeats the input: %s", tt.query, a.Body)
		}
	}
	if strings.Contains(s.log.String(), canary) {
		t.Error("the log repeats the input")
	}
}

func TestParametersThatCannotBeReadAreNamedOnce(t *testing.T) {
	t.Parallel()
	err := api.FromHuma(&huma.ErrorModel{Status: http.StatusBadRequest})
	const want = "the parameters of the request cannot be read"
	if e, ok := errors.AsType[*postern.Error](err); !ok || e.Reason != postern.MalformedRequest || e.Detail != want {
		t.Errorf("error %v, want %q", err, want)
	}
}
