package media

import (
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"
)

// SafeName turns a name that a sender chose into one that can be shown and used on any
// system: no directories, nothing invisible and nothing that changes the direction of
// writing (by which "fdp.exe" can look like "exe.pdf"), at most 200 bytes. If nothing is
// left, the name is "file" with the usual extension of the type.
func SafeName(name, mimeType string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(safeRune, strings.ToValidUTF8(name, ""))
	name = strings.Trim(strings.Join(strings.Fields(name), " "), ". ")
	if name == "" {
		name = "file" + extension(mimeType)
	}
	if isDeviceName(name) {
		name = "_" + name
	}
	return shorten(name)
}

// safeRune drops what cannot be seen, except the joiners that scripts and emoji need, and
// replaces what Windows does not allow.
func safeRune(r rune) rune {
	const joiner, nonJoiner = '\u200d', '\u200c'
	switch {
	case r == joiner || r == nonJoiner:
		return r
	case unicode.IsSpace(r):
		return ' '
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp):
		return -1
	case strings.ContainsRune(`<>:"|?*`, r):
		return '_'
	}
	return r
}

// extension is the usual one of a type, with its dot; "" if there is none.
func extension(mimeType string) string {
	if m := mimetype.Lookup(mimeType); m != nil {
		return m.Extension()
	}
	return ""
}

// isDeviceName reports whether Windows takes a name for a device, with any extension.
func isDeviceName(name string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	stem = strings.TrimSpace(stem)
	switch stem {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	return len(stem) == 4 && (stem[:3] == "COM" || stem[:3] == "LPT") && stem[3] >= '0' && stem[3] <= '9'
}

// shorten keeps the extension of a name that is too long, and whole characters.
func shorten(name string) string {
	if len(name) <= maxName {
		return name
	}
	end := filepath.Ext(name)
	if len(end) > maxName/4 {
		end = ""
	}
	cut := maxName - len(end)
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + end
}
