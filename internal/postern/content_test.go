package postern

import (
	"strings"
	"testing"
)

func TestContentThatCanBeSent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   Content
		want Reason // "" for content that can be sent
	}{
		{"a text", Text("hello"), ""},
		{"the longest text", Text(strings.Repeat("x", MaxText)), ""},
		{"a longer text", Text(strings.Repeat("x", MaxText+1)), PayloadTooLarge},
		{"the longest text in Chinese", Text(strings.Repeat("字", MaxText)), ""},
		{"the longest text in pictures", Text(strings.Repeat("👋", MaxText)), ""},
		{"a longer text in Chinese", Text(strings.Repeat("字", MaxText+1)), PayloadTooLarge},
		{"no text", Text(""), ValidationFailed},
		{"an unsupported kind", Unsupported(), ValidationFailed},
		{"nothing", Content{}, ValidationFailed},
	}
	for _, tt := range tests {
		err := tt.in.Check()
		if (err == nil) != (tt.want == "") || err != nil && ReasonOf(err) != tt.want {
			t.Errorf("%s: check = %v, want %q", tt.name, err, tt.want)
		}
	}
}
