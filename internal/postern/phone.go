package postern

import (
	"errors"
	"strings"
)

// E.164 (ITU-T) allows at most 15 digits. The contract requires at least 7.
const (
	minPhoneDigits = 7
	maxPhoneDigits = 15

	// Hidden numbers and groups have longer names.
	minLIDDigits   = 5
	maxLIDDigits   = 20
	maxGroupDigits = 40
)

// The errors of [ParsePhone] and [ParseChat]. Their texts say what to write instead.
var (
	errNotPhone = errors.New("write a phone number as + and 7 to 15 digits")
	errNotChat  = errors.New("write a phone number as + and 7 to 15 digits, or use a chatId from an event")
	errTwoZeros = errors.New("write + instead of the leading 00: + and the country code, such as +49")
	errTrunk    = errors.New("leave out the (0) after the country code")
	errNotLID   = errors.New("write a hidden number as lid: and 5 to 20 digits, as in the chatId of an event")
	errNotGroup = errors.New("write a group as group: and its digits, as in the chatId of an event")

	errNotChannel = errors.New("write a channel as channel: and its digits, as in the list of channels")
)

// ParsePhone normalizes a phone number to "+" and digits. Spaces, dots, dashes and
// brackets between the digits are ignored, and so is the device part of the vendor's
// addresses "15551234567@s.whatsapp.net" and "15551234567@c.us". The text of an error
// says what to write instead, and does not contain s.
func ParsePhone(s string) (string, error) {
	if user, server, ok := strings.Cut(s, "@"); ok {
		if server != "s.whatsapp.net" && server != "c.us" {
			return "", errNotPhone
		}
		return phoneOf(withoutDevice(user))
	}
	if strings.Contains(s, "(0)") {
		return "", errTrunk
	}
	number := strings.TrimPrefix(s, "+")
	if number == "" || !strings.Contains("0123456789 ([", number[:1]) || number == s && !isDigit(rune(s[0])) ||
		!strings.Contains("0123456789)]", number[len(number)-1:]) {
		return "", errNotPhone // separators are between digits
	}
	return phoneOf(strings.Map(withoutSeparator, number))
}

// withoutSeparator drops the characters that people write between the digits of a number.
func withoutSeparator(r rune) rune {
	if strings.ContainsRune(" \t\u00a0\u202f.-\u2010\u2011\u2013()[]", r) {
		return -1
	}
	return r
}

func phoneOf(digits string) (string, error) {
	switch {
	case strings.HasPrefix(digits, "00") && isDigits(digits):
		return "", errTwoZeros
	case !isDigits(digits) || digits[0] == '0' || len(digits) < minPhoneDigits || len(digits) > maxPhoneDigits:
		return "", errNotPhone
	}
	return "+" + digits, nil
}

// ParseChat normalizes the id of a chat: a phone number in any form that [ParsePhone]
// accepts, "lid:" or "group:" with digits, "channel:" with digits, "status", or one of the
// vendor's addresses, such as "123456789@g.us". An error is like those of ParsePhone.
func ParseChat(s string) (string, error) {
	if kind, id, ok := strings.Cut(s, ":"); ok && !strings.Contains(s, "@") {
		return parseNamed(kind, id)
	}
	user, server, _ := strings.Cut(s, "@")
	switch server {
	case "lid":
		return parseNamed("lid", withoutDevice(user))
	case "g.us":
		return parseNamed("group", user)
	case "newsletter":
		return parseNamed("channel", user)
	}
	if s == StatusChat {
		return s, nil
	}
	number, err := ParsePhone(s)
	if errors.Is(err, errNotPhone) {
		err = errNotChat
	}
	return ChatOfNumber(number), err
}

// parseNamed returns the chat id of anything but a number.
func parseNamed(kind, id string) (string, error) {
	switch kind {
	case "lid":
		if !isDigits(id) || len(id) < minLIDDigits || len(id) > maxLIDDigits {
			return "", errNotLID
		}
		return ChatOfLID(id), nil
	case "channel":
		if !isDigits(id) || len(id) > maxGroupDigits {
			return "", errNotChannel
		}
		return "channel:" + id, nil
	case "group":
		old, at, _ := strings.Cut(id, "-") // old groups have two parts
		if !isDigits(old+at) || old == "" || strings.HasSuffix(id, "-") || len(id) > maxGroupDigits {
			return "", errNotGroup
		}
		return "group:" + id, nil
	}
	return "", errNotChat
}

// withoutDevice removes the agent and the device from the user part of the vendor's
// addresses: "15551234567.0:5" is 15551234567.
func withoutDevice(user string) string {
	rest, device, ok := strings.Cut(user, ":")
	if ok && !isDigits(device) {
		return ""
	}
	if user, agent, ok := strings.Cut(rest, "."); ok && isDigits(agent) {
		return user
	}
	return rest
}

func isDigits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !isDigit(r) })
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// ChatOfNumber is the chat id of the direct chat with a phone number.
func ChatOfNumber(number string) string { return number }

// NumberOfChat returns the phone number of a direct chat, or "" for any other chat.
func NumberOfChat(chat string) string {
	if strings.HasPrefix(chat, "+") {
		return chat
	}
	return ""
}

// IsDirect reports whether a chat is one with a person, whose number may be hidden.
func IsDirect(chat string) bool { return NumberOfChat(chat) != "" || strings.HasPrefix(chat, "lid:") }

// IsGroup reports whether a chat is a group.
func IsGroup(chat string) bool { return strings.HasPrefix(chat, "group:") }

// IsChannel reports whether a chat is a channel.
func IsChannel(chat string) bool { return strings.HasPrefix(chat, "channel:") }

// ChatOfLID is the chat id of a direct chat with a number that the vendor hides.
func ChatOfLID(lid string) string { return "lid:" + lid }
