package reference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// document is what the reference and the search read of an OpenAPI document.
type document struct {
	Info       struct{ Version, Description string }
	Servers    []struct{ URL, Description string }
	Tags       []tag
	Paths      map[string]map[string]*operation
	Webhooks   map[string]map[string]*operation
	Components struct {
		Schemas         map[string]*schema
		Headers         map[string]*parameter
		Parameters      map[string]*parameter
		Responses       map[string]*response
		Examples        map[string]example
		SecuritySchemes map[string]struct{ Description string }
	}
}

type tag struct{ Name, Description string }

// operation is a request to the API, or a webhook.
type operation struct {
	ID          string `json:"operationId"`
	Summary     string
	Description string
	Tags        []string
	Parameters  []*parameter
	RequestBody *struct {
		Required bool
		Content  map[string]media
	}
	Responses map[string]*response

	method, path string // method in capitals; the path of a webhook is its event
}

// parameter is one of a request, or a header of a response, whose name is elsewhere.
type parameter struct {
	Ref         string `json:"$ref"`
	Name, In    string
	Description string
	Required    bool
	Schema      *schema
	Example     json.RawMessage
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Headers     map[string]*parameter
	Content     map[string]media
}

type media struct {
	Schema   *schema
	Example  json.RawMessage
	Examples map[string]example
}

type example struct{ Value json.RawMessage }

// schema is what JSON Schema says of a value, as far as our document uses it.
type schema struct {
	Ref                  string `json:"$ref"`
	Type                 kinds
	Format               string
	Description          string
	Pattern              string
	ContentEncoding      string
	Enum, Examples       []json.RawMessage
	Default              json.RawMessage
	Minimum, Maximum     json.Number
	MinLength, MaxLength *int
	MinItems, MaxItems   *int
	Required             []string
	Properties           map[string]*schema
	AdditionalProperties *further
	Items                *schema
	OneOf                []*schema
	Discriminator        *struct{ Mapping map[string]string }
}

// kinds are the types that a value may have: one, or a list of several.
type kinds []string

// UnmarshalJSON implements [json.Unmarshaler].
func (k *kinds) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*k = kinds{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(k)) //nolint:wrapcheck // the error of the document
}

// further is the schema of members without a name of their own, or whether there may be any.
type further struct{ *schema }

// UnmarshalJSON implements [json.Unmarshaler].
func (f *further) UnmarshalJSON(b []byte) error {
	var allowed bool
	if json.Unmarshal(b, &allowed) == nil {
		return nil
	}
	return json.Unmarshal(b, &f.schema) //nolint:wrapcheck // the error of the document
}

// readDocument reads an OpenAPI document.
func readDocument(of func() ([]byte, error)) (*document, error) {
	raw, err := of()
	doc := &document{}
	if err == nil {
		err = json.Unmarshal(raw, doc)
	}
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	doc.name(doc.Paths)
	doc.name(doc.Webhooks)
	return doc, nil
}

// name tells the operations where they are, and gives those without a tag one.
func (d *document) name(paths map[string]map[string]*operation) {
	for path, item := range paths {
		for method, o := range item {
			o.method, o.path = strings.ToUpper(method), path
			if len(o.Tags) == 0 {
				o.Tags = []string{"other"}
			}
		}
	}
}

// operations are the requests to the API, by path and method.
func (d *document) operations() []*operation { return sorted(d.Paths) }

// events are the webhooks, by name.
func (d *document) events() []*operation { return sorted(d.Webhooks) }

func sorted(paths map[string]map[string]*operation) (list []*operation) {
	order := []string{"GET", "POST", "PUT", "PATCH", "DELETE"}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		list = slices.AppendSeq(list, maps.Values(paths[path]))
	}
	slices.SortFunc(list, func(a, b *operation) int {
		return cmp.Or(
			cmp.Compare(a.path, b.path), cmp.Compare(slices.Index(order, a.method), slices.Index(order, b.method)),
			cmp.Compare(a.method, b.method),
		)
	})
	return list
}

// tags are the parts of the API: those that are described, and then those that operations name only.
func (d *document) tags() []tag {
	list := slices.Clone(d.Tags)
	for _, o := range d.operations() {
		if !slices.ContainsFunc(list, func(t tag) bool { return t.Name == o.Tags[0] }) {
			list = append(list, tag{Name: o.Tags[0]})
		}
	}
	return list
}

const schemaRef = "#/components/schemas/"

// resolve follows the reference of a schema. A schema that refers to nothing accepts everything.
func (d *document) resolve(s *schema) *schema {
	for range maxDepth { // more than a document has in a row, and fewer than in a circle
		if s == nil {
			break
		}
		if s.Ref == "" {
			return s
		}
		s = d.Components.Schemas[strings.TrimPrefix(s.Ref, schemaRef)]
	}
	return &schema{}
}

// parameter follows the reference of a parameter or a header.
func (d *document) parameter(p *parameter) *parameter {
	if name, is := strings.CutPrefix(p.Ref, "#/components/parameters/"); is && d.Components.Parameters[name] != nil {
		return d.Components.Parameters[name]
	}
	if name, is := strings.CutPrefix(p.Ref, "#/components/headers/"); is && d.Components.Headers[name] != nil {
		return d.Components.Headers[name]
	}
	return p
}

// response follows the reference of a response.
func (d *document) response(r *response) *response {
	if to := d.Components.Responses[strings.TrimPrefix(r.Ref, "#/components/responses/")]; to != nil {
		return to
	}
	return r
}
