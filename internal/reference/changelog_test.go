package reference_test

import (
	"slices"
	"strings"
	"testing"

	"postern/internal/reference"
)

const changelog = `# Changelog

Words.

## Unreleased

- Something else about the API. <!-- api:new -->

## 0.2.0 (2026-11-27)

- Something about the operator.
- Something about the API. <!-- api:0123456789ab -->

## 0.1.0

- What was there before. <!-- api:ffffffffffff -->
`

func TestEntriesCarryTheFingerprintOfTheirDocument(t *testing.T) {
	t.Parallel()
	if got, want := reference.Stamps(changelog), []string{"new", "0123456789ab"}; !slices.Equal(got, want) {
		t.Errorf("stamps %v, want %v", got, want)
	}
	stamped, ok := reference.Stamp(changelog, "aaaaaaaaaaaa")
	if got, want := reference.Stamps(stamped), []string{"aaaaaaaaaaaa", "0123456789ab"}; !ok ||
		!slices.Equal(got, want) {
		t.Errorf("stamped %v %v, want %v", ok, got, want)
	}
	if !strings.Contains(stamped, "ffffffffffff") || strings.Contains(stamped, "new") {
		t.Errorf("the changelog is now %s", stamped)
	}
	if again, ok := reference.Stamp(stamped, "bbbbbbbbbbbb"); ok || again != stamped {
		t.Error("a fingerprint was written over another, without an entry")
	}
	for _, bad := range []string{
		"", "## 0.1.0\n\n- x <!-- api:0123456789ab -->",
		"## 0.1.0\n\n<!-- api:0123456789ab -->",
	} {
		if got := reference.Stamps(bad); got != nil {
			t.Errorf("stamps %v of %q, which says nothing", got, bad)
		}
	}
}

func TestVersionIsTheNewestOfTheChangelog(t *testing.T) {
	t.Parallel()
	if v := reference.Version(); v == "0.0.0" || strings.Count(v, ".") != 2 {
		t.Errorf("version %q", v)
	}
}
