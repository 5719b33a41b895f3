package seal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func boxOf(t *testing.T, fill byte) *Box {
	t.Helper()
	b, err := NewBox(bytes.Repeat([]byte{fill}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSealedValueOpensOnlyInItsPlaceAndWithItsKey(t *testing.T) {
	t.Parallel()
	b := boxOf(t, 1)
	sealed := b.Seal([]byte("hush"), "endpoint.secret whk_1")
	if bytes.Contains(sealed, []byte("hush")) {
		t.Fatal("the sealed value shows the text")
	}
	if got, err := b.Open(sealed, "endpoint.secret whk_1"); err != nil || string(got) != "hush" {
		t.Errorf("Open in its place = %q, %v; want hush", got, err)
	}
	if _, err := b.Open(sealed, "endpoint.secret whk_2"); err == nil {
		t.Error("a value moved to another place was opened")
	}
	if _, err := boxOf(t, 2).Open(sealed, "endpoint.secret whk_1"); err == nil {
		t.Error("another key opened the value")
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := b.Open(changed, "endpoint.secret whk_1"); err == nil {
			t.Fatalf("a value with byte %d changed was opened", i)
		}
	}
	if _, err := b.Open(nil, ""); err == nil {
		t.Error("an empty value was opened")
	}
}

func TestKeyFileIsMadeOnceAndPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret.key")
	first, err := LoadOrMakeKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadOrMakeKeys(path)
	if err != nil || !slices.Equal(first.IDs(), again.IDs()) {
		t.Errorf("second LoadOrMakeKeys differs (error %v)", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode = %o, want 600", got)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrMakeKeys(path); err == nil {
		t.Error("a broken key file was replaced or accepted: what it sealed would be lost")
	}
}

func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	s := Secret("canary")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "in", struct{ S Secret }{s})
	js, err := json.Marshal(map[string]any{"s": s})
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{
		fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %q %x", s, s, s, s, s, s), log.String(),
		string(js),
	} {
		if strings.Contains(out, "canary") || strings.Contains(out, "63616e617279") {
			t.Errorf("printed %q", out)
		}
	}
	if s.Reveal() != "canary" {
		t.Error("Reveal lost the text")
	}
}
