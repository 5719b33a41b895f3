package content

import (
	"mime"
	"path"
	"strings"
	"unicode"

	"postern/internal/postern"
)

const (
	// maxType is the limit of the type of a file, in bytes.
	maxType = 100
	// anyType is the type of a file of which nothing else is known.
	anyType = "application/octet-stream"
)

// mimeType returns the type that a sender declares, or that of any file if it is none.
func mimeType(declared string) string {
	kind, params, err := mime.ParseMediaType(Clip(declared, maxType))
	if err != nil || !strings.Contains(kind, "/") {
		return anyType
	}
	if kind = mime.FormatMediaType(kind, params); kind == "" || len(kind) > maxType {
		return anyType
	}
	return kind
}

// filename returns the name of a file that a sender declares as it can be shown: without
// directories, and without what cannot be seen or changes the direction of writing. It is ""
// if nothing is left.
func filename(declared string) string {
	name := declared[strings.LastIndexAny(declared, `/\`)+1:]
	name = strings.Map(visible, strings.ToValidUTF8(name, ""))
	name = strings.Trim(strings.Join(strings.Fields(name), " "), ". ")
	if len(name) <= postern.MaxFilename {
		return name
	}
	end := path.Ext(name)
	if len(end) > postern.MaxFilename/4 {
		end = ""
	}
	return Clip(name, postern.MaxFilename-len(end)) + end
}

// visible drops a character that cannot be seen, except the joiners that scripts and emoji
// need.
func visible(r rune) rune {
	const joiner, nonJoiner = '\u200d', '\u200c'
	switch {
	case r == joiner || r == nonJoiner:
		return r
	case unicode.IsSpace(r):
		return ' '
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp):
		return -1
	}
	return r
}
