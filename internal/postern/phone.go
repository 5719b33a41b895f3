package postern

import "strings"

// E.164 (ITU-T) allows at most 15 digits. The contract requires at least 7.
const (
	minPhoneDigits = 7
	maxPhoneDigits = 15
)

// ParsePhone normalizes a recipient to "+" and digits. It accepts "+15551234567", digits
// only, and the vendor's address "15551234567@s.whatsapp.net". It removes nothing else:
// spaces, brackets and digits of other scripts are refused.
func ParsePhone(s string) (string, bool) {
	s = strings.TrimSuffix(s, "@s.whatsapp.net")
	s = strings.TrimSuffix(s, "@c.us")
	digits := strings.TrimPrefix(s, "+")
	if len(digits) < minPhoneDigits || len(digits) > maxPhoneDigits || digits[0] == '0' {
		return "", false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return "", false
		}
	}
	return "+" + digits, true
}

// ChatOfNumber is the chat id of the direct chat with a phone number.
func ChatOfNumber(number string) string { return number }

// ChatOfLID is the chat id of a direct chat with a number that the vendor hides.
func ChatOfLID(lid string) string { return "lid:" + lid }
