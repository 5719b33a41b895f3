package schema

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// walker reads a body token by token and notes the places that its schema does
// not allow. Its methods return an error when the body cannot be read on. A
// schema that is nil allows everything.
type walker struct {
	checker *Checker
	dec     *jsontext.Decoder
	depth   int   // of the value that dec reads, in the body
	offset  int64 // of the value that dec reads, in the body
	path    []step
	named   string // the discriminator of the object that dec reads; it is checked already

	kinds  *huma.Discriminator // the forms of the object that dec reads; nil if it has one only
	bad    []error
	values int // read so far
}

// usualDepth is as deep as documented bodies nest.
const usualDepth = 6

// step leads from a value to one of its members or items.
type step struct {
	name  string
	index int // in an array; -1 for a member
}

// errEnough ends a walk that has found as many places as a refusal names.
var errEnough = errors.New("enough places are wrong")

// invalid notes that the value at the path, or one of its members, is wrong.
func (w *walker) invalid(member, format string, args ...any) {
	var pointer strings.Builder
	for _, s := range w.path {
		if s.index >= 0 {
			pointer.WriteString("/" + strconv.Itoa(s.index))
		} else {
			pointer.WriteString(postern.Step(s.name))
		}
	}
	w.bad = append(w.bad, postern.Invalid(pointer.String()+member, format, args...))
}

// at returns the place in the body where the walker is, in bytes.
func (w *walker) at() int64 { return w.offset + w.dec.InputOffset() }

// value reads one value.
func (w *walker) value(s *huma.Schema) error {
	if len(w.bad) >= MaxPlaces {
		return errEnough
	}
	if s = w.checker.resolve(s); s != nil && len(s.OneOf) > 0 && w.dec.PeekKind() == jsontext.KindBeginObject {
		return w.choice(s)
	}
	w.values++
	tok, err := w.dec.ReadToken()
	if err != nil {
		return err
	}
	if w.depth+w.dec.StackDepth() > maxDepth {
		return postern.Errorf(postern.MalformedRequest, "the body nests deeper than %d levels", maxDepth)
	}
	if s != nil && s.Nullable && tok.Kind() == jsontext.KindNull {
		return nil
	}
	if s != nil && !hasType(tok.Kind(), s) {
		w.invalid("", "expected %s", typeName(s))
		s = nil
	}
	return w.content(s, tok)
}

// content reads the rest of a value whose type is right.
func (w *walker) content(s *huma.Schema, tok jsontext.Token) error {
	switch tok.Kind() {
	case jsontext.KindBeginObject:
		return w.object(s)
	case jsontext.KindBeginArray:
		return w.array(s)
	case jsontext.KindString:
		return w.text(s, tok.String())
	case jsontext.KindNumber:
		w.number(s, tok)
	default: // null, true and false say nothing more
	}
	return nil
}

// hasType tells whether a value of this kind has the type of a schema. Null has
// none: in a body, a member without a value is left out.
func hasType(k jsontext.Kind, s *huma.Schema) bool {
	switch k {
	case jsontext.KindBeginObject:
		return s.Type == huma.TypeObject && len(s.OneOf) == 0
	case jsontext.KindBeginArray:
		return s.Type == huma.TypeArray
	case jsontext.KindString:
		return s.Type == huma.TypeString
	case jsontext.KindNumber:
		return s.Type == huma.TypeInteger || s.Type == huma.TypeNumber
	case jsontext.KindTrue, jsontext.KindFalse:
		return s.Type == huma.TypeBoolean
	default:
		return false
	}
}

func typeName(s *huma.Schema) string {
	switch {
	case s.Type == huma.TypeObject || len(s.OneOf) > 0:
		return "an object"
	case s.Type == huma.TypeArray:
		return "an array"
	case s.Type == huma.TypeInteger:
		return "a whole number"
	}
	return "a " + s.Type
}

