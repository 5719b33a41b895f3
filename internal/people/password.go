package people

import (
	_ "embed" // the common passwords
	"strings"
	"unicode/utf8"

	"postern/internal/postern"
)

// commonPasswords are those of minPassword bytes or more among the 49,233 that
// people choose most often, in lower case, the commonest first. They are from
// @zxcvbn-ts/language-common 4.1.3 (see NOTICE).
//
//go:embed common_passwords.txt
var commonPasswords string

func isCommon(password string) bool {
	for line := range strings.Lines(commonPasswords) {
		if strings.TrimSuffix(line, "\n") == strings.ToLower(password) {
			return true
		}
	}
	return false
}

// checkPassword follows NIST SP 800-63B, 3.1.1: it requires length and no particular kinds
// of characters, and refuses what is easy to guess.
func checkPassword(password, email string) error {
	name, _, _ := strings.Cut(email, "@")
	switch {
	case utf8.RuneCountInString(password) < minPassword:
		return postern.Invalid("/password", "the password is too short; use at least %d characters", minPassword)
	case len(password) > maxPassword:
		return postern.Invalid("/password", "the password is too long; use at most %d bytes", maxPassword)
	case strings.EqualFold(password, email) || strings.EqualFold(password, name):
		return postern.Invalid("/password", "the password must not be your email address")
	case isCommon(password):
		return postern.Invalid("/password", "this password is too common; choose another one")
	case strings.Count(password, password[:1]) == len(password):
		return postern.Invalid("/password", "the password must not repeat a single character")
	}
	return nil
}
