package api_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"
)

// raw sends text and gives the answer.
func raw(t *testing.T, srv *httptest.Server, text string) string {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go io.WriteString(conn, text) // the server may close early
	answer, err := io.ReadAll(bufio.NewReader(conn))
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestT20JSONHasOneMeaning(t *testing.T) {
	t.Parallel()
	t.Run("costly bodies", func(t *testing.T) { // package schema counts what they cost
		t.Parallel()
		mine := newServer(t).tenant("enterprise")
		for name, body := range map[string]string{
			"a million levels":   strings.Repeat("[", 1_000_000),
			"objects in objects": strings.Repeat(`{"a":`, 200_000),
			"many members":       `{` + labels(80_000) + `"z":1}`,
			"long number":        `{"expiresIn":` + strings.Repeat("9", 1_000_000) + `}`,
			"long exponent":      `{"expiresIn":1e` + strings.Repeat("9", 1_000_000) + `}`,
			"escapes":            `{"body":"` + strings.Repeat(`\ud83d\ude00`, 80_000) + `"}`,
			"half a surrogate":   `{"body":"` + strings.Repeat(`\u0061`, 150_000) + `\ud83d"}`,
		} {
			if a := mine.do("POST", "/v1/messages", body); a.Code < 400 || a.Code >= 500 {
				t.Errorf("%s is answered %d", name, a.Code)
			}
		}
	})
}

// texts are such that someone once lost or changed a character of them.
func texts() []string {
	list := []string{
		"👨‍👩‍👧‍👦", "🇩🇪🏴󠁧󠁢󠁳󠁣󠁴󠁿", "e\u0301 is not é", "\u202eright to left\u202c", "مرحبا بالعالم", "שלום", "ไทย",
		"𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "\u0000"[:0] + "tab\tand\r\nlines\u0085\u2028\u2029",
		"<script>alert(1)</script>", `"\/` + "`", "\ufeffmark", "\u200b\u200d\ufe0f", "a" + strings.Repeat("\u0301", 10_000), strings.Repeat("👋", 16_000), " blanks  ", "\x01\x02\x1f\x7f", "ﷺ", "İıſK", "\U0010ffff",
	}
	r := rand.New(rand.NewPCG(20, 21))
	for range 60 {
		var b strings.Builder
		for range 1 + r.IntN(60) {
			c := rune(1 + r.IntN(0x10ffff))
			if c >= 0xd800 && c <= 0xdfff {
				continue
			}
			b.WriteRune(c)
		}
		list = append(list, b.String()+"x")
	}
	return list
}

// TestT21TextsAreKeptByteForByte sends and receives texts, and reads them from
// the answer, the list and the log.
func TestT21TextsAreKeptByteForByte(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	device := mine.device("d", postern.Connected)
	for _, text := range texts() {
		body, err := json.Marshal(map[string]any{"deviceId": device, "to": "+15551234567", "body": text, "metadata": map[string]string{"t": text[:min(len(text), 4)]}})
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(body) || strings.Contains(string(body), `\ufffd`) { // metadata was cut inside a character
			body, err = json.Marshal(map[string]any{"deviceId": device, "to": "+15551234567", "body": text})
			if err != nil {
				t.Fatal(err)
			}
		}
		a := mine.do("POST", "/v1/messages", string(body))
		a.want(http.StatusAccepted, "")
		again := mine.do("GET", "/v1/messages/"+a.member("id"), "")
		again.want(http.StatusOK, "")
		if a.member("body") != text || again.member("body") != text {
			t.Errorf("%q came back as %q, and is kept as %q", text, a.member("body"), again.member("body"))
		}
		mine.receive(device, text)
	}
	var got []string
	for query, n := "type=message.received&limit=200", 0; n < 10; n++ {
		l := mine.events(query)
		for _, e := range l.Data {
			s, _ := e.Message["body"].(string)
			got = append(got, s)
		}
		if l.NextCursor == nil {
			break
		}
		query = "type=message.received&limit=200&cursor=" + *l.NextCursor
	}
	if !slices.Equal(got, texts()) {
		t.Errorf("the log has %d texts that differ from the %d received", len(got), len(texts()))
	}
}

func TestT22NumbersHaveOneForm(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	device := connected(mine)
	for _, to := range []string{
		"+٤٩١٥١٢٣٤٥٦٧", "+４９１５１２３４５６７", "+00491512345678", "0049151234567", "+15551234567;ext=5", "group:", "group:12a", "status@broadcast",
		"channel:", "channel:1-2", "channel:12a", "x@newsletter", "+49 (0) 1512345678", "+1555123456789012", "+123456", "+", "", "++15551234567", "+1555123456a", "\u202a+15551234567", "+1555\u200b1234567", "+15551234567\n", "tel:+15551234567", "lid:1234", "lid:+15551234567", "server@lid",
	} {
		body, err := json.Marshal(map[string]string{"deviceId": device, "to": to, "body": canary})
		if err != nil {
			t.Fatal(err)
		}
		a := mine.do("POST", "/v1/messages", string(body))
		a.what = to
		a.want(http.StatusUnprocessableEntity, postern.ValidationFailed)
	}
	forms := []string{"+15551234567", "15551234567", "15551234567@s.whatsapp.net", "15551234567@c.us", "15551234567:5@s.whatsapp.net", "+1 (555) 123-4567", "+1.555.123.4567"}
	for to, chat := range map[string]string{ // one group or channel, one chat
		"status":                 "status",
		"1234567890-123456@g.us": "group:1234567890-123456", "group:1234567890-123456": "group:1234567890-123456",
		"120363012345678901@newsletter": "channel:120363012345678901", "channel:120363012345678901": "channel:120363012345678901",
	} {
		a := mine.do("POST", "/v1/messages", `{"deviceId":"`+device+`","to":"`+to+`","body":"Hi"}`)
		if a.want(http.StatusAccepted, ""); a.member("chatId") != chat {
			t.Errorf("%s is the chat %s", to, a.member("chatId"))
		}
	}
	for _, to := range forms { // one number, one chat
		a := mine.do("POST", "/v1/messages", `{"deviceId":"`+device+`","to":"`+to+`","body":"x"}`)
		a.want(http.StatusAccepted, "")
		if a.member("to") != "+15551234567" || a.member("chatId") != "+15551234567" {
			t.Errorf("%s is %s in the chat %s", to, a.member("to"), a.member("chatId"))
		}
	}
	for _, chat := range forms {
		if l := mine.do("GET", "/v1/messages?chatId="+escape(chat), "").list(); len(l.Data) != len(forms) {
			t.Errorf("%s: %d messages in the chat, want %d", chat, len(l.Data), len(forms))
		}
	}
	for _, chat := range []string{"group:120363012345678901", "120363012345678901@g.us", "lid:123456789012345", "123456789012345:2@lid"} {
		if l := mine.do("GET", "/v1/messages?chatId="+escape(chat), "").list(); len(l.Data) != 0 {
			t.Errorf("%s: %d messages in the chat, want none", chat, len(l.Data))
		}
	}
}

// TestT22FilterThatCannotBeValidIsRefused asks with forms that name no chat, and with
// plus signs that the query turns into spaces. An empty list would look like an answer.
func TestT22FilterThatCannotBeValidIsRefused(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	for query, hint := range map[string]string{
		"chatId=+15551234567":             "%2B",
		"chatId=00491512345678":           "+ instead of the leading 00",
		"chatId=tomorrow":                 "+ and 7 to 15 digits",
		"chatId=lid:x":                    "lid: and 5 to 20 digits",
		"since=2026-12-01T09:00:00+01:00": "%2B",
		"until=2026-12-01T09:00:00+01:00": "%2B",
	} {
		a := mine.do("GET", "/v1/messages?"+query, "")
		a.what = query
		if a.want(http.StatusUnprocessableEntity, postern.ValidationFailed); !strings.Contains(a.Body.String(), hint) {
			t.Errorf("%s is refused with %s, want a hint at %q", query, a.Body, hint)
		}
	}
}

func TestT23PathsLeadNowhere(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	names := []string{"../../etc/passwd", `..\..\windows\win.ini`, "%2e%2e%2f", "....//", "CON", "a/../../b", "file:///etc/passwd", "x.svg", strings.Repeat("../", 60)}
	for _, name := range names {
		body, err := json.Marshal(map[string]string{"name": name})
		if err != nil {
			t.Fatal(err)
		}
		a := mine.do("POST", "/v1/devices", string(body))
		a.want(http.StatusCreated, "")
		if a.member("name") != name { // a name is a text and nothing else
			t.Errorf("%q came back as %q", name, a.member("name"))
		}
	}
	for _, target := range []string{"/v1/devices/..%2f..%2fetc%2fpasswd", "/v1/devices/%2e%2e/x", "/v1/../v1/devices", "/v1/devices/../../etc/passwd", "/v1/devices/x%00.svg", "/v1/webhooks/..%5c..%5cx", "/v1/messages/%2e%2e%2f%2e%2e"} {
		mine.do("GET", target, "").want(http.StatusNotFound, postern.NotFound)
	}
	for id, r := range routes() {
		if r.method != "GET" {
			continue
		}
		target, _ := r.build(mine)
		a := mine.do("GET", target, "")
		kind := a.Header().Get("Content-Type")
		if id == "getMediaContent" { // of any type, and never shown
			if !strings.HasPrefix(a.Header().Get("Content-Disposition"), "attachment") ||
				!strings.Contains(a.Header().Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("a file has the headers %v", a.Header())
			}
			kind = "image/png"
		}
		if a.Header().Get("X-Content-Type-Options") != "nosniff" || !slices.Contains([]string{"application/json", "image/svg+xml", "image/png", "text/event-stream"}, kind) {
			t.Errorf("%s: headers %v", id, a.Header())
		}
		if kind == "image/svg+xml" && !strings.Contains(a.Header().Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: an SVG without a sandbox: %v", id, a.Header())
		}
	}
}

// TestT24BombsAreRefused also measures what they cost in memory, and is alone
// therefore.
func TestT24BombsAreRefused(t *testing.T) { //nolint:paralleltest // it measures the heap
	mine := newServer(t).tenant("enterprise")
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := io.Copy(w, io.LimitReader(zeros{}, 16<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, coding := range []string{"gzip", "deflate", "br", "zstd", "x-gzip", "gzip, gzip", "compress"} {
		mine.do("POST", "/v1/devices", zipped.String(), "Content-Encoding", coding).want(http.StatusUnsupportedMediaType, postern.UnsupportedMediaType)
	}
	mine.do("POST", "/v1/devices", strings.Repeat(" ", 1<<20+1)).want(http.StatusRequestEntityTooLarge, postern.PayloadTooLarge)
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/devices", io.LimitReader(zeros{}, 1<<30))
	req.Header = http.Header{"Authorization": {"Bearer " + mine.key}, "Content-Type": {"application/json"}}
	mine.send(req).want(http.StatusRequestEntityTooLarge, postern.PayloadTooLarge)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 64<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	mine.do("POST", "/v1/devices", `{"name":"x"}`).want(http.StatusCreated, "")
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func TestT26NumbersAndCursorsAreChecked(t *testing.T) {
	t.Parallel()
	t.Run("every list", func(t *testing.T) {
		t.Parallel()
		mine := newServer(t).tenant("enterprise")
		for _, list := range []string{"/v1/devices", "/v1/messages", "/v1/webhooks", "/v1/events"} {
			for _, limit := range []string{"-1", "0", "201", "2147483648", "9223372036854775807", "9223372036854775808", "1e9", "0x10", "+1", "%201", "1.0", "٣", "1,2"} {
				a := mine.do("GET", list+"?limit="+limit, "")
				a.what = list + " " + limit
				a.want(http.StatusUnprocessableEntity, postern.ValidationFailed)
			}
			for _, cursor := range []string{"x", "AAAA", strings.Repeat("A", 10_000), "%00", "' OR 1=1 --"} {
				a := mine.do("GET", list+"?cursor="+strings.ReplaceAll(cursor, " ", "%20"), "")
				a.what = list + " " + cursor
				a.want(http.StatusBadRequest, postern.MalformedRequest)
			}
		}
	})
}

func TestT27TextIsNoProgram(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("enterprise")
	device := connected(mine)
	mine.do("POST", "/v1/messages", `{"deviceId":"`+device+`","to":"+15551234567","body":"x"}`).want(http.StatusAccepted, "")
	before := mine.do("GET", "/v1/messages", "").Body.String()
	bad := []string{`' OR '1'='1`, `'; DROP TABLE message; --`, `") OR 1=1 --`, `%`, `_`, `%25`, `\`, `null`, `["a"]`, `1 UNION SELECT hash FROM api_key`, "a\r\nX-Injected: 1", "\r\n{\"msg\":\"request\"}", `*`, `$1`, `${jndi:ldap://x}`, `{{7*7}}`, `+15551234567%`}
	for _, text := range bad {
		for _, target := range []string{"/v1/messages?chatId=", "/v1/messages?deviceId=", "/v1/events?deviceId=", "/v1/events?after=", "/v1/devices/", "/v1/messages/", "/v1/webhooks/"} {
			a := mine.do("GET", target+escape(text), "")
			switch {
			case strings.HasSuffix(target, "chatId="):
				a.want(http.StatusUnprocessableEntity, postern.ValidationFailed)
			case a.Code != http.StatusNotFound:
				t.Errorf("%s%s: %d", target, text, a.Code)
			}
			if a.Header().Get("X-Injected") != "" {
				t.Errorf("%s%s: headers %v", target, text, a.Header())
			}
		}
		mine.do("GET", "/v1/events?type="+escape(text), "")
		mine.do("POST", "/v1/devices", `{"name":"x"}`, "Idempotency-Key", strings.Map(visible, text)).want(http.StatusCreated, "")
	}
	if after := mine.do("GET", "/v1/messages", "").Body.String(); after != before {
		t.Errorf("messages changed to %s", after)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(s.log.String()), "\n") {
		if !json.Valid([]byte(line)) {
			t.Fatalf("a line of the log is no JSON: %s", line)
		}
	}
}

func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func visible(r rune) rune {
	if r <= ' ' || r > '~' || r == '"' {
		return -1
	}
	return r
}

func TestT29OneKeyHappensOnce(t *testing.T) {
	t.Parallel()
	t.Run("another tenant", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		ids := map[string]bool{}
		for range 3 {
			mine := s.tenant("enterprise")
			a := mine.do("POST", "/v1/devices", `{"name":"x"}`, "Idempotency-Key", "k")
			a.want(http.StatusCreated, "")
			ids[a.member("id")] = true
			mine.do("POST", "/v1/devices", `{"name":"y"}`, "Idempotency-Key", "k").want(http.StatusUnprocessableEntity, postern.IdempotencyReused)
			if b := mine.do("POST", "/v1/devices", `{"name":"x"}`, "Idempotency-Key", "k"); b.Body.String() != a.Body.String() {
				t.Errorf("the answer again is %s, was %s", b.Body, a.Body)
			}
		}
		if len(ids) != 3 {
			t.Errorf("three tenants made %d devices", len(ids))
		}
	})
}

func TestT30QuotaIsExact(t *testing.T) {
	t.Parallel()
	t.Run("a smaller plan", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		mine := s.tenant("growth")
		body := `{"deviceId":"` + connected(mine) + `","to":"+15551234567","body":"x"}`
		limit := 2
		for range 4 {
			mine.do("POST", "/v1/messages", body).want(http.StatusAccepted, "")
		}
		if _, err := s.g.Workspaces.ChangeLimits(t.Context(), access.Operator(), mine.ws, postern.Limits{Messages: &limit}); err != nil {
			t.Fatal(err)
		}
		mine.do("POST", "/v1/messages", body).want(http.StatusForbidden, postern.QuotaExhausted)
		if got := mine.usage(); !strings.Contains(got, `"messages":{"used":4,"limit":2}`) {
			t.Errorf("usage is %s", got)
		}
	})
}

// TestT30UnitsGoBackToTheirMonth accepts in one month and gives back in the
// next.
func TestT30UnitsGoBackToTheirMonth(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("growth")
	two := 2
	if _, err := s.g.Workspaces.ChangeLimits(t.Context(), access.Operator(), mine.ws, postern.Limits{Messages: &two}); err != nil {
		t.Fatal(err)
	}
	device := mine.device("d", postern.Connected)
	november := postern.TimeOf(time.Date(2026, 11, 30, 23, 59, 59, 999e6, time.UTC))
	var ids []postern.MessageID
	for i := range 4 {
		at := november
		if i >= 2 {
			at = november + 1 // the first millisecond of December
		}
		m := postern.Message{
			ID: postern.NewMessageID(), WorkspaceID: mine.ws, DeviceID: device, Direction: postern.Outbound, ChatID: "+15551234567", To: "+15551234567", Content: postern.Text("x"),
			Status: postern.Queued, NetworkID: postern.NewNetworkID(), Source: postern.FromAPI, Metadata: map[string]string{}, CreatedAt: at, ExpiresAt: at.Add(time.Hour),
		}
		if err := s.db.Messages.Queue(t.Context(), store.QueueMessage{Message: m, Month: store.MonthOf(at)}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID)
	}
	december := november.Add(time.Hour)
	for range 2 { // once, however often it is told
		if err := s.db.Outbox.Finish(t.Context(), store.FinishOutbound{MessageID: ids[0], Status: postern.Expired, Refund: true, At: december}); err != nil {
			t.Fatal(err)
		}
	}
	for month, want := range map[string]int{"2026-11": 1, "2026-12": 2} {
		used, err := s.db.Usage.Messages(t.Context(), mine.ws, month)
		if err != nil || used != want {
			t.Errorf("%s: %d used (%v), want %d", month, used, err, want)
		}
		by, err := s.db.Usage.MessagesBy(t.Context(), mine.ws, month, []postern.DeviceID{device})
		if err != nil || by != want {
			t.Errorf("%s: %d used by the device (%v), want %d", month, by, err, want)
		}
	}
}
