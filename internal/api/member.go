package api

import (
	"reflect"

	"postern/internal/gateway"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
)

// member is one member of a merge patch (RFC 7396): left out, null, or a value.
type member[T any] struct {
	given bool
	value *T
}

// UnmarshalJSON notes that the member was given.
func (m *member[T]) UnmarshalJSON(b []byte) error {
	m.given, m.value = true, nil
	if string(b) == "null" {
		return nil
	}
	m.value = new(T)
	return json.Unmarshal(b, m.value)
}

// Schema returns the schema of the value, or null.
func (member[T]) Schema(r huma.Registry) *huma.Schema {
	s := huma.SchemaFromType(r, reflect.TypeFor[T]())
	s.Nullable = true
	return s
}

func (m member[T]) change() gateway.Change[T] {
	return gateway.Change[T]{Given: m.given, Value: m.value}
}

// changed converts a member whose parts are changes themselves.
func changed[T, C any](m member[T], parts func(T) C) gateway.Change[C] {
	if m.value == nil {
		return gateway.Change[C]{Given: m.given}
	}
	return gateway.Change[C]{Given: true, Value: new(parts(*m.value))}
}
