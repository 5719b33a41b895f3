// Package obs provides what operators watch: the log, metrics and health.
package obs

import (
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
)

// NewLogger returns a logger that writes JSON lines to w. It redacts keys, secrets,
// codes, phone numbers and message texts in everything that is logged.
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: redact}))
}

// NewTextLogger is like NewLogger, with lines for people: the time, the level, the message, and the
// attributes as name=value.
func NewTextLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: redact}))
}

const hidden = "***"

// shapes matches texts that are redacted wherever they occur: API keys, webhook secrets,
// phone numbers with a plus sign or in an address of the vendor, and link codes.
var shapes = regexp.MustCompile(
	`pst_[0-9A-Za-z]{6,}|whsec_[0-9A-Za-z+/=]{6,}|\+[0-9]{7,15}|[0-9]{5,20}(?::[0-9]+)?@(?:s\.whatsapp\.net|lid)|2@[0-9A-Za-z+/=]{8,}|https://wa\.me/\S+`)

// forbidden reports whether the values of an attribute are always redacted.
func forbidden(key string) bool {
	return slices.Contains([]string{
		"authorization", "api_key", "secret", "body", "text", "qr", "code", "number", "phone", "phone_number",
		"password", "cookie",
	}, strings.ToLower(key))
}

// suspicious reports whether a text can contain one of the shapes: each contains one of
// these marks. It avoids running the expression on every id.
func suspicious(s string) bool {
	return strings.ContainsAny(s, "+@") || strings.Contains(s, "pst_") || strings.Contains(s, "whsec_") ||
		strings.Contains(s, "wa.me")
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
	case slog.KindBool,
		slog.KindDuration,
		slog.KindFloat64,
		slog.KindInt64,
		slog.KindTime,
		slog.KindUint64,
		slog.KindGroup,
		slog.KindLogValuer:
	}
	return a
}
