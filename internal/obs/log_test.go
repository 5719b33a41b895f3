package obs

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestLogShowsNothingThatMustStayHidden(t *testing.T) {
	t.Parallel()
	canaries := []string{
		"pst_abcdefghijklmnopqrstuvwxyz0123456789AB", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "+15551234567",
		"15551234567:3@s.whatsapp.net", "110000000000001@lid",
	}
	var out bytes.Buffer
	log := NewLogger(&out, slog.LevelDebug)
	for _, c := range canaries {
		log.Info("x "+c, "a", c, //nolint:sloglint // a message must not leak either
			"error", errors.New("send to "+c+" failed"))
		log.With("in", c).Info("x", "authorization", "Bearer "+c)
		log.Info("x", slog.Group("g", "b", "tail "+c))
	}
	log.Info("x", "body", "hello there", "qr", "hello there", "secret", "hello there")
	for _, c := range append(canaries, "hello there") {
		if strings.Contains(out.String(), c) {
			t.Errorf("the log shows %q", c)
		}
	}
	if !strings.Contains(out.String(), "send to *** failed") {
		t.Error("an error lost the words around what is hidden")
	}
}

func TestIdsStayReadable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	NewLogger(&out, slog.LevelInfo).Info("x", "device", "dev_01JD8Z3NDEKTSV4RRFFQ69G5FA", "n", 15551234567)
	if !strings.Contains(out.String(), "dev_01JD8Z3NDEKTSV4RRFFQ69G5FA") {
		t.Error("an id was hidden")
	}
}

func TestTextLogIsRedactedToo(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	NewTextLogger(&out, slog.LevelInfo).Info("a request", "number", "+15550001111", "key", "pst_0123456789", "status", 200)
	line := out.String()
	if !strings.Contains(line, `level=INFO msg="a request" number=*** key=*** status=200`) {
		t.Errorf("the line is %s", line)
	}
}
