package api

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
)

// orNull is a member of a change that can be left out, have a value, or be
// null, which takes the value away.
type orNull[T any] struct {
	set   bool
	value T
}

// UnmarshalJSON reads a value or null.
func (o *orNull[T]) UnmarshalJSON(b []byte) error {
	o.set = true
	return json.Unmarshal(b, &o.value)
}

// given points to the value, nil when the member was left out.
func (o orNull[T]) given() *T {
	if !o.set {
		return nil
	}
	return &o.value
}

// Schema is that of the value, or null.
func (orNull[T]) Schema(r huma.Registry) *huma.Schema {
	s := huma.SchemaFromType(r, reflect.TypeFor[T]())
	s.Nullable = true
	return s
}
