package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"postern/internal/postern"
)

// TestBodiesOverTheWire sends what no HTTP client library would.
func TestBodiesOverTheWire(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("enterprise")
	srv := httptest.NewServer(s.handler)
	t.Cleanup(srv.Close)
	head := "POST /v1/devices HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + mine.key + "\r\nContent-Type: application/json\r\n"
	for name, tt := range map[string]struct {
		raw    string
		status int
	}{
		"good":                   {head + "Content-Length: 12\r\n\r\n{\"name\":\"a\"}", 201},
		"chunked":                {head + "Transfer-Encoding: chunked\r\n\r\nc\r\n{\"name\":\"a\"}\r\n0\r\n\r\n", 201},
		"broken chunks":          {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + canary + "\r\n0\r\n\r\n", 400},
		"length over the cap":    {head + fmt.Sprintf("Content-Length: %d\r\n\r\n", 1<<30) + strings.Repeat(" ", 1<<20+1), 413},
		"endless chunks":         {head + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("10000\r\n"+strings.Repeat(" ", 0x10000)+"\r\n", 17), 413},
		"length and chunks":      {head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n{\"name\":\"a\"}\r\n0\r\n\r\n", 201}, // chunks count, the connection ends
		"two lengths":            {head + "Content-Length: 3\r\nContent-Length: 12\r\n\r\n{\"name\":\"a\"}", 400},
		"expecting to be let in": {strings.Replace(head, mine.key, "pst_x", 1) + "Expect: 100-continue\r\nContent-Length: 1000000\r\n\r\n", 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d net.Dialer
			conn, err := d.DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			go io.WriteString(conn, tt.raw) // the server may close early
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != tt.status || strings.Contains(string(body), canary) {
				t.Errorf("got %d, want %d: %s", resp.StatusCode, tt.status, body)
			}
		})
	}
}

// TestTheLogHasOneLineForEachRequest also looks for what it must not show.
func TestTheLogHasOneLineForEachRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("starter")
	device := connected(mine)
	before := strings.Count(s.log.String(), "\n")
	a := mine.do("POST", "/v1/messages?"+"",
		`{"deviceId":"`+device+`","to":"+15557654321","body":"`+canary+`","metadata":{"a":"`+canary+`"}}`,
		"Idempotency-Key", canary)
	a.want(http.StatusAccepted, "")
	lines := strings.Split(strings.TrimSpace(s.log.String()), "\n")
	if len(lines) != before+1 {
		t.Fatalf("%d lines for one request", len(lines)-before)
	}
	line := lines[len(lines)-1]
	for _, want := range []string{
		`"msg":"request"`, `"request_id":"` + a.Header().Get("Request-Id") + `"`, `"method":"POST"`,
		`"route":"/v1/messages"`, `"status":202`,
		`"duration_ms":`,
		`"workspace":"` + string(mine.ws) + `"`, `"key_id":"` + string(mine.caller().Key.ID) + `"`,
	} {
		if !strings.Contains(line, want) {
			t.Errorf("no %s in %s", want, line)
		}
	}
	for _, secret := range []string{canary, "15557654321", mine.key} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log shows %s", secret)
		}
	}
	mine.do("GET", "/v1/devices/"+canary, "").want(http.StatusNotFound, postern.NotFound)
	if log := s.log.String(); strings.Contains(log, canary) || !strings.Contains(log, `"reason":"not-found"`) {
		t.Errorf("log of a refusal: %s", log)
	}
}
