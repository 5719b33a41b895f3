package api

import (
	"strings"

	"postern/internal/api/spec"
	"postern/internal/postern"
)

// idempotencyKey reads the header: a key as it is, or as a quoted string of
// RFC 9651, section 3.3.3. Both forms of one key are the same key.
func idempotencyKey(values []string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	bad := postern.Errorf(postern.MalformedRequest, "an %s is given once and has 1 to %d visible ASCII characters, quoted or not", spec.IdempotencyKey, maxKey)
	if len(values) > 1 {
		return "", bad
	}
	key, ok := values[0], true
	if strings.HasPrefix(key, `"`) {
		key, ok = unquote(key)
	}
	if !ok || key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", bad
	}
	return key, nil
}

// unquote takes the quotes and the escapes of a quoted string off.
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
