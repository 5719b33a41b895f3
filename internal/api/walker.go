package api

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// walker reads a body token by token and notes the places that its schema does
// not allow. An error is for a body that cannot be read on.
type walker struct {
	dec      *jsontext.Decoder
	registry huma.Registry
	bad      []error
}

// errEnough ends a walk that has found as many places as an answer names.
var errEnough = errors.New("enough places are wrong")

func (w *walker) invalid(pointer, format string, args ...any) {
	w.bad = append(w.bad, postern.Invalid(pointer, format, args...))
}

// value reads one value; s is nil where nothing is known about it.
func (w *walker) value(s *huma.Schema, pointer string) error {
	if len(w.bad) >= maxFields {
		return errEnough
	}
	tok, err := w.dec.ReadToken()
	if err != nil {
		return err
	}
	if w.dec.StackDepth() > maxDepth {
		return postern.Errorf(postern.MalformedRequest, "the body nests deeper than %d levels", maxDepth)
	}
	for s != nil && s.Ref != "" {
		s = w.registry.SchemaFromRef(s.Ref)
	}
	if s != nil && tok.Kind() == jsontext.KindNull && takesNull(s) {
		return nil
	}
	if s != nil && !fits(tok.Kind(), s.Type) {
		w.invalid(pointer, "expected %s", typeName(s.Type))
		s = nil
	}
	switch tok.Kind() {
	case jsontext.KindBeginObject:
		return w.object(s, pointer)
	case jsontext.KindBeginArray:
		return w.array(s, pointer)
	case jsontext.KindString:
		return w.text(s, pointer, tok.String())
	case jsontext.KindNumber:
		w.number(s, pointer, tok.String())
	default: // null, true and false say nothing more
	}
	return nil
}

// fits tells whether a value of this kind has the type. Null has none: a
// member without a value is left out, but for those that takesNull knows.
func fits(k jsontext.Kind, schemaType string) bool {
	switch k {
	case jsontext.KindBeginObject:
		return schemaType == huma.TypeObject
	case jsontext.KindBeginArray:
		return schemaType == huma.TypeArray
	case jsontext.KindString:
		return schemaType == huma.TypeString
	case jsontext.KindNumber:
		return schemaType == huma.TypeInteger
	case jsontext.KindTrue, jsontext.KindFalse:
		return schemaType == huma.TypeBoolean
	default:
		return false
	}
}

func typeName(schemaType string) string {
	switch schemaType {
	case huma.TypeObject:
		return "an object"
	case huma.TypeArray:
		return "a list"
	case huma.TypeInteger:
		return "a whole number"
	}
	return "a " + schemaType
}

// text checks a string, and a name with s nil.
func (w *walker) text(s *huma.Schema, pointer, value string) error {
	if strings.Contains(value, "\x00") {
		return postern.Errorf(postern.MalformedRequest, "the body has the character NUL in a text, at byte %d", w.dec.InputOffset())
	}
	if s == nil {
		return nil
	}
	switch n := utf8.RuneCountInString(value); {
	case len(s.Enum) > 0 && !slices.Contains(s.Enum, any(value)):
		w.invalid(pointer, "expected one of %s", join(s.Enum))
	case s.MinLength != nil && n < *s.MinLength:
		w.invalid(pointer, "expected at least %d characters", *s.MinLength)
	case s.MaxLength != nil && n > *s.MaxLength:
		w.invalid(pointer, "expected at most %d characters", *s.MaxLength)
	}
	return nil
}

func join(list []any) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, ", ")
}

// number takes whole numbers only, written without point and exponent: no
// member of a body is of another kind.
func (w *walker) number(s *huma.Schema, pointer, text string) {
	if s == nil {
		return
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		w.invalid(pointer, "expected a whole number")
	case s.Minimum != nil && n < int64(*s.Minimum):
		w.invalid(pointer, "expected at least %d", int64(*s.Minimum))
	case s.Maximum != nil && n > int64(*s.Maximum):
		w.invalid(pointer, "expected at most %d", int64(*s.Maximum))
	}
}

func (w *walker) object(s *huma.Schema, pointer string) error {
	missing := map[string]bool{}
	if s != nil {
		for _, name := range s.Required {
			missing[name] = true
		}
	}
	for n := 0; w.dec.PeekKind() != jsontext.KindEndObject; n++ {
		if n == maxMembers {
			return postern.Errorf(postern.PayloadTooLarge, "an object has at most %d members", maxMembers)
		}
		tok, err := w.dec.ReadToken()
		if err != nil {
			return err
		}
		name := tok.String()
		delete(missing, name)
		if err := w.member(s, pointer, name); err != nil {
			return err
		}
	}
	for name := range missing {
		w.invalid(pointer+pointerTo(name), "this member is required")
	}
	_, err := w.dec.ReadToken()
	return err
}

// member reads the value of one member.
func (w *walker) member(s *huma.Schema, pointer, name string) error {
	if err := w.text(nil, "", name); err != nil {
		return err
	}
	if s == nil {
		return w.value(nil, "")
	}
	pointer += pointerTo(name)
	if values, free := s.AdditionalProperties.(*huma.Schema); free {
		return w.value(values, pointer)
	}
	value := s.Properties[name]
	if value == nil && inOtherCase(s, name) {
		return postern.Errorf(postern.MalformedRequest, "the body names a member in another case than documented, at byte %d", w.dec.InputOffset())
	}
	if value == nil {
		w.invalid(pointer, "there is no such member")
	}
	return w.value(value, pointer)
}

func inOtherCase(s *huma.Schema, name string) bool {
	for have := range s.Properties {
		if strings.EqualFold(have, name) {
			return true
		}
	}
	return false
}

func (w *walker) array(s *huma.Schema, pointer string) error {
	for i := 0; w.dec.PeekKind() != jsontext.KindEndArray; i++ {
		var items *huma.Schema
		place := "" // not written out where nobody asks: a body may have half a million of them
		if s != nil {
			items, place = s.Items, pointer+"/"+strconv.Itoa(i)
		}
		if err := w.value(items, place); err != nil {
			return err
		}
	}
	_, err := w.dec.ReadToken()
	return err
}
