package spec

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// discriminator is the member that says which kind an object is.
const discriminator = "type"

// Kind is one form of an object that has several: the value of its type, and the
// members that not every kind takes.
type Kind struct {
	Type     string
	Required []string
	Optional []string
}

// OneOf registers the component name, a body that is one of kinds, and returns a
// reference to it. The type T has the members of all kinds; each kind gets a
// component of its own, without the members that only other kinds take. A body of
// the first kind may leave its type out: that is one more component, since each form
// that a discriminator names must require it. Kinds that require a member that T does
// not have are left out.
func OneOf[T any](r huma.Registry, name string, kinds []Kind) *huma.Schema {
	all := huma.SchemaFromType(r, reflect.TypeFor[T]())
	typed := &huma.Schema{
		Type: huma.TypeObject, Description: "The type says which.",
		Discriminator: &huma.Discriminator{PropertyName: discriminator, Mapping: map[string]string{}},
	}
	for _, k := range kinds {
		if slices.ContainsFunc(k.Required, func(member string) bool { return all.Properties[member] == nil }) {
			continue
		}
		ref := register(r, name+strings.ToUpper(k.Type[:1])+k.Type[1:], k.form(all, kinds))
		typed.OneOf = append(typed.OneOf, ref)
		typed.Discriminator.Mapping[k.Type] = ref.Ref
	}
	return register(r, name, &huma.Schema{Type: huma.TypeObject, OneOf: []*huma.Schema{
		register(r, name+"WithType", typed),
		register(r, name+"WithoutType", kinds[0].untyped(all, kinds)),
	}})
}

// register adds a component and returns a reference to it.
func register(r huma.Registry, name string, s *huma.Schema) *huma.Schema {
	r.Map()[name] = s
	return &huma.Schema{Ref: components + name}
}

// form returns the part of all that k takes, with a type.
func (k Kind) form(all *huma.Schema, kinds []Kind) *huma.Schema {
	s := k.part(all, kinds)
	kind := *all.Properties[discriminator]
	kind.Enum, kind.Examples, kind.Default = []any{k.Type}, []any{k.Type}, nil
	s.Properties[discriminator] = &kind
	s.Required = append(s.Required, discriminator)
	slices.Sort(s.Required)
	s.PrecomputeMessages()
	return s
}

// untyped returns the part of all that k takes, without a type.
func (k Kind) untyped(all *huma.Schema, kinds []Kind) *huma.Schema {
	s := k.part(all, kinds)
	s.Description = "Without a type, a message is of the type " + k.Type + "."
	slices.Sort(s.Required)
	s.PrecomputeMessages()
	return s
}

// part returns the members of all that k takes, except the type.
func (k Kind) part(all *huma.Schema, kinds []Kind) *huma.Schema {
	s, own := *all, k.own()
	s.Properties, s.Required = maps.Clone(all.Properties), slices.Concat(all.Required, k.Required)
	delete(s.Properties, discriminator)
	for _, other := range kinds {
		for _, member := range other.own() {
			if !slices.Contains(own, member) {
				delete(s.Properties, member)
			}
		}
	}
	return &s
}

func (k Kind) own() []string { return slices.Concat(k.Required, k.Optional) }
