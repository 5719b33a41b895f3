package schema

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
)

// text checks a string.
func (w *walker) text(s *huma.Schema, value string) error {
	if err := w.noNUL(value); err != nil {
		return err
	}
	if s == nil {
		return nil
	}
	if wrong := w.checker.textError(s, value); wrong != "" {
		w.invalid("", "%s", wrong)
	}
	return nil
}

// noNUL refuses a text with the character NUL, which ends a text for some
// readers.
func (w *walker) noNUL(text string) error {
	if strings.Contains(text, "\x00") {
		return postern.Errorf(postern.MalformedRequest, "the body has the character NUL in a text, at byte %d", w.at())
	}
	return nil
}

// textError says what is wrong with a text, without repeating it; "" is nothing.
func (c *Checker) textError(s *huma.Schema, value string) string {
	n := -1
	if s.MinLength != nil || s.MaxLength != nil {
		n = utf8.RuneCountInString(value)
	}
	switch {
	case len(s.Enum) > 0 && !slices.Contains(s.Enum, any(value)):
		return "expected one of " + join(s.Enum)
	case s.MinLength != nil && n < *s.MinLength:
		return "expected at least " + count(*s.MinLength, "character")
	case s.MaxLength != nil && n > *s.MaxLength:
		return "expected at most " + count(*s.MaxLength, "character")
	case s.Pattern != "" && !c.patterns[s.Pattern].MatchString(value):
		return "expected " + formOf(s)
	case s.Format != "" && !formats[s.Format].valid(value):
		return "expected " + formats[s.Format].name
	case s.ContentEncoding == base64Encoding && !isBase64(value):
		return "expected base64 with padding and without line breaks (RFC 4648, section 4)"
	}
	return ""
}

const base64Encoding = "base64"

// isBase64 tells whether a text is base64 in its one canonical form.
func isBase64(text string) bool {
	if strings.ContainsAny(text, "\r\n") { // which the decoder skips
		return false
	}
	_, err := base64.StdEncoding.Strict().DecodeString(text)
	return err == nil
}

// formOf describes the pattern of a schema: by its example, or as it is.
func formOf(s *huma.Schema) string {
	if len(s.Examples) > 0 {
		return fmt.Sprintf("a text of the form %v", s.Examples[0])
	}
	return "a text that matches " + s.Pattern
}

func join(list []any) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = word(v)
	}
	return strings.Join(words, ", ")
}

// word writes a value of an enum: a text, or a number as huma reads it from a tag.
func word(v any) string {
	if n, ok := v.(float64); ok {
		return plain(n)
	}
	return fmt.Sprint(v)
}

// count writes a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
