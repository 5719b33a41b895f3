package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// send has the form of the body of POST /v1/messages.
type send struct {
	_                struct{}          `additionalProperties:"false"`
	DeviceID         string            `json:"deviceId" minLength:"1"`
	To               string            `json:"to" minLength:"1"`
	Type             string            `json:"type,omitempty" enum:"text"`
	Body             string            `json:"body" minLength:"1"`
	Metadata         map[string]string `json:"metadata,omitempty"`
	ExpiresIn        int               `json:"expiresIn,omitempty" minimum:"1" maximum:"604800"`
	WhenDisconnected string            `json:"whenDisconnected,omitempty" enum:"fail,queue"`
	List             []string          `json:"list,omitempty" nullable:"false"`
}

const (
	goodSend = `{"deviceId":"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA","to":"+15551234567","type":"text","body":"Hello, your order 4711 is on its way.",` +
		`"metadata":{"order":"4711","shop":"berlin","lang":"en"},"expiresIn":300,"whenDisconnected":"queue"}`
	shortSend = `{"deviceId":"D","to":"+15551234567","body":"b",`
)

// checker is one way to check a body; it returns how many places are wrong.
type checker func(body []byte) (int, error)

// candidates are the ways that docs/decisions/0020-validation.md compares. Each
// refuses duplicate members and broken UTF-8.
func candidates(tb testing.TB) map[string]checker {
	tb.Helper()
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	s := registry.SchemaFromRef(registry.Schema(reflect.TypeFor[send](), true, "").Ref)
	compiled, own := compile(tb, s), NewChecker(registry)
	if err := own.Prepare(s); err != nil {
		tb.Fatal(err)
	}
	return map[string]checker{
		"walker": func(body []byte) (int, error) {
			err := own.Check(body, s)
			return places(err), err
		},
		"jsonschema": func(body []byte) (int, error) {
			var v any
			if err := jsonv2.Unmarshal(body, &v); err != nil {
				return 0, err
			}
			err := compiled.Validate(v)
			return leaves(err), err
		},
		"jsonschema behind our decoder": func(body []byte) (int, error) {
			v, err := decodeLimited(body)
			if err != nil {
				return 0, err
			}
			err = compiled.Validate(v)
			return leaves(err), err
		},
		"huma": func(body []byte) (int, error) {
			var v any
			if err := jsonv2.Unmarshal(body, &v); err != nil {
				return 0, err
			}
			var res huma.ValidateResult
			huma.Validate(registry, s, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, v, &res)
			return len(res.Errors), errors.Join(res.Errors...)
		},
	}
}

func compile(tb testing.TB, s *huma.Schema) *jsonschema.Schema {
	tb.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		tb.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("send.json", doc); err != nil {
		tb.Fatal(err)
	}
	compiled, err := c.Compile("send.json")
	if err != nil {
		tb.Fatal(err)
	}
	return compiled
}

func places(err error) int {
	if e, ok := errors.AsType[*postern.Error](err); ok {
		return len(e.Fields)
	}
	return 0
}

// leaves counts the errors of a tree that have no causes.
func leaves(err error) int {
	e, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return 0
	}
	return leavesOf(e)
}

func leavesOf(e *jsonschema.ValidationError) int {
	n := 0
	for _, c := range e.Causes {
		n += leavesOf(c)
	}
	return max(n, 1)
}

func BenchmarkSend(b *testing.B) {
	for name, check := range candidates(b) {
		b.Run(name, func(b *testing.B) {
			raw := []byte(goodSend)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := check(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWorstBodies checks bodies of about 1 MiB that cost the most to refuse.
func BenchmarkWorstBodies(b *testing.B) {
	bodies := map[string]string{
		"wrong items":    shortSend + `"list":[` + strings.Repeat("1,", 500_000) + `1]}`,
		"right items":    shortSend + `"list":[` + strings.Repeat(`"",`, 340_000) + `""],"x":1}`,
		"unknown member": shortSend + `"x":[` + strings.Repeat("1,", 500_000) + `1]}`,
	}
	for name, check := range candidates(b) {
		for what, body := range bodies {
			b.Run(name+"/"+what, func(b *testing.B) {
				raw := []byte(body)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := check(raw); err == nil {
						b.Fatal("accepted")
					}
				}
			})
		}
	}
}
