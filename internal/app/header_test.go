package app

import (
	"database/sql" //nolint:depguard // an earlier release is imitated
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"postern/internal/config"
	"postern/internal/gateway"
	"postern/internal/store/storetest"
)

// A server that is started on the database of an earlier release seals the headers in it.
func TestHeadersOfAnEarlierReleaseAreSealed(t *testing.T) {
	t.Parallel()
	cfg := config.Data{Dir: t.TempDir()}
	ws, id := newWebhook(t, cfg)
	file, err := sql.Open("sqlite", "file:"+filepath.Join(cfg.Dir, "postern.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.ExecContext(t.Context(), `UPDATE endpoint SET headers = '{"x-tenant":"canary","X-B":"canary"}',
		header_names = '[]', header_values = x'' WHERE id = ?`, id)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		wantNames(t, cfg, ws, "X-B X-Tenant")
		for _, row := range storetest.RowsOf(t, cfg.Dir, ws) {
			if strings.Contains(row, "canary") {
				t.Errorf("a value is in the clear: %s", row)
			}
		}
	}
}

func newWebhook(t *testing.T, cfg config.Data) (ws, id string) {
	t.Helper()
	c, err := OpenOrCreate(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w, err := c.CreateWorkspace(t.Context(), "acme", "growth")
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.AddWebhook(t.Context(), string(w.ID), gateway.NewEndpoint{URL: "https://example.com"})
	if err != nil {
		t.Fatal(err)
	}
	return string(w.ID), string(e.ID)
}

func wantNames(t *testing.T, cfg config.Data, ws, want string) {
	t.Helper()
	c, err := OpenCommands(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list, err := c.Webhooks(t.Context(), ws)
	if err != nil || len(list) != 1 || strings.Join(list[0].Headers, " ") != want {
		t.Errorf("endpoints %+v (%v), want one with the headers %s", list, err, want)
	}
}
