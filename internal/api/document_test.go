package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"postern/internal/api"
)

type schema struct {
	Ref                  string             `json:"$ref"`
	Type                 any                `json:"type"`
	Properties           map[string]*schema `json:"properties"`
	Required             []string           `json:"required"`
	AdditionalProperties any                `json:"additionalProperties"`
	Enum                 []any              `json:"enum"`
	Items                *schema            `json:"items"`
}

type content map[string]struct {
	Schema *schema `json:"schema"`
}

type response struct {
	Ref     string  `json:"$ref"`
	Content content `json:"content"`
}

type operation struct {
	OperationID string                `json:"operationId"`
	Summary     string                `json:"summary"`
	Security    []map[string][]string `json:"security"`
	RequestBody struct {
		Content content `json:"content"`
	} `json:"requestBody"`
	Responses map[string]response `json:"responses"`
}

type document struct {
	OpenAPI    string                          `json:"openapi"`
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas map[string]*schema `json:"schemas"`
	} `json:"components"`
}

func readDocument(t *testing.T, s *server) (d document) {
	t.Helper()
	b, err := s.api.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDocument(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := s.do("GET", "/v1/openapi.json", "") // public
	a.want(http.StatusOK, "")
	if b, err := s.api.OpenAPI(); err != nil || !bytes.Equal(b, a.Body.Bytes()) || a.Header().Get("Content-Type") != "application/json" {
		t.Errorf("served document: %v %v", err, a.Header())
	}
	for _, bad := range []string{"unpkg", "$schema", "ErrorModel", "ErrorDetail", "octet-stream", "patternDescription"} {
		if strings.Contains(a.Body.String(), bad) {
			t.Errorf("the document has %s", bad)
		}
	}
	for _, ref := range regexp.MustCompile(`"#/components/(\w+)/([^"]+)"`).FindAllSubmatch(a.Body.Bytes(), -1) {
		var doc struct {
			Components map[string]map[string]json.RawMessage `json:"components"`
		}
		if err := json.Unmarshal(a.Body.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Components[string(ref[1])][string(ref[2])] == nil {
			t.Errorf("the reference %s leads nowhere", ref[0])
		}
	}
	d := readDocument(t, s)
	if d.OpenAPI != "3.1.0" {
		t.Errorf("OpenAPI %s", d.OpenAPI)
	}
	for path, methods := range d.Paths {
		for method, op := range methods {
			checkOperation(t, d, method+" "+path, op)
		}
	}
}

func checkOperation(t *testing.T, d document, route string, op operation) {
	t.Helper()
	var scopes []string
	for _, s := range api.ScopesOf(op.OperationID) {
		scopes = append(scopes, string(s))
	}
	if len(op.Security) != 1 || !slices.Equal(op.Security[0]["bearer"], scopes) || op.Summary == "" {
		t.Errorf("%s: security %v, summary %q", route, op.Security, op.Summary)
	}
	for _, code := range []string{"400", "401", "403", "422", "429", "500", "503"} {
		if op.Responses[code].Ref != "#/components/responses/"+code {
			t.Errorf("%s: the answer %s is not described", route, code)
		}
	}
	if _, ok := op.Responses["default"]; ok {
		t.Errorf("%s has a default answer", route)
	}
	if body := op.RequestBody.Content["application/json"].Schema; body != nil {
		in := d.Components.Schemas[strings.TrimPrefix(body.Ref, "#/components/schemas/")]
		if in == nil || in.AdditionalProperties != false {
			t.Errorf("%s: the body %s takes unknown members", route, body.Ref)
		}
	}
}

// TestAnswersAreAsDescribed sends each operation of the table of actors and
// compares the answer with its schema.
func TestAnswersAreAsDescribed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := readDocument(t, s)
	table := routes()
	for path, methods := range d.Paths {
		for _, op := range methods {
			mine := s.tenant("enterprise")
			r := table[op.OperationID]
			target, body := r.build(mine)
			if op.OperationID == "listWebhooks" || op.OperationID == "listDevices" {
				webhook(mine)
			}
			a := mine.do(r.method, target, body)
			described, ok := op.Responses[strconv.Itoa(a.Code)]
			if !ok {
				t.Errorf("%s %s: the answer %d is not described", r.method, path, a.Code)
				continue
			}
			if content, ok := described.Content["application/json"]; ok {
				var v any
				if err := json.Unmarshal(a.Body.Bytes(), &v); err != nil {
					t.Fatal(err)
				}
				d.check(t, op.OperationID, content.Schema, v)
			}
		}
	}
}

func (d document) check(t *testing.T, place string, s *schema, v any) {
	t.Helper()
	for s.Ref != "" {
		s = d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	types, _ := s.Type.([]any)
	if one, ok := s.Type.(string); ok {
		types = []any{one}
	}
	kind := ""
	switch v := v.(type) {
	case nil:
		kind = "null"
	case string:
		kind = "string"
	case bool:
		kind = "boolean"
	case float64:
		kind = "integer"
	case []any:
		kind = "array"
		for _, item := range v {
			d.check(t, place+"[]", s.Items, item)
		}
	case map[string]any:
		kind = "object"
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				t.Errorf("%s has no %s", place, name)
			}
		}
		for name, member := range v {
			if p := s.Properties[name]; p != nil {
				d.check(t, place+"."+name, p, member)
			} else if _, free := s.AdditionalProperties.(map[string]any); !free {
				t.Errorf("%s.%s is not described", place, name)
			}
		}
	}
	if !slices.Contains(types, any(kind)) {
		t.Errorf("%s is %s, described as %v", place, kind, s.Type)
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
		t.Errorf("%s is %v, not one of %v", place, v, s.Enum)
	}
}
