package schema

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// number checks a number. A whole number is written without point and exponent,
// and has at most 64 bits; any other fits a 64-bit floating point number.
func (w *walker) number(s *huma.Schema, tok jsontext.Token) {
	if s == nil {
		return
	}
	text := tok.String()
	var value float64
	var err error
	if s.Type == huma.TypeInteger {
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		value = float64(n)
	} else {
		value, err = strconv.ParseFloat(text, 64)
	}
	switch wrong := outOfRange(s, value); {
	case err != nil:
		w.invalid("", "expected %s", typeName(s))
	case wrong != "":
		w.invalid("", "expected %s", wrong)
	case len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(one any) bool { return word(one) == text }):
		w.invalid("", "expected one of %s", join(s.Enum))
	}
}

// outOfRange says which bound a number exceeds; "" means that it exceeds no bound.
func outOfRange(s *huma.Schema, n float64) string {
	switch {
	case s.Minimum != nil && n < *s.Minimum:
		return "at least " + plain(*s.Minimum)
	case s.Maximum != nil && n > *s.Maximum:
		return "at most " + plain(*s.Maximum)
	case s.ExclusiveMinimum != nil && n <= *s.ExclusiveMinimum:
		return "more than " + plain(*s.ExclusiveMinimum)
	case s.ExclusiveMaximum != nil && n >= *s.ExclusiveMaximum:
		return "less than " + plain(*s.ExclusiveMaximum)
	}
	return ""
}

// plain writes a number without an exponent where it is not too long.
func plain(n float64) string {
	if n == float64(int64(n)) {
		return strconv.FormatInt(int64(n), 10)
	}
	return fmt.Sprint(n)
}
