package obs

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"postern/internal/health"
)

func TestReadinessSaysWhyNot(t *testing.T) {
	t.Parallel()
	report := health.Report{Status: health.Unavailable, Problems: []health.Problem{{
		Check: "disk", Reason: "disk-full", Detail: "The disk is full.",
	}}}
	srv := OpsHandler(func() health.Report { return report }, NewRegistry())
	get := func(path string) (int, string) {
		rec := httptest.NewRecorder()
		srv.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		return rec.Code, strings.TrimSpace(rec.Body.String())
	}
	const full = `{"status":"unavailable","problems":[{"check":"disk","reason":"disk-full","detail":"The disk is full."}]}`
	if code, body := get("/readyz"); code != 503 || body != full {
		t.Errorf("with a full disk: %d %s", code, body)
	}
	if code, body := get("/healthz"); code != 200 || body != `{"status":"ok"}` {
		t.Errorf("health: %d %s", code, body)
	}
	report = health.Report{Status: health.Ready}
	if code, body := get("/readyz"); code != 200 || body != `{"status":"ok"}` {
		t.Errorf("ready: %d %s", code, body)
	}
	if code, body := get("/metrics"); code != 200 || !strings.Contains(body, "go_goroutines") {
		t.Errorf("metrics: %d", code)
	}
}

func TestVitalsAreThoseOfTheMetrics(t *testing.T) {
	t.Parallel()
	released := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC) // of the Go version that runs this
	v, err := VitalsOf(NewRegistry())
	if err != nil || v.Goroutines < 1 || v.Memory < 1<<20 || v.Started.Before(released) {
		t.Errorf("the vitals are %+v, %v", v, err)
	}
}

// A page on the web that points its own name at the address of this server reads nothing.
func TestOpsAnswersItsOwnHostAlone(t *testing.T) {
	t.Parallel()
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(OwnHost("ops.internal:9090", OpsHandler(health.New(slog.New(slog.DiscardHandler)).Report, NewRegistry())))
	defer srv.Close()
	for host, want := range map[string]int{
		"": 200, "127.0.0.1": 200, "127.0.0.1:1": 200, "localhost": 200, "LocalHost.:9090": 200, "ops.internal": 200,
		machine: 200, "[::ffff:127.0.0.1]:80": 200,
		"evil.example": 421, "127.0.0.1.evil.example": 421, "127.0.0.2": 421, "[::1]:9090": 421, "192.0.2.1": 421,
		"localhost.evil.example": 421, "x": 421, ":9090": 421,
	} {
		for _, path := range []string{"/metrics", "/debug/pprof/", "/healthz"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host // "": that of the URL
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("%s of %q: %d, want %d", path, host, res.StatusCode, want)
			}
		}
	}
}

func TestPublicOperationsPortIsWarnedOf(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{
		"127.0.0.1": false, "::1": false, "10.1.2.3": false, "fd00::1": false, "fe80::1": false, "::ffff:192.168.1.1": false,
		"0.0.0.0": true, "::": true, "8.8.8.8": true, "2001:4860::1": true,
	} {
		l := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), 9090))
		var log bytes.Buffer
		WarnIfPublic(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), l)
		if warned := strings.Contains(log.String(), "level=WARN"); warned != want {
			t.Errorf("%s: warned %v, want %v", addr, warned, want)
		}
	}
}
