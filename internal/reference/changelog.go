// Package reference is what people read about the API in a browser: the
// reference itself, the changelog, and a page for each reason of a refusal.
package reference

import (
	"regexp"
	"strings"

	root "postern"
)

// version is the heading of a release, newest first: "## 0.1.0 (unreleased)".
var version = regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)`)

// Version is that of the API as the changelog names it, newest first.
func Version() string {
	m := version.FindStringSubmatch(root.Changelog)
	if m == nil {
		return "0.0.0"
	}
	return m[1]
}

// stamp is at the end of an entry about the API: the fingerprint that the
// OpenAPI document had when the entry was written, as a comment.
var stamp = regexp.MustCompile(`(?m)^- (\S.{10,}) <!-- api:([0-9a-f]{12}|new) -->$`)

// comment is what only the tests read.
var comment = regexp.MustCompile(` <!-- .*? -->`)

// Stamps are the fingerprints on the entries of the newest version, in order;
// "new" stands on an entry whose document is not written yet.
func Stamps(changelog string) (list []string) {
	for _, m := range stamp.FindAllStringSubmatch(newest(changelog), -1) {
		list = append(list, m[2])
	}
	return list
}

// newest is the part of a changelog about its newest version.
func newest(changelog string) string {
	places := version.FindAllStringIndex(changelog, 2)
	switch len(places) {
	case 0:
		return ""
	case 1:
		return changelog[places[0][0]:]
	}
	return changelog[places[0][0]:places[1][0]]
}

// Stamp puts a fingerprint on the entries that wait for one; ok is false when
// none does.
func Stamp(changelog, fingerprint string) (stamped string, ok bool) {
	const waiting = " <!-- api:new -->"
	part := newest(changelog)
	done := strings.ReplaceAll(part, waiting, " <!-- api:"+fingerprint+" -->")
	return strings.Replace(changelog, part, done, 1), done != part
}
