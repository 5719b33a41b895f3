// Package postern holds the files of the repository's root that the program
// serves. The program itself is in cmd/postern.
package postern

import "embed"

// Changelog is CHANGELOG.md.
//
//go:embed CHANGELOG.md
var Changelog string

// Docs are the guides and the other pages for people, with the files that they link to. They stay in the
// executable; what is read from them is a copy.
//
//go:embed docs deploy bench/results/*.md
var Docs embed.FS
