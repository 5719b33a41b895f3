package vendorsim_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"postern/vendorsim"
)

func TestControlRefusesNonsenseAndAnswersLists(t *testing.T) {
	t.Parallel()
	v, err := vendorsim.Open(vendorsim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	srv := httptest.NewServer(v.Control())
	defer srv.Close()
	call := func(method, path, body string) (int, map[string]any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		var out map[string]any
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatalf("%s %s = %d %s", method, path, res.StatusCode, text)
		}
		return res.StatusCode, out
	}
	for path, body := range map[string]string{
		"/scan": `{"qr":"nonsense","phoneNumber":"+15550001111"}`, "/inbound": `{"to":"+15550001111","from":"x","body":"y"}`, "/type": `{}`,
		"/receipts": `{"account":"+15550001111","networkId":"A","status":"delivered"}`, "/faults": `{"account":"*","kind":"tornado"}`,
	} {
		for _, b := range []string{body, "{", ""} {
			if status, out := call("POST", path, b); status != 400 || out["error"] == "" {
				t.Errorf("POST %s %q = %d %v, want 400 with an error", path, b, status, out)
			}
		}
	}
	for _, path := range []string{"/accounts", "/ledger", "/ledger?after=5&limit=2"} {
		if status, out := call("GET", path, ""); status != 200 || out["data"] == nil {
			t.Errorf("GET %s = %d %v", path, status, out)
		}
	}
	if status, _ := call("GET", "/ledger?after=x", ""); status != 400 {
		t.Errorf("a ledger after x = %d, want 400", status)
	}
}
