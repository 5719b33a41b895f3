package seal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// parsed returns the keys whose bytes are all the same, in an order.
func parsed(t *testing.T, fills ...byte) Keys {
	t.Helper()
	var text strings.Builder
	for _, fill := range fills {
		text.WriteString(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, KeySize)) + " # a comment\n")
	}
	k, err := ParseKeys(text.String())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestValuesAreResealedWithANewKey(t *testing.T) {
	t.Parallel()
	const place = "endpoint.secret whk_1"
	before, keys := boxOf(t, 1), parsed(t, 2, 1)
	fresh, first := keys.IDs()[0], keys.IDs()[1]
	if before.Sealing() != first {
		t.Fatalf("the key of the box has the id %s, in the file it is %s", before.Sealing(), first)
	}
	old := before.Seal([]byte("hush"), place)
	if old[0] != withoutID {
		t.Fatalf("the first key seals in the form %d, which earlier releases cannot open", old[0])
	}
	before.Add(keys)
	if got := before.Seal([]byte("hush"), place); got[0] != withoutID {
		t.Error("a key that was only added seals")
	}
	if err := before.Use(fresh); err != nil {
		t.Fatal(err)
	}
	value, err := before.Reseal(old, place)
	if err != nil || !bytes.HasPrefix(value, before.Head(fresh)) {
		t.Fatalf("Reseal = %x, %v", value, err)
	}
	if again, err := before.Reseal(value, place); err != nil || !bytes.Equal(again, value) {
		t.Errorf("a value that is resealed changes again (error %v)", err)
	}
	after, err := NewBoxOf(parsed(t, 2), "", fresh)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := after.Open(value, place); err != nil || string(got) != "hush" {
		t.Errorf("Open with the new key alone = %q, %v", got, err)
	}
	for i := range value {
		changed := bytes.Clone(value)
		changed[i] ^= 1
		if _, err := after.Open(changed, place); err == nil {
			t.Fatalf("a value with byte %d changed was opened", i)
		}
	}
	if _, err := after.Open(old, place); err == nil {
		t.Error("the new key opens a value of the old one")
	}
	missing, ok := errors.AsType[*MissingKeyError](func() error { _, err := boxOf(t, 1).Open(value, place); return err }())
	if !ok || missing.ID != fresh {
		t.Errorf("a box without the new key says %v, want that %s is missing", missing, fresh)
	}
}

// Codes by all keys verify, and those of which only the MAC is stored are found after the key is gone.
func TestMACsOfEarlierKeysVerify(t *testing.T) {
	t.Parallel()
	old := boxOf(t, 1)
	code, first := old.MAC("cursor", "7"), old.Sealing()
	both, err := NewBoxOf(parsed(t, 2, 1), first, parsed(t, 2).IDs()[0])
	if err != nil {
		t.Fatal(err)
	}
	if !both.Verify(code, "cursor", "7") || both.Verify(code, "cursor", "8") || both.Verify(code, "link", "7") {
		t.Error("a code of the earlier key does not verify, or that of something else does")
	}
	alone, err := NewBoxOf(parsed(t, 2), "", both.Sealing())
	if err != nil {
		t.Fatal(err)
	}
	if alone.Verify(code, "cursor", "7") {
		t.Error("a code of a key that is gone verifies")
	}
	alone.Remember(first, both.Keepsake(first))
	if alone.Verify(code, "cursor", "7") {
		t.Error("a code of a key that is only remembered verifies")
	}
	list := alone.Proofs("cursor", "7")
	if len(list) != 2 || !bytes.Equal(list[0], alone.MAC("cursor", "7")) || !bytes.Equal(list[1], code) {
		t.Errorf("proofs = %x, want the new one and %x", list, code)
	}
}

func TestKeyFileIsRotated(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret.key")
	before, err := LoadOrMakeKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	added, err := AddKey(link, "2026-11-27")
	if err != nil {
		t.Fatal(err)
	}
	both, err := LoadKeys(path)
	if want := append([]KeyID{added}, before.IDs()...); err != nil || !slices.Equal(both.IDs(), want) {
		t.Fatalf("keys = %v, %v; want %v", both.IDs(), err, want)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link became a file (error %v)", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode changed to %v (error %v)", info.Mode(), err)
	}
	if err := DropKeys(path, both.IDs()...); err == nil {
		t.Error("all keys were dropped")
	}
	if err := DropKeys(path, before.IDs()...); err != nil {
		t.Fatal(err)
	}
	if left, err := LoadKeys(path); err != nil || !slices.Equal(left.IDs(), []KeyID{added}) {
		t.Errorf("left = %v, %v; want %s", left.IDs(), err, added)
	}
}
