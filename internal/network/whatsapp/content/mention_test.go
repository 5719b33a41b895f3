package content_test

import (
	"slices"
	"testing"

	"postern/internal/network/whatsapp/content"
	"postern/internal/postern"
)

func TestMentionsGetOtherNames(t *testing.T) {
	names := map[string]string{"+15550000011": "lid:99", "+1555": "lid:7"}
	name := func(who string) string {
		if other, ok := names[who]; ok {
			return other
		}
		return who
	}
	c := postern.Content{Kind: postern.KindText, Extra: postern.Extra{
		Mentions: []string{"+15550000011", "all", "+1555", "lid:5"},
	}}
	for text, want := range map[string]string{
		"@15550000011, and @1555!": "@99, and @7!", "x@15550000011@15550000011": "x@99@99", "@155500000112": "@155500000112",
		"15550000011": "15550000011", "@": "@", "": "", "@@1555": "@@7", "@5 @all": "@5 @all",
	} {
		c.Text = text
		if got := content.Renamed(c, name); got.Text != want ||
			!slices.Equal(got.Mentions, []string{"lid:99", "all", "lid:7", "lid:5"}) {
			t.Errorf("%q becomes %q with %v, want %q", text, got.Text, got.Mentions, want)
		}
	}
	if c.Mentions[0] != "+15550000011" {
		t.Error("the content itself was changed")
	}
}
