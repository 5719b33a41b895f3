package api

import (
	"strings"

	"postern/internal/api/spec"
	"postern/internal/postern"
)

// idempotencyKey reads the header: a key as it is, or as a quoted string (RFC 9651,
// section 3.3.3). Both forms of a key are the same key.
func idempotencyKey(values []string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	bad := postern.Errorf(postern.MalformedRequest,
		"the %s header is not valid; send it once, with 1 to %d visible ASCII characters, quoted or not",
		spec.IdempotencyKey, maxKey)
	if len(values) > 1 {
		return "", bad
	}
	key, ok := values[0], true
	if strings.HasPrefix(key, `"`) {
		key, ok = unquote(key)
	}
	if !ok || key == "" || len(key) > maxKey || strings.ContainsFunc(key, invisible) {
		return "", bad
	}
	return key, nil
}

// invisible tells whether a character is no visible ASCII character.
func invisible(r rune) bool { return r <= ' ' || r > '~' }

// unquote removes the quotes and the escapes of a quoted string.
func unquote(s string) (string, bool) {
	inner, ok := strings.CutSuffix(s[1:], `"`)
	if !ok {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(inner); i++ {
		c := inner[i]
		if c == '"' {
			return "", false
		}
		if c == '\\' {
			i++
			if i == len(inner) || inner[i] != '"' && inner[i] != '\\' {
				return "", false
			}
			c = inner[i]
		}
		b.WriteByte(c)
	}
	return b.String(), true
}
