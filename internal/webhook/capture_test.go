package webhook

import (
	"crypto/ed25519"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"postern/internal/postern"
)

var capture = flag.String("capture", "", "write captured deliveries to this file, one JSON object a line")

// captured is a delivery for other verifiers.
type captured struct {
	What    string            `json:"what"`
	Secret  string            `json:"secret"`
	Valid   bool              `json:"valid"` // it verifies with this secret
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// TestDeliveriesAreCapturedForOtherVerifiers gathers deliveries of every form;
// make verify-webhooks gives them to the libraries of other languages.
func TestDeliveriesAreCapturedForOtherVerifiers(t *testing.T) {
	t.Parallel()
	w, posts := newWorld(t), make(chan got, 100)
	e := w.active(newPlainReceiver(t, posts), func(e *postern.Endpoint) { e.MaxInFlight = 1 })
	w.start(w.dispatcher(Options{}))
	var list []captured
	take := func(what string, valid ...string) {
		for _, text := range []string{"plain", "ünï\u2028cödé 👋 <&>", `"quotes" \ and / slashes`, ""} {
			w.receive(text + "!")
			g := <-posts
			h := map[string]string{}
			for name := range g.header {
				h[name] = g.header.Get(name)
			}
			for _, secret := range []string{testSecret, otherSecret} {
				ok := secret == valid[0] || secret == valid[len(valid)-1]
				if verifies(t, secret, g.header, g.body) != ok {
					t.Errorf("%s: with %.10s… it should verify: %v", what, secret, ok)
				}
				list = append(list, captured{what, secret, ok, lower(h), g.body})
			}
		}
	}
	take("one secret", testSecret)
	w.change(e, func(e *postern.Endpoint) {
		_, key, err := ed25519.GenerateKey(nil)
		w.must(err)
		e.SigningKey = w.box.Seal(key.Seed(), e.ID.SigningKeyPlace())
	})
	take("with ed25519", testSecret)
	w.rotate(e, otherSecret, now().Add(time.Hour))
	take("during the overlap", otherSecret, testSecret)
	w.change(e, func(e *postern.Endpoint) { e.OldSecrets = nil })
	take("after the overlap", otherSecret)
	writeCaptured(t, list)
}

func writeCaptured(t *testing.T, list []captured) {
	t.Helper()
	path := *capture
	if path == "" {
		path = filepath.Join(t.TempDir(), "deliveries.jsonl")
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range list {
		if err := json.NewEncoder(f).Encode(c); err != nil {
			t.Fatal(err)
		}
	}
}

// lower writes names as most servers hand them to a verifier.
func lower(h map[string]string) map[string]string {
	small := map[string]string{}
	for name, value := range h {
		small[strings.ToLower(name)] = value
	}
	return small
}
