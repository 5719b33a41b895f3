package people

import (
	"bytes"
	"log/slog"
	"os"
	"testing"

	"postern/internal/db/dbtest"
	"postern/internal/gateway"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/migrated"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

// server has the rules of both packages over one store: what a member may do in the
// gateway is tested here, where members can be made.
type server struct {
	*People
	*gateway.Gateway
}

// onEachEngine runs a test on SQLite and on PostgreSQL.
func onEachEngine(t *testing.T, test func(t *testing.T, g *server)) {
	t.Helper()
	t.Parallel()
	engines := map[string]func(testing.TB) string{
		"sqlite":   func(testing.TB) string { return "" },
		"postgres": migrated.URL,
	}
	for name, url := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, url(t)))
		})
	}
}

func open(t *testing.T, url string) *server {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Dir: migrated.Dir(t, url), URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	box, err := seal.NewBox(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	p := New(Options{DB: db, Box: box, PasswordMemory: 64})
	return &server{p, gateway.New(gateway.Options{
		DB: db, Box: box, Log: slog.New(slog.DiscardHandler), CheckURL: func(string) error { return nil },
		Confirm: p.Users.Confirm,
	})}
}
