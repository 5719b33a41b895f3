// Package spectest compares JSON with the schemas of an OpenAPI document, for tests.
package spectest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schemas are the schemas of a document. They are taken more strictly than a caller may take
// them: an object has no member that is not described. Many goroutines may use them.
type Schemas struct {
	// Root is the document as plain values.
	Root any

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

// Parse reads a document.
func Parse(doc []byte) (*Schemas, error) {
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	closeObjects(tree)
	s := &Schemas{Root: tree, compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	s.compiler.DefaultDraft(jsonschema.Draft2020)
	s.compiler.AssertFormat()
	if err := s.compiler.AddResource("doc.json", tree); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	return s, nil
}

// closeObjects forbids undescribed members.
func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		_, properties := v["properties"].(map[string]any)
		if _, said := v["additionalProperties"]; properties && !said {
			v["additionalProperties"] = false
		}
		for _, member := range v {
			closeObjects(member)
		}
	case []any:
		for _, item := range v {
			closeObjects(item)
		}
	}
}

// Pointer goes on from a JSON pointer.
func Pointer(base string, steps ...string) string {
	for _, s := range steps {
		base += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
	}
	return base
}

// Valid compares a value with the schema at a place, which is a JSON pointer.
func (s *Schemas) Valid(place string, v any) error {
	schema, err := s.at(place)
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// ValidJSON is like Valid, for a JSON text.
func (s *Schemas) ValidJSON(place string, text []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return s.Valid(place, v)
}

// ValidEvent compares the body of a POST to an endpoint with the schema of its type of event. An
// event of a type that the document does not describe is not valid.
func (s *Schemas) ValidEvent(body []byte) error {
	var event struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return err
	}
	return s.ValidJSON(Event(event.Type), body)
}

// Event returns the place of the schema of an event.
func Event(kind string) string {
	return Pointer("/webhooks", kind, "post", "requestBody", "content", "application/json", "schema")
}

func (s *Schemas) at(place string) (schema *jsonschema.Schema, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if schema = s.compiled[place]; schema == nil {
		schema, err = s.compiler.Compile("doc.json#" + (&url.URL{Path: place}).EscapedPath())
		s.compiled[place] = schema
	}
	return schema, err
}
