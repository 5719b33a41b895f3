package obs

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
