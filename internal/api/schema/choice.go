package schema

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// choice reads an object that has one of several forms. The discriminator, which
// may be its last member, names the form; an object without one has the usual form,
// if there is one. If the schema has no discriminator, each form is known by its mark.
func (w *walker) choice(s *huma.Schema) error {
	raw, err := w.dec.ReadValue()
	if err != nil {
		return err
	}
	inner := walker{
		checker: w.checker, dec: again(raw),
		depth: w.depth + w.dec.StackDepth(), offset: w.at() - int64(len(raw)), path: w.path,
	}
	if typed, usual := w.checker.typed(s); typed != nil {
		inner.named, inner.kinds = typed.Discriminator.PropertyName, typed.Discriminator
		err = inner.value(inner.chosen(typed, usual, raw))
	} else {
		err = inner.value(inner.marked(s, raw))
	}
	w.bad, w.values = append(w.bad, inner.bad...), w.values+inner.values
	return err
}

// again reads a value that a decoder has read and found to be without duplicate
// names. It does not copy the value.
func again(raw []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))
}

// chosen returns the schema that the discriminator of an object names. It notes
// a discriminator that names none. The object is then checked against the usual
// form; without one, nothing is known about the object.
func (w *walker) chosen(s, usual *huma.Schema, raw []byte) *huma.Schema {
	d := s.Discriminator
	place := postern.Step(d.PropertyName)
	name, kind := discriminatorOf(raw, d.PropertyName)
	switch {
	case kind == jsontext.KindInvalid && usual != nil:
	case kind == jsontext.KindInvalid:
		w.invalid(place, "this field is required")
	case kind != jsontext.KindString:
		w.invalid(place, "expected a string")
	case d.Mapping[name] == "":
		w.invalid(place, "expected one of %s", strings.Join(slices.Sorted(maps.Keys(d.Mapping)), ", "))
	default:
		return w.checker.resolve(&huma.Schema{Ref: d.Mapping[name]})
	}
	return usual
}

// marked returns the form whose mark an object has, in whatever case. It notes an object
// that has none. An object with several marks has the first form, which allows no other.
func (w *walker) marked(s *huma.Schema, raw []byte) *huma.Schema {
	marks := make([]string, len(s.OneOf))
	for i := range s.OneOf {
		if marks[i] = w.checker.mark(s, i); hasMember(raw, marks[i]) {
			return w.checker.resolve(s.OneOf[i])
		}
	}
	w.invalid("", "expected one of the fields %s", strings.Join(marks, ", "))
	return nil
}

// mark returns the member by which one of the forms of s is known: the first one that it
// requires and no other form has. If all its members stand in other forms too, mark returns "".
func (c *Checker) mark(s *huma.Schema, i int) string {
	for _, name := range c.resolve(s.OneOf[i]).Required {
		having := 0
		for _, form := range s.OneOf {
			if c.resolve(form).Properties[name] != nil {
				having++
			}
		}
		if having == 1 {
			return name
		}
	}
	return ""
}

// hasMember reports whether an object has a member, in whatever case.
func hasMember(raw []byte, name string) bool {
	dec := again(raw)
	if _, err := dec.ReadToken(); err != nil { // the brace
		return false
	}
	for dec.PeekKind() == jsontext.KindString {
		tok, err := dec.ReadToken()
		if err != nil {
			return false
		}
		if strings.EqualFold(tok.String(), name) {
			return true
		}
		if dec.SkipValue() != nil {
			return false
		}
	}
	return false
}

// typed returns the choice whose discriminator names the form of an object, or nil: s itself,
// or one of the two forms of s. The other is then the usual form, of an object without a
// discriminator.
func (c *Checker) typed(s *huma.Schema) (choice, usual *huma.Schema) {
	if s.Discriminator != nil {
		return s, nil
	}
	for i, form := range s.OneOf {
		if form = c.resolve(form); form.Discriminator != nil && len(s.OneOf) == 2 {
			return form, c.resolve(s.OneOf[1-i])
		}
	}
	return nil, nil
}

// discriminatorOf finds a member of an object; its kind is invalid when the
// object has no such member.
func discriminatorOf(raw []byte, member string) (name string, kind jsontext.Kind) {
	dec := again(raw)
	if _, err := dec.ReadToken(); err != nil { // the brace
		return "", jsontext.KindInvalid
	}
	for dec.PeekKind() == jsontext.KindString {
		quoted, err := dec.ReadValue()
		if err != nil {
			return "", jsontext.KindInvalid
		}
		if isName(quoted, member) {
			tok, err := dec.ReadToken()
			if err != nil {
				return "", jsontext.KindInvalid
			}
			return tok.String(), tok.Kind()
		}
		if dec.SkipValue() != nil {
			return "", jsontext.KindInvalid
		}
	}
	return "", jsontext.KindInvalid
}

// isName reports whether quoted is the name in JSON, which may have escapes.
func isName(quoted []byte, name string) bool {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:len(quoted)-1]) == name
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	return err == nil && string(text) == name
}
