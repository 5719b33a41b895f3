package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"postern/internal/postern"
)

func TestAnOperationWithoutScopesStopsTheServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	if err := s.api.DropScopes("sendMessage"); err == nil || !strings.Contains(err.Error(), "sendMessage") {
		t.Errorf("without its row: %v", err)
	}
}

func TestAPanicIsAnswered(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.api.Break()
	canary := postern.NewKeySecret()
	a := s.do("GET", "/v1/devices", "", "Authorization", "Bearer "+canary)
	p := a.want(http.StatusInternalServerError, postern.Internal)
	log := s.log.String()
	if !strings.Contains(log, p.RequestID) || !strings.Contains(log, `"msg":"panic"`) ||
		!strings.Contains(log, `"status":500`) ||
		strings.Contains(log, canary) {
		t.Errorf("log of a panic: %s", log)
	}
}

type brokenWriter struct{ *httptest.ResponseRecorder }

func (brokenWriter) Write([]byte) (int, error) { panic("broken") }

// TestAPanicInAnAnswerCutsIt: what was sent must not look like a whole answer.
func TestAPanicInAnAnswerCutsIt(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	defer func() {
		if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // net/http compares so
			t.Errorf("the handler ended with %v", p)
		}
		if !strings.Contains(mine.log.String(), `"msg":"panic"`) {
			t.Errorf("log: %s", mine.log)
		}
	}()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/devices", nil)
	req.Header.Set("Authorization", "Bearer "+mine.key)
	req.RemoteAddr = "127.0.0.1:1234"
	mine.handler.ServeHTTP(brokenWriter{httptest.NewRecorder()}, req)
}

// TestAStoppingServerAsksToTryAgain ends the context that all requests share,
// as the server does when it stops.
func TestAStoppingServerAsksToTryAgain(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/devices", nil)
	req.Header.Set("Authorization", "Bearer "+mine.key)
	a := mine.send(req)
	a.want(http.StatusServiceUnavailable, postern.Unavailable)
	if a.Header().Get("Retry-After") == "" {
		t.Errorf("headers %v", a.Header())
	}
}

func TestAClosedStoreAsksToTryAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("starter")
	mine.do("GET", "/v1/devices", "").want(http.StatusOK, "")
	s.closeStore()
	a := mine.do("POST", "/v1/devices", `{"name":"x"}`)
	a.want(http.StatusServiceUnavailable, postern.Unavailable)
	if a.Header().Get("Retry-After") == "" {
		t.Errorf("headers %v", a.Header())
	}
}
