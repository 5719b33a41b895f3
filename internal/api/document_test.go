package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"postern/internal/api"
	"postern/internal/api/spec/spectest"
	"postern/internal/postern"
	"postern/internal/problem"
)

func TestDocument(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := s.do("GET", "/v1/openapi.json", "") // public
	a.want(http.StatusOK, "")
	if b, err := s.api.OpenAPI(); err != nil || !bytes.Equal(b, a.Body.Bytes()) ||
		a.Header().Get("Content-Type") != "application/json" {
		t.Errorf("served document: %v %v", err, a.Header())
	}
	for _, bad := range []string{
		"unpkg", "$schema", "ErrorModel", "ErrorDetail",
		"patternDescription",
	} {
		if strings.Contains(a.Body.String(), bad) {
			t.Errorf("the document has %s", bad)
		}
	}
	var doc struct {
		Components map[string]map[string]json.RawMessage `json:"components"`
	}
	if err := json.Unmarshal(a.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, ref := range regexp.MustCompile(`"#/components/(\w+)/([^"]+)"`).FindAllSubmatch(a.Body.Bytes(), -1) {
		if doc.Components[string(ref[1])][string(ref[2])] == nil {
			t.Errorf("the reference %s leads nowhere", ref[0])
		}
	}
	d := described()
	if d.OpenAPI != "3.1.0" {
		t.Errorf("OpenAPI %s", d.OpenAPI)
	}
	for path, methods := range d.Paths {
		for method, op := range methods {
			checkOperation(t, d, method+" "+path, op)
		}
	}
}

func checkOperation(t *testing.T, d *document, route string, op operation) {
	t.Helper()
	var scopes []string
	for _, s := range api.ScopesOf(op.OperationID) {
		scopes = append(scopes, string(s))
		if !strings.Contains(op.Description, "`"+string(s)+"`") {
			t.Errorf("%s: the description does not name the scope %s", route, s)
		}
	}
	if len(op.Security) != 1 || op.Security[0]["bearer"] == nil || !slices.Equal(op.Scopes, scopes) ||
		op.Summary == "" {
		t.Errorf("%s: security %v, scopes %v, summary %q", route, op.Security, op.Scopes, op.Summary)
	}
	for _, code := range []string{"400", "401", "403", "422", "429", "431", "500", "503"} {
		if _, ok := op.Responses[code]; !ok {
			t.Errorf("%s: the answer %s is not described", route, code)
		}
	}
	if _, ok := op.Responses["default"]; ok {
		t.Errorf("%s has a default answer", route)
	}
	if _, isJSON := op.RequestBody.Content["application/json"]; isJSON {
		place := spectest.Pointer(op.place, "requestBody", "content", "application/json", "schema")
		if err := d.schemas.Valid(place, map[string]any{"unknown": true}); err == nil ||
			!strings.Contains(err.Error(),
				"unknown") {
			t.Errorf("%s: the body takes unknown members: %v", route, err)
		}
	}
}

// TestEveryKindOfEventHasAWebhook compares the kinds an endpoint may ask for
// with those that are described. What nobody sends yet is not described.
func TestEveryKindOfEventHasAWebhook(t *testing.T) {
	t.Parallel()
	want := []string{string(postern.WebhookVerification), string(postern.WebhookTest)}
	for _, kind := range postern.EventTypes() {
		want = append(want, string(kind))
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(described().Webhooks)); !slices.Equal(got, want) {
		t.Errorf("webhooks %v, want %v", got, want)
	}
	for kind, methods := range described().Webhooks {
		if op := methods["post"]; op.Description == "" || len(op.Parameters) != 5 {
			t.Errorf("%s: description %q, %d parameters", kind, op.Description, len(op.Parameters))
		}
	}
}

// TestEveryPropertyIsDescribed walks all schemas of the document.
func TestEveryPropertyIsDescribed(t *testing.T) {
	t.Parallel()
	properties := 0
	var walk func(place string, v any)
	walk = func(place string, v any) {
		switch v := v.(type) {
		case []any:
			for i, one := range v {
				walk(fmt.Sprintf("%s/%d", place, i), one)
			}
		case map[string]any:
			members, _ := v["properties"].(map[string]any)
			for name, p := range members {
				properties++
				if text, _ := p.(map[string]any)["description"].(string); text == "" {
					t.Errorf("%s/%s has no description", place, name)
				}
			}
			for name, one := range v {
				if name != "example" && name != "examples" && name != "value" {
					walk(place+"/"+name, one)
				}
			}
		}
	}
	walk("", described().schemas.Root)
	if properties < 200 {
		t.Errorf("%d properties were found", properties)
	}
}

// TestReasonsOfStatesAreClosedLists compares the document with the pages.
func TestReasonsOfStatesAreClosedLists(t *testing.T) {
	t.Parallel()
	for place, want := range map[string][]string{
		"Device/properties/statusReason": problem.SessionReasons(), "Link/properties/reason": problem.SessionReasons(),
		"Endpoint/properties/statusReason":           problem.EndpointReasons(),
		"EndpointWithSecret/properties/statusReason": problem.EndpointReasons(),
	} {
		place = "/components/schemas/" + place
		for _, reason := range want {
			if err := described().schemas.Valid(place, reason); err != nil {
				t.Errorf("%s: %s is refused: %v", place, reason, err)
			}
		}
		if err := described().schemas.Valid(place, nil); err != nil {
			t.Errorf("%s: null is refused: %v", place, err)
		}
		for _, other := range []string{"because", "temporary-ban until 2026-11-21T10:00:00.000Z", "refused-405"} {
			if described().schemas.Valid(place, other) == nil {
				t.Errorf("%s takes %q", place, other)
			}
		}
	}
}
