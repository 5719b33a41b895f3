package schema

import (
	"reflect"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

// sendKind is a send or a location, as the body of POST /v1/messages is one of
// several kinds.
type sendKind struct{}

func (sendKind) Schema(r huma.Registry) *huma.Schema {
	text := r.Schema(reflect.TypeFor[send](), true, "")
	form := r.SchemaFromRef(text.Ref)
	form.Required = append(form.Required, "type")
	location := r.Schema(reflect.TypeFor[location](), true, "")
	return &huma.Schema{
		Type: huma.TypeObject, OneOf: []*huma.Schema{text, location},
		Discriminator: &huma.Discriminator{
			PropertyName: "type", Mapping: map[string]string{"text": text.Ref, "location": location.Ref},
		},
	}
}

// BenchmarkSendOfKind is BenchmarkSend with a discriminator to find.
func BenchmarkSendOfKind(b *testing.B) {
	c, s := prepared[sendKind](b)
	for b.Loop() {
		if err := c.Check([]byte(goodSend), s); err != nil {
			b.Fatal(err)
		}
	}
}
