// Package obs is what operators look at: the log, metrics and health.
package obs

import (
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
)

// NewLogger writes JSON lines to w. Whatever is logged, it shows no key, no
// secret, no code, no phone number and no text of a message.
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: redact}))
}

const hidden = "***"

// shapes are texts that must not be shown wherever they turn up: API keys,
// webhook secrets, phone numbers with their plus sign or in an address of the
// vendor, and codes that link an account.
var shapes = regexp.MustCompile(`pst_[0-9A-Za-z]{6,}|whsec_[0-9A-Za-z+/=]{6,}|\+[0-9]{7,15}|[0-9]{5,20}(?::[0-9]+)?@(?:s\.whatsapp\.net|lid)|2@[0-9A-Za-z+/=]{8,}|https://wa\.me/\S+`)

// forbidden are names of attributes that are never shown.
func forbidden(key string) bool {
	return slices.Contains([]string{"authorization", "api_key", "secret", "body", "text", "qr", "code", "number", "phone", "phone_number", "password", "cookie"}, strings.ToLower(key))
}

// suspicious tells whether a text could hold one of the shapes: each has one of
// these marks. It keeps the expression from running over every id.
func suspicious(s string) bool {
	return strings.ContainsAny(s, "+@") || strings.Contains(s, "pst_") || strings.Contains(s, "whsec_") || strings.Contains(s, "wa.me")
}

func hide(s string) string {
	if !suspicious(s) {
		return s
	}
	return shapes.ReplaceAllString(s, hidden)
}

func redact(_ []string, a slog.Attr) slog.Attr {
	if forbidden(a.Key) {
		return slog.String(a.Key, hidden)
	}
	switch a.Value.Kind() {
	case slog.KindString:
		return slog.String(a.Key, hide(a.Value.String()))
	case slog.KindAny:
		if text := fmt.Sprint(a.Value.Any()); suspicious(text) {
			return slog.String(a.Key, hide(text))
		}
		if err, ok := a.Value.Any().(error); ok {
			return slog.String(a.Key, err.Error())
		}
	case slog.KindBool, slog.KindDuration, slog.KindFloat64, slog.KindInt64, slog.KindTime, slog.KindUint64, slog.KindGroup, slog.KindLogValuer:
	}
	return a
}
