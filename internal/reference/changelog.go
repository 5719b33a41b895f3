// Package reference serves what people read about the API in a browser: the API
// reference, the changelog, the guides with their search, and a page for each error reason.
package reference

import (
	"regexp"
	"strings"

	root "postern"
)

// version matches the heading of a release, such as "## 0.1.0 (2026-11-27)". The newest comes first, after
// "## Unreleased", which lists what has changed since.
var version = regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)`)

// Version is the newest version in the changelog, or "0.0.0" if there is none.
func Version() string {
	m := version.FindStringSubmatch(root.Changelog)
	if m == nil {
		return "0.0.0"
	}
	return m[1]
}

// stamp matches an entry about the API. It ends in a comment with the fingerprint that
// the OpenAPI document had when the entry was written.
var stamp = regexp.MustCompile(`(?m)^- (\S.{10,}) <!-- api:([0-9a-f]{12}|new) -->$`)

// comment matches the comments, which only tests read.
var comment = regexp.MustCompile(` <!-- .*? -->`)

// Stamps returns the fingerprints on the unreleased entries and those of the newest version, in order. An entry whose
// document has not been written yet has "new".
func Stamps(changelog string) (list []string) {
	for _, m := range stamp.FindAllStringSubmatch(newest(changelog), -1) {
		list = append(list, m[2])
	}
	return list
}

// newest is the part of a changelog about its newest version and what has changed since.
func newest(changelog string) string {
	places := version.FindAllStringIndex(changelog, 2)
	switch len(places) {
	case 0:
		return ""
	case 1:
		return changelog
	}
	return changelog[:places[1][0]]
}

// Stamp replaces "new" with a fingerprint; ok is false if no entry has "new".
func Stamp(changelog, fingerprint string) (stamped string, ok bool) {
	const waiting = " <!-- api:new -->"
	part := newest(changelog)
	done := strings.ReplaceAll(part, waiting, " <!-- api:"+fingerprint+" -->")
	return strings.Replace(changelog, part, done, 1), done != part
}
