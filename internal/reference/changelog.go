// Package reference is what people read about the API in a browser: the
// reference itself, the changelog, and a page for each reason of a refusal.
package reference

import (
	"regexp"

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
