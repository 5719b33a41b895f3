package reference

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// shape is what an object consists of: fields, and then one of several further shapes.
type shape struct {
	Fields  []field
	Choices []choice
}

// Empty reports whether there is nothing to show.
func (s shape) Empty() bool { return len(s.Fields)+len(s.Choices) == 0 }

// Size says what is in a shape, for those who decide whether to open it.
func (s shape) Size() string {
	switch n := len(s.Fields); {
	case len(s.Choices) > 0:
		return strconv.Itoa(len(s.Choices)) + " forms"
	case n == 1:
		return "1 field"
	default:
		return strconv.Itoa(n) + " fields"
	}
}

// choice is one of the forms of an object.
type choice struct {
	Title  string
	Schema string // that it is
	Text   [][]run
	Shape  shape
}

// field is a member of an object, a parameter, or a header.
type field struct {
	Name, In string // In is where a parameter is
	Type     kind
	Required bool
	Text     [][]run
	Notes    []note
	Values   []string
	Within   shape
}

// kind is the type of a field: what comes before the name of a schema, the schema, and what comes after it.
type kind struct{ Before, Schema, After string }

// note is a bound, a default or an example.
type note struct{ Label, Code string }

const maxDepth = 8 // of arrays in arrays, and choices in choices

// reader makes shapes of schemas.
type reader struct {
	doc  *document
	flat bool // stops at schemas that have a name
	path []string
}

// shape is what a value of a schema consists of: of an array, what its items do.
func (r reader) shape(s *schema) shape {
	if s == nil {
		return shape{}
	}
	if name, is := strings.CutPrefix(s.Ref, schemaRef); is {
		if slices.Contains(r.path, name) {
			return shape{}
		}
		r.path = append(slices.Clip(r.path), name)
		s = r.doc.resolve(s)
	}
	switch {
	case len(s.OneOf) > 0:
		return r.choices(s)
	case s.Items != nil:
		return r.within(s.Items)
	case s.AdditionalProperties != nil && s.AdditionalProperties.schema != nil:
		return r.within(s.AdditionalProperties.schema)
	}
	return shape{Fields: r.fields(s)}
}

// within is the shape of a part, unless it has a name and the reader stops there.
func (r reader) within(s *schema) shape {
	if r.flat && s.Ref != "" {
		return shape{}
	}
	return r.shape(s)
}

// fields are the members of an object: the required ones in their order, and then the others.
func (r reader) fields(s *schema) (list []field) {
	names := slices.DeleteFunc(slices.Clone(s.Required), func(n string) bool { return s.Properties[n] == nil })
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		list = append(list, r.field(name, s.Properties[name], slices.Contains(s.Required, name)))
	}
	return list
}

func (r reader) field(name string, s *schema, required bool) field {
	of := r.doc.resolve(s)
	text := s.Description
	if text == "" {
		text = of.Description
	}
	f := field{
		Name: name, Type: r.kind(s), Required: required, Text: paragraphs(text), Notes: notes(s, of), Within: r.within(s),
	}
	for depth := 0; of.Items != nil && depth < maxDepth; depth++ {
		of = r.doc.resolve(of.Items)
	}
	for _, v := range of.Enum {
		if string(v) != "null" {
			f.Values = append(f.Values, literal(v))
		}
	}
	f.Notes = slices.DeleteFunc(f.Notes, func(n note) bool {
		return n.Label == "example" && (slices.Contains(f.Values, n.Code) || n.Code == "true" || n.Code == "false")
	}) // such an example says nothing new
	return f
}

// choices are the forms of an object. Fields that all of them have come first.
func (r reader) choices(s *schema) shape {
	forms := r.forms(s, 0)
	common := r.common(forms)
	all := shape{Fields: r.fields(common)}
	for _, f := range forms {
		all.Choices = append(all.Choices, r.choice(f, common))
	}
	return all
}

// choice is a form without the fields that all forms have.
func (r reader) choice(f form, common *schema) choice {
	own := r.doc.resolve(f.schema)
	c := choice{Title: f.title, Text: paragraphs(own.Description)}
	name, named := strings.CutPrefix(f.schema.Ref, schemaRef)
	c.Schema = name
	if named && (r.flat || slices.Contains(r.path, name)) {
		return c
	}
	if named {
		r.path = append(slices.Clip(r.path), name)
	}
	rest := *own
	rest.Properties = maps.Clone(own.Properties)
	maps.DeleteFunc(rest.Properties, func(name string, _ *schema) bool { return common.Properties[name] != nil })
	c.Shape = r.shape(&rest)
	return c
}

type form struct {
	title  string
	schema *schema
}

