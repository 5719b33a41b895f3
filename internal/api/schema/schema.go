// Package schema checks the JSON body of a request against its schema in the
// OpenAPI document.
//
// A [Checker] reads a body once, token by token. It refuses as malformed what
// two readers could understand differently: duplicate members, members in
// another case, broken UTF-8, NUL, text after the value, and deep nesting. Of the
// rest it names each place that the schema does not allow, by a JSON pointer. No
// error repeats a value of the caller. docs/decisions/0020-validation.md says why
// no library does this.
package schema

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// Check checks a body against s. The error is nil or a [postern.Error]:
// MalformedRequest, PayloadTooLarge, or ValidationFailed with the places.
func (c *Checker) Check(body []byte, s *huma.Schema) error {
	w := walker{checker: c, dec: jsontext.NewDecoder(bytes.NewBuffer(body)), path: make([]step, 0, usualDepth)}
	switch err := w.value(s); {
	case errors.Is(err, errEnough):
		return Merge(w.bad)
	case err != nil:
		return malformed(err)
	}
	if _, err := w.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return postern.Errorf(postern.MalformedRequest, "the body has more than one JSON value")
	}
	return Merge(w.bad)
}

// malformed keeps our own errors and replaces those of the decoder, which quote
// the body.
func malformed(err error) error {
	if own, ok := errors.AsType[*postern.Error](err); ok {
		return own
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return postern.Errorf(postern.MalformedRequest, "the body contains a field twice, at byte %d",
				syntax.ByteOffset)
		}
		return postern.Errorf(postern.MalformedRequest, "the body is not JSON in UTF-8, at byte %d", syntax.ByteOffset)
	}
	return postern.Errorf(postern.MalformedRequest, "the body is not JSON in UTF-8")
}

// Merge makes one ValidationFailed of errors about single places, ordered by
// their pointers. It returns nil for none.
func Merge(list []error) error {
	if len(list) == 0 {
		return nil
	}
	all := postern.Invalid("", "")
	all.Fields = nil
	for _, err := range list {
		if e, ok := errors.AsType[*postern.Error](err); ok {
			all.Fields = append(all.Fields, e.Fields...)
		}
	}
	slices.SortFunc(all.Fields, func(x, y postern.Field) int { return strings.Compare(x.Pointer, y.Pointer) })
	return all
}