// object reads the members of an object.
func (w *walker) object(s *huma.Schema) error {
	var missing []string
	if s != nil {
		missing = slices.Clone(s.Required)
	}
	for n := 0; w.dec.PeekKind() != jsontext.KindEndObject; n++ {
		if n == maxMembers {
			return postern.Errorf(postern.PayloadTooLarge, "an object may have at most %d fields", maxMembers)
		}
		tok, err := w.dec.ReadToken()
		if err != nil {
			return err
		}
		name := tok.String()
		if i := slices.Index(missing, name); i >= 0 {
			missing = slices.Delete(missing, i, i+1)
		}
		if err := w.member(s, name); err != nil {
			return err
		}
	}
	for _, name := range missing {
		w.invalid(postern.Step(name), "this field is required")
	}
	_, err := w.dec.ReadToken()
	return err
}

// member reads the value of one member.
func (w *walker) member(s *huma.Schema, name string) error {
	if err := w.noNUL(name); err != nil {
		return err
	}
	value, err := w.schemaOf(s, name)
	if err != nil {
		return err
	}
	w.path = append(w.path, step{name, -1})
	err = w.value(value)
	w.path = w.path[:len(w.path)-1]
	return err
}

// schemaOf finds the schema of a member, and notes that there is no such field.
func (w *walker) schemaOf(s *huma.Schema, name string) (*huma.Schema, error) {
	if s == nil {
		return nil, nil
	}
	if name == w.named && w.dec.StackDepth() == 1 {
		return nil, nil
	}
	if value := s.Properties[name]; value != nil {
		return value, nil
	}
	if values, free := s.AdditionalProperties.(*huma.Schema); free {
		return values, nil
	}
	if isCredential(s) {
		return nil, nil
	}
	if w.hasFolded(s, name) {
		return nil, postern.Errorf(postern.MalformedRequest,
			"the body contains a field whose name is capitalized differently than documented, at byte %d", w.at())
	}
	w.invalid(postern.Step(name), "%s", w.unknown(name))
	return nil, nil
}

// isCredential tells whether a schema is that of a browser's credential or of a part of it, to which browsers add
// members. Other schemas that are open in responses are closed in requests.
func isCredential(s *huma.Schema) bool {
	return s.AdditionalProperties == true && (s.Properties["rawId"] != nil || s.Properties["clientDataJSON"] != nil)
}

// unknown says why a member is wrong that the schema does not have.
func (w *walker) unknown(name string) string {
	if w.kinds == nil || w.dec.StackDepth() != 1 {
		return "there is no such field"
	}
	var having []string
	for kind, ref := range w.kinds.Mapping {
		if w.checker.resolve(&huma.Schema{Ref: ref}).Properties[name] != nil {
			having = append(having, kind)
		}
	}
	if len(having) == 0 {
		return "there is no such field"
	}
	slices.Sort(having)
	return fmt.Sprintf("this field is for another %s: %s", w.kinds.PropertyName, strings.Join(having, ", "))
}

// hasFolded tells whether an object has a member of this name in another case.
func (w *walker) hasFolded(s *huma.Schema, name string) bool {
	for have := range s.Properties {
		if strings.EqualFold(have, name) {
			return true
		}
	}
	return w.dec.StackDepth() == 1 && strings.EqualFold(w.named, name)
}

// array reads the items of an array.
func (w *walker) array(s *huma.Schema) error {
	var items *huma.Schema
	if s != nil {
		items = s.Items
	}
	w.path = append(w.path, step{})
	last := len(w.path) - 1
	for w.dec.PeekKind() != jsontext.KindEndArray {
		if err := w.value(items); err != nil {
			return err
		}
		w.path[last].index++
	}
	n := w.path[last].index
	w.path = w.path[:last]
	switch {
	case s == nil:
	case s.MinItems != nil && n < *s.MinItems:
		w.invalid("", "expected at least %s", count(*s.MinItems, "item"))
	case s.MaxItems != nil && n > *s.MaxItems:
		w.invalid("", "expected at most %s", count(*s.MaxItems, "item"))
	}
	_, err := w.dec.ReadToken()
	return err
}
