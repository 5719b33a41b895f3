// Package postern holds the files of the repository's root that the program
// serves. The program itself is in cmd/postern.
package postern

import _ "embed" // the changelog

// Changelog is CHANGELOG.md.
//
//go:embed CHANGELOG.md
var Changelog string
