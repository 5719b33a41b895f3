package spec_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"slices"
	"testing"

	"postern/internal/api"
	"postern/internal/reference"
)

var update = flag.Bool("update", false, "rewrite the committed document")

const (
	copyFile      = "openapi.json"
	changelogFile = "../../../CHANGELOG.md"
)

// fingerprint is what an entry of the changelog carries of a document.
func fingerprint(doc []byte) string {
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:6])
}

// TestCommittedDocumentIsWhatTheCodeServes compares the document with its copy
// and with the entries of the changelog. With -update the copy is written anew,
// unless the document changed and no entry tells of it (docs/decisions/0008).
func TestCommittedDocumentIsWhatTheCodeServes(t *testing.T) {
	t.Parallel()
	doc, err := api.Document("")
	if err != nil {
		t.Fatal(err)
	}
	changelog, err := os.ReadFile(changelogFile)
	if err != nil {
		t.Fatal(err)
	}
	told := slices.Contains(reference.Stamps(string(changelog)), fingerprint(doc))
	if *update && !told {
		stamped, ok := reference.Stamp(string(changelog), fingerprint(doc))
		if told = ok; ok {
			rewrite(t, changelogFile, []byte(stamped))
		}
	}
	if !told {
		t.Fatalf("the API's document changed (its fingerprint is %s), and no entry in CHANGELOG.md tells of it: write one under Unreleased that ends in \" <!-- api:new -->\", then run make openapi", fingerprint(doc))
	}
	if *update {
		rewrite(t, copyFile, doc)
	}
	have, err := os.ReadFile(copyFile)
	if err != nil || !bytes.Equal(have, doc) {
		t.Errorf("internal/api/spec/openapi.json is not what the code serves (%v): run make openapi", err)
	}
}

func rewrite(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil { // its mode stays when it is there
		t.Fatal(err)
	}
}

// TestChangelogEntriesWait fails while an entry has no document.
func TestChangelogEntriesWait(t *testing.T) {
	t.Parallel()
	changelog, err := os.ReadFile(changelogFile)
	if err != nil {
		t.Fatal(err)
	}
	if !*update && slices.Contains(reference.Stamps(string(changelog)), "new") {
		t.Error("an entry of CHANGELOG.md ends in api:new: run make openapi")
	}
}
