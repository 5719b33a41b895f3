package doctor

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
)

// wants compares the grade of a finding, and that what is wrong has a remedy.
func wants(t *testing.T, name string, c Check, grade Grade) {
	t.Helper()
	f := c.Run(t.Context())
	if f.Grade != grade || f.Detail == "" || (f.Remedy != "") != (grade == Warning || grade == Failed) {
		t.Errorf("%s: %+v, want %s", name, f, grade)
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wants(t, "a directory that is still to be created", Disk(filepath.Join(dir, "a", "b")), OK)
	if left, err := os.ReadDir(dir); len(left) != 0 || err != nil {
		t.Errorf("the check has left %v, %v", left, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wants(t, "a file", Disk(file), Failed)
	wants(t, "few devices", Files(1), OK)
	wants(t, "very many devices", Files(1<<30), Failed)
	wants(t, "few devices", Memory(1), OK)
	wants(t, "very many devices", Memory(1<<30), Warning)
}

func TestKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret.key")
	fits := func(context.Context) error { return nil }
	lacks := func(context.Context) error { return errors.New("the file lacks a key") }
	wants(t, "no key yet", Key(path, true, fits), Skipped)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wants(t, "beside the database", Key(path, true, fits), Warning)
	wants(t, "elsewhere", Key(path, false, fits), OK)
	wants(t, "without a key that is needed", Key(path, false, lacks), Failed)
	for mode, want := range map[os.FileMode]Grade{0o440: OK, 0o640: OK, 0o660: Failed, 0o604: Failed} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		wants(t, "mode "+mode.String(), Key(path, false, fits), want)
	}
}

func TestReach(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // no name to look up
	if err != nil {
		t.Fatal(err)
	}
	at := &url.URL{Scheme: "smtp", Host: l.Addr().String()}
	wants(t, "a listener", Reach("mail", "The mail server", at, nil), OK)
	l.Close()
	wants(t, "nobody", Reach("mail", "The mail server", at, nil), Failed)
}

// server is one that responds as Postern, and streams what stream writes.
func server(t *testing.T, document string, stream func(w http.ResponseWriter, r *http.Request)) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(document))
	})
	mux.HandleFunc("GET /v1/events/stream", stream)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestPublicAddress(t *testing.T) {
	t.Parallel()
	const document = `{"components":{},"openapi":"3.1.0"}`
	refused := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	prompt := func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(": connected\n\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	buffered := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	wants(t, "without a key", Public(server(t, document, refused), ""), OK)
	wants(t, "a stream", Public(server(t, document, prompt), "pst_x"), OK)
	wants(t, "another key", Public(server(t, document, refused), "pst_x"), Failed)
	wants(t, "another server", Public(server(t, "<html>", prompt), ""), Failed)
	wants(t, "nobody", Public("http://127.0.0.1:1", ""), Failed)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	if f := Public(server(t, document, buffered), "pst_x").Run(ctx); f.Grade != Failed || f.Remedy == "" {
		t.Errorf("a proxy that collects responses: %+v", f)
	}
}

// A check that hangs does not keep the others from being reported.
func TestHangingCheckIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		list := Examine(t.Context(), []Check{
			{"hangs", func(context.Context) Finding { <-release; return ok("") }},
			{"works", func(context.Context) Finding { return ok("fine") }},
		})
		close(release)
		if list[0].Grade != Failed || list[0].Check != "hangs" || list[1] != (Finding{"works", OK, "fine", ""}) {
			t.Errorf("%+v", list)
		}
	})
}
