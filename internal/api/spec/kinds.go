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
// component of its own, without the members that only other kinds take. The first
// kind is that of a body without a type. Kinds that require a member that T does not
// have are left out.
func OneOf[T any](r huma.Registry, name string, kinds []Kind) *huma.Schema {
	all := huma.SchemaFromType(r, reflect.TypeFor[T]())
	one := &huma.Schema{
		Type: huma.TypeObject, Discriminator: &huma.Discriminator{PropertyName: discriminator,
			Mapping: map[string]string{}},
	}
	for i, k := range kinds {
		if slices.ContainsFunc(k.Required, func(member string) bool { return all.Properties[member] == nil }) {
			continue
		}
		component := name + strings.ToUpper(k.Type[:1]) + k.Type[1:]
		r.Map()[component] = k.form(all, kinds, i == 0)
		ref := &huma.Schema{Ref: components + component}
		one.OneOf = append(one.OneOf, ref)
		one.Discriminator.Mapping[k.Type] = ref.Ref
	}
	r.Map()[name] = one
	return &huma.Schema{Ref: components + name}
}

// form returns the part of all that k takes.
func (k Kind) form(all *huma.Schema, kinds []Kind, usual bool) *huma.Schema {
	s, own := *all, k.own()
	s.Properties, s.Required = maps.Clone(all.Properties), slices.Clone(all.Required)
	for _, other := range kinds {
		for _, member := range other.own() {
			if !slices.Contains(own, member) {
				delete(s.Properties, member)
			}
		}
	}
	s.Required = append(s.Required, k.Required...)
	kind := *all.Properties[discriminator]
	kind.Enum, kind.Examples = []any{k.Type}, []any{k.Type}
	if !usual {
		kind.Default, s.Required = nil, append(s.Required, discriminator)
	}
	s.Properties[discriminator] = &kind
	slices.Sort(s.Required)
	s.PrecomputeMessages()
	return &s
}

func (k Kind) own() []string { return slices.Concat(k.Required, k.Optional) }
