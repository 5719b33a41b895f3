package postern

import (
	"strings"
	"testing"
)

func TestParsePhoneTakesNumbersAndNothingElse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"+15551234567": "+15551234567", "15551234567": "+15551234567", "15551234567@s.whatsapp.net": "+15551234567",
		"15551234567@c.us": "+15551234567", "15551234567:5@s.whatsapp.net": "+15551234567",
		"15551234567.0:5@s.whatsapp.net": "+15551234567", "+1234567": "+1234567", "+123456789012345": "+123456789012345",
		"+1 555 123 4567": "+15551234567", "+1(555)1234567": "+15551234567", "+1.555.123-4567": "+15551234567",
		"+1 (555) 123\u201145\u00a067": "+15551234567", "+1 [555] 1234567": "+15551234567",
		"": "", "+": "", "+123456": "", "+1234567890123456": "", "+05551234567": "", "++15551234567": "",
		"+1555123456٧": "", "+１５５５１２３４５６７": "", "+15551234567;ext=1": "", "+15551234567 ": "", " 15551234567": "",
		"\u202a+15551234567": "", "status@broadcast": "", "123456789-123@g.us": "", "+1555123456x": "",
		"-15551234567": "", "+-15551234567": "", "(555) 1234567": "", "+1 555 1234567-": "",
		"+1 5551234567@c.us": "", "15551234567:x@c.us": "", "+15551234567@lid": "",
	} {
		got, err := ParsePhone(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("ParsePhone(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
}

// TestRefusedFormNamesTheCorrectOne gives forms that people write and the vendor does not
// know.
func TestRefusedFormNamesTheCorrectOne(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]error{
		"00491512345678": errTwoZeros, "+0049 151 2345678": errTwoZeros, "0049 (151) 2345678": errTwoZeros,
		"+49 (0) 151 2345678": errTrunk, "0151 2345678": errNotChat, "tel:+15551234567": errNotChat,
		"lid:12": errNotLID, "lid:+15551234567": errNotLID, "x@lid": errNotLID,
		"group:": errNotGroup, "group:12-": errNotGroup, "x@g.us": errNotGroup,
	} {
		if got, err := ParseChat(in); got != "" || err != want { //nolint:errorlint // the very same
			t.Errorf("ParseChat(%q) = %q, %v, want %v", in, got, err, want)
		}
	}
}

func TestEveryFormOfAChatIsTheSameChat(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"+1 555 123-4567": "+15551234567", "15551234567:9@s.whatsapp.net": "+15551234567",
		"lid:123456789012345": "lid:123456789012345", "123456789012345:3@lid": "lid:123456789012345",
		"group:120363012345678901": "group:120363012345678901", "120363012345678901@g.us": "group:120363012345678901",
		"1234567890-1234567890@g.us": "group:1234567890-1234567890", "channel:120363012345678901": "channel:120363012345678901",
		"status": "status",
	} {
		if got, err := ParseChat(in); got != want || err != nil {
			t.Errorf("ParseChat(%q) = %q, %v, want %q", in, got, err, want)
		}
		if got, err := ParseChat(want); got != want || err != nil {
			t.Errorf("ParseChat(%q) = %q, %v, want the same", want, got, err)
		}
	}
}

func FuzzParsePhone(f *testing.F) {
	for _, s := range []string{"+15551234567", "٣@s.whatsapp.net", "+1 (555) 123-4567", "1.0:5@c.us", "group:1-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		chat, err := ParseChat(s)
		if again, err2 := ParseChat(chat); err == nil && (err2 != nil || again != chat) {
			t.Errorf("ParseChat(%q) = %q, which is not stable", s, chat)
		}
		got, err := ParsePhone(s)
		if err != nil {
			return
		}
		if again, err := ParsePhone(got); err != nil || again != got || chat != got || len(got) < 8 || len(got) > 16 ||
			strings.Trim(got[1:], "0123456789") != "" {
			t.Errorf("ParsePhone(%q) = %q, which is not stable", s, got)
		}
	})
}
