package gateway

import (
	"strings"
	"unicode/utf8"

	"postern/internal/postern"
)

func checkName(pointer, name string) error {
	if name == "" || len(name) > maxName || !cleanText(name) {
		return postern.Invalid(pointer, "a name has 1 to %d bytes of plain text", maxName)
	}
	return nil
}

// cleanText tells whether s is valid UTF-8 without control characters.
func cleanText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func tooLarge(format string, args ...any) error {
	return postern.Errorf(postern.PayloadTooLarge, format, args...)
}

func checkMetadata(m map[string]string) error {
	if len(m) > maxMetadata {
		return tooLarge("metadata has at most %d members", maxMetadata)
	}
	for k, v := range m {
		if len(k) > maxMetadataBytes || len(v) > maxMetadataBytes {
			return tooLarge("a name or value in metadata has at most %d bytes", maxMetadataBytes)
		}
	}
	return nil
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
