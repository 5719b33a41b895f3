package schema

import (
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"time"

	"postern/internal/postern"
)

// format is how texts of a format are recognised, and how an error names them.
type format struct {
	valid func(string) bool
	name  string
}

// formats has every format that a text of a body may have.
var formats = map[string]format{ //nolint:gochecknoglobals // made once, never changed
	"date-time":     {isTime, "a time in RFC 3339 form, such as 2026-12-01T09:00:00.000Z"},
	"date":          {isDate, "a date, such as 2026-12-01"},
	"uri":           {isURI, "an absolute URI, such as https://example.com/a"},
	"uri-reference": {isReference, "a URI or a path"},
	"email":         {isEmail, "an email address, such as name@example.com"},
	"uuid":          {uuidForm.MatchString, "a UUID, such as 123e4567-e89b-12d3-a456-426614174000"},
	"ipv4":          {isIPv4, "an IPv4 address, such as 192.0.2.1"},
	"ipv6":          {isIPv6, "an IPv6 address, such as 2001:db8::1"},
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func isTime(s string) bool {
	var t postern.Time
	return t.UnmarshalText([]byte(s)) == nil
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

func isURI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.IsAbs()
}

func isReference(s string) bool {
	_, err := url.Parse(s)
	return err == nil
}

func isEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s
}

func isIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}