// forms are the alternatives of a schema, also those of alternatives. Each is named after the value that tells it
// from the others, or its schema.
func (r reader) forms(s *schema, depth int) (list []form) {
	for _, o := range s.OneOf {
		if of := r.doc.resolve(o); len(of.OneOf) > 0 {
			if depth < maxDepth {
				list = append(list, r.forms(of, depth+1)...)
			}
			continue
		}
		list = append(list, form{formName(s, o), o})
	}
	return list
}

func formName(s, o *schema) string {
	var values []string
	if s.Discriminator != nil {
		for value, ref := range s.Discriminator.Mapping {
			if ref == o.Ref {
				values = append(values, value)
			}
		}
	}
	if len(values) == 1 {
		return values[0]
	}
	if o.Ref == "" {
		return "object"
	}
	return strings.TrimPrefix(o.Ref, schemaRef)
}

// common is an object of what all forms have in the same way.
func (r reader) common(forms []form) *schema {
	all := &schema{Properties: map[string]*schema{}}
	if len(forms) < 2 || r.flat {
		return all
	}
	first := r.doc.resolve(forms[0].schema)
	for name, p := range first.Properties {
		required := slices.Contains(first.Required, name)
		if slices.ContainsFunc(forms[1:], func(f form) bool {
			o := r.doc.resolve(f.schema)
			return !reflect.DeepEqual(o.Properties[name], p) || slices.Contains(o.Required, name) != required
		}) {
			continue
		}
		all.Properties[name] = p
		if required {
			all.Required = append(all.Required, name)
		}
	}
	slices.SortFunc(all.Required, func(a, b string) int {
		return slices.Index(first.Required, a) - slices.Index(first.Required, b)
	})
	return all
}

// kind is the type of a value, such as "array of Device or null".
func (r reader) kind(s *schema) kind {
	var k kind
	for s.Ref == "" && s.Items != nil {
		k.Before += "array of "
		k.After = nullable(s) + k.After
		s = s.Items
	}
	if name, is := strings.CutPrefix(s.Ref, schemaRef); is && r.doc.Components.Schemas[name] != nil {
		k.Schema = name
		return k
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.schema != nil {
		of := r.kind(s.AdditionalProperties.schema)
		return kind{k.Before + "map of " + of.Before, of.Schema, of.After + k.After}
	}
	k.Before += scalar(s)
	k.After = nullable(s) + k.After
	return k
}

// scalar is the type of what has no schema of its own.
func scalar(s *schema) string {
	types := slices.DeleteFunc(slices.Clone(s.Type), func(t string) bool { return t == "null" })
	name := strings.Join(types, " or ")
	switch {
	case name == "" && len(s.OneOf) > 0:
		return "object"
	case name == "":
		return "anything"
	case s.Format == "binary":
		return "file"
	case s.ContentEncoding != "":
		return name + ", " + s.ContentEncoding
	case s.Format == "" || strings.HasPrefix(s.Format, "int"):
		return name
	}
	return name + ", " + s.Format
}

func nullable(s *schema) string {
	if slices.Contains(s.Type, "null") {
		return " or null"
	}
	return ""
}

// notes are the bounds of a value, its default and an example. Those beside a reference come before those of the
// schema that it names.
func notes(s, of *schema) (list []note) {
	add := func(label, code string) {
		if code != "" {
			list = append(list, note{label, code})
		}
	}
	bound := func(text string) {
		if text != "" {
			list = append(list, note{Label: text})
		}
	}
	bound(between(grouped(of.Minimum), grouped(of.Maximum), ""))
	bound(between(counted(of.MinLength), counted(of.MaxLength), " characters"))
	bound(between(counted(of.MinItems), counted(of.MaxItems), " items"))
	add("pattern", of.Pattern)
	add("default", literal(of.Default))
	for _, from := range []*schema{s, of} {
		if len(from.Examples) > 0 {
			add("example", short(from.Examples[0]))
			break
		}
	}
	return list
}

const maxExample = 80 // bytes of an example beside a field; what is longer is in the examples of requests

func short(raw json.RawMessage) string {
	if text := literal(raw); len(text) <= maxExample {
		return text
	}
	return ""
}

// between is a range in words.
func between(low, high, unit string) string {
	switch {
	case low == "" && high == "":
		return ""
	case high == "" && low == "1" && unit == " characters":
		return "not empty"
	case high == "0" && unit == " characters":
		return "always empty"
	case low == "" || low == "0" && unit != "":
		if high == "" {
			return ""
		}
		return "at most " + high + unit
	case high == "":
		return "at least " + low + unit
	case low == high:
		return "exactly " + low + unit
	}
	return low + " to " + high + unit
}

func counted(n *int) string {
	if n == nil {
		return ""
	}
	return grouped(json.Number(strconv.Itoa(*n)))
}

// grouped is a number with a comma before each third digit.
func grouped(n json.Number) string {
	text := n.String()
	if strings.ContainsAny(text, ".eE-") {
		return text
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
