package postern

import (
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // for systems without a time zone database
	"unicode/utf8"
)

// MaxName is how many characters the name of a workspace, key, device or passkey may
// have.
const MaxName = 200

// CheckName refuses a name that is empty, longer than [MaxName], or not plain text.
// The pointer says which field of the request is wrong.
func CheckName(pointer, name string) error {
	if name == "" || utf8.RuneCountInString(name) > MaxName || !IsPlainText(name) {
		return Invalid(pointer, "a name must have 1 to %d characters of plain text", MaxName)
	}
	return nil
}

// IsPlainText tells whether s is valid UTF-8 without control characters.
func IsPlainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// zoneForm is what names in the IANA time zone database look like. A system's database has others, such as
// posix/Europe/Berlin, which browsers do not know.
var zoneForm = regexp.MustCompile(`^[A-Z][\w+-]*(/[\w+-]+)*$`)

// CheckTimeZone refuses a name that is not in the IANA time zone database. "" is allowed: it stands for the time zone
// of each person. The pointer says which field of the request is wrong.
func CheckTimeZone(pointer, name string) error {
	if name == "" {
		return nil
	}
	if _, err := time.LoadLocation(name); err != nil || name == "Local" || !zoneForm.MatchString(name) {
		return Invalid(pointer, `there is no such time zone; use a name such as "Europe/Berlin"`)
	}
	return nil
}
