package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"postern/internal/postern"
)

// statusOf is the status of an API request with a key.
func statusOf(t *testing.T, url, key string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/devices", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

type madeKey struct{ ID, Key string }

func keyOf(t *testing.T, args ...string) (k madeKey) {
	t.Helper()
	if err := json.Unmarshal([]byte(mustRun(t, append(args, "--json")...)), &k); err != nil || k.Key == "" {
		t.Fatal(err, k)
	}
	return k
}

func TestKeyIsRotatedByTheCommand(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	url := serve(t, dir, "--sandbox", "on")
	at := "--data-dir=" + dir
	ws := matched(t, `"(ws_[^"]+)"`, mustRun(t, "workspace", "create", "--name", "X", "--json", at))
	old := keyOf(t, "key", "create", "--workspace", ws, "--name", "ci", "--environment", "staging", "--scope",
		"devices:read", at)
	next := keyOf(t, "key", "rotate", "--workspace", ws, old.ID, at)
	if statusOf(t, url, old.Key) != 200 || statusOf(t, url, next.Key) != 200 {
		t.Error("during the overlap a key is refused")
	}
	list := mustRun(t, "key", "list", "--workspace", ws, at)
	if strings.Count(list, "staging") != 2 || strings.Count(list, "devices:read") != 2 ||
		!strings.Contains(list, old.Key[38:]) ||
		strings.Contains(list, "pst_") {
		t.Errorf("key list =\n%s", list)
	}
	last := keyOf(t, "key", "rotate", "--workspace", ws, "--overlap", "0s", "--expires", "1h", next.ID, at)
	if got := statusOf(t, url, next.Key); got != 401 || statusOf(t, url, last.Key) != 200 ||
		statusOf(t, url, old.Key) != 200 {
		t.Errorf("without an overlap the old key is answered %d, want 401 at once", got)
	}
	for name, args := range map[string][]string{
		"ended": {next.ID}, "unknown": {"key_x"},
	} {
		if exit, _, errs := command(t, append([]string{"key", "rotate", "--workspace", ws, at},
			args...)...); exit != 1 ||
			errs == "" {
			t.Errorf("%s = %d %s", name, exit, errs)
		}
	}
}

// A key that expires has a successor that lasts as long, and ends when it was to end if that is before the overlap.
func TestRotatedKeyKeepsItsLifetime(t *testing.T) {
	t.Parallel()
	at := "--data-dir=" + shortDir(t)
	ws := matched(t, `"(ws_[^"]+)"`, mustRun(t, "workspace", "create", "--name", "X", "--json", at))
	old := keyOf(t, "key", "create", "--workspace", ws, "--name", "ci", "--expires", "2h", at)
	var keys struct{ Data []postern.Key }
	list := func() {
		t.Helper()
		if err := json.Unmarshal([]byte(mustRun(t, "key", "list", "--workspace", ws, "--json", at)), &keys); err != nil {
			t.Fatal(err)
		}
	}
	list()
	ends := keys.Data[0].ExpiresAt.String()
	said := mustRun(t, "key", "rotate", "--workspace", ws, old.ID, at)
	if !strings.Contains(said, old.ID+" expires at "+ends+".") {
		t.Errorf("the old key ends at %s, and the command says\n%s", ends, said)
	}
	list()
	next, was := keys.Data[0], keys.Data[1]
	if next.ExpiresAt-next.CreatedAt != was.ExpiresAt-was.CreatedAt || was.ExpiresAt.String() != ends ||
		!strings.Contains(said, "(expires at "+next.ExpiresAt.String()+")") {
		t.Errorf("%+v is the successor of %+v", next, was)
	}
}

func TestLimitsOfAWorkspaceCanBeOverridden(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	url := serve(t, dir, "--sandbox", "on")
	at := "--data-dir=" + dir
	ws := matched(t, `"(ws_[^"]+)"`, mustRun(t, "workspace", "create", "--name", "X", "--json", at))
	key := keyOf(t, "key", "create", "--workspace", ws, "--name", "ci", at)
	usage := func() string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/usage", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key.Key)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var u struct{ Messages, Devices, Storage struct{ Limit int } }
		if err := json.NewDecoder(res.Body).Decode(&u); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal([]int{u.Messages.Limit, u.Devices.Limit, u.Storage.Limit >> 20})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"--messages", "10", "--devices", "2"}, "[10,2,10240]"},
		{[]string{"--messages", "0", "--event-days", "7"}, "[0,2,10240]"},
		{[]string{"--messages", "plan", "--storage-mib", "5"}, "[3000,2,5]"},
		{[]string{"--devices", "plan", "--storage-mib", "plan"}, "[3000,1,10240]"},
	} {
		out := mustRun(t, append([]string{"workspace", "set", ws, at}, step.args...)...)
		if got := usage(); got != step.want {
			t.Errorf("after %v (%s): %s, want %s", step.args, out, got, step.want)
		}
	}
	for _, bad := range []string{"-5", "x", "99999999999"} {
		if exit, _, _ := command(t, "workspace", "set", ws, "--messages="+bad, at); exit != 2 {
			t.Errorf("--messages=%s = %d, want 2", bad, exit)
		}
	}
	if exit, _, errs := command(t, "workspace", "set", "ws_none", "--messages=1", at); exit != 1 ||
		!strings.Contains(errs, "no such workspace") {
		t.Errorf("an unknown workspace = %d %s", exit, errs)
	}
}
