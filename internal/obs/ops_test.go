package obs

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestReadinessSaysWhyNot(t *testing.T) {
	t.Parallel()
	h := NewHealth()
	srv := OpsHandler(h, NewRegistry())
	get := func(path string) (int, string) {
		rec := httptest.NewRecorder()
		srv.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		return rec.Code, rec.Body.String()
	}
	if code, body := get("/readyz"); code != 503 || !strings.Contains(body, "starting") {
		t.Errorf("before start: %d %s", code, body)
	}
	h.Set("")
	if code, _ := get("/readyz"); code != 200 {
		t.Errorf("ready: %d", code)
	}
	if code, body := get("/metrics"); code != 200 || !strings.Contains(body, "go_goroutines") {
		t.Errorf("metrics: %d", code)
	}
	if code, _ := get("/healthz"); code != 200 {
		t.Errorf("health: %d", code)
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
