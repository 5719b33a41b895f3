package testkit_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"postern/internal/db/dbtest"
	"postern/internal/health"
	"postern/internal/postern"
	"postern/internal/testkit"
)

// awaitReport waits until a server is ready, or is not because of a check.
func awaitReport(t *testing.T, k *testkit.Kit, check string) {
	t.Helper()
	testkit.Eventually(t, "readiness "+check, func() (bool, any) {
		res, err := http.Get(k.OpsURL() + "/readyz") //nolint:noctx // the test ends with it
		if err != nil {
			return false, err
		}
		defer res.Body.Close()
		var r health.Report
		if err := json.NewDecoder(res.Body).Decode(&r); err != nil {
			return false, err
		}
		named := slices.ContainsFunc(r.Problems, func(p health.Problem) bool { return p.Check == check })
		return named == (check != "") && (res.StatusCode == http.StatusOK) == (check == ""), r
	})
}

// While PostgreSQL is gone, the server is not ready and refuses requests with 503; it is ready again by itself, and
// what was accepted before arrives.
func TestReadinessFollowsTheDatabase(t *testing.T) {
	t.Parallel()
	cluster := dbtest.NewDurable(t)
	k := testkit.StartOn(t, cluster.URL(t))
	c := k.Workspace("growth")
	d := c.Link(phone)
	awaitReport(t, k, "")
	before := send(c, d, reader, "before")
	cluster.Crash()
	awaitReport(t, k, "database")
	a := c.Do("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": reader, "body": "meanwhile"})
	if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
		t.Errorf("a message is answered with %d %s", a.Status, a.Body)
	}
	cluster.Start(t)
	awaitReport(t, k, "")
	c.AwaitMessage(before.ID, postern.Read)
	c.AwaitMessage(send(c, d, reader, "after").ID, postern.Read)
}

// A server whose key file is gone could not start again.
func TestReadinessFollowsTheSecretKey(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	awaitReport(t, k, "")
	key := filepath.Join(k.Config.Dir, "secret.key")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	awaitReport(t, k, "secret-key")
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
	awaitReport(t, k, "")
}
