package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"postern/internal/api"
	"postern/internal/api/spec/spectest"
	"postern/internal/postern"
	"postern/internal/problem"
)

type headerDoc struct {
	Ref      string `json:"$ref"`
	Required bool   `json:"required"`
}

type content map[string]struct {
	Example  json.RawMessage            `json:"example"`
	Examples map[string]json.RawMessage `json:"examples"`
}

type response struct {
	Ref     string               `json:"$ref"`
	Headers map[string]headerDoc `json:"headers"`
	Content content              `json:"content"`

	place string // where it is, as a JSON pointer
}

type parameter struct {
	Name   string         `json:"name"`
	In     string         `json:"in"`
	Schema map[string]any `json:"schema"`
}

type operation struct {
	OperationID string                `json:"operationId"`
	Summary     string                `json:"summary"`
	Description string                `json:"description"`
	Scopes      []string              `json:"x-scopes"`
	Security    []map[string][]string `json:"security"`
	Parameters  []parameter           `json:"parameters"`
	RequestBody struct {
		Required bool    `json:"required"`
		Content  content `json:"content"`
	} `json:"requestBody"`
	Responses map[string]response `json:"responses"`

	method, path, place string
}

// document is an OpenAPI document that answers are compared with.
type document struct {
	OpenAPI    string                          `json:"openapi"`
	Paths      map[string]map[string]operation `json:"paths"`
	Webhooks   map[string]map[string]operation `json:"webhooks"`
	Components struct {
		Responses map[string]response        `json:"responses"`
		Headers   map[string]headerDoc       `json:"headers"`
		Examples  map[string]json.RawMessage `json:"examples"`
	} `json:"components"`

	schemas *spectest.Schemas
}

// described is the document of the servers in these tests.
var described = sync.OnceValue(func() *document {
	raw, err := api.Document(baseURL)
	if err == nil {
		var d *document
		if d, err = parseDocument(raw); err == nil {
			return d
		}
	}
	panic(err)
})

// parseDocument reads a document.
func parseDocument(raw []byte) (*document, error) {
	d := &document{}
	if err := json.Unmarshal(raw, d); err != nil {
		return nil, err
	}
	for route, methods := range d.Paths {
		for method, op := range methods {
			op.method, op.path, op.place = strings.ToUpper(method), route, spectest.Pointer("", "paths", route, method)
			methods[method] = op
		}
	}
	var err error
	d.schemas, err = spectest.Parse(raw)
	return d, err
}

// tree is the part of the document at a place.
func (d *document) tree(place string) map[string]any {
	v := d.schemas.Root
	for step := range strings.SplitSeq(strings.TrimPrefix(place, "/"), "/") {
		m, _ := v.(map[string]any)
		v = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	m, _ := v.(map[string]any)
	return m
}

// find is the operation that a request is for; known tells whether the path
// exists, for this or another method.
func (d *document) find(method, target string) (op operation, found, known bool) {
	for route, methods := range d.Paths {
		if !matches(route, target) {
			continue
		}
		known = true
		op, found := methods[strings.ToLower(method)]
		found = found && method == op.method // methods have a case
		if !found && method == http.MethodHead {
			op, found = methods["get"]
		}
		if found {
			return op, true, true
		}
	}
	return operation{}, false, known
}

func matches(route, target string) bool {
	want, got := strings.Split(route, "/"), strings.Split(target, "/")
	if len(want) != len(got) {
		return false
	}
	for i, part := range want {
		if part != got[i] && (!strings.HasPrefix(part, "{") || got[i] == "") {
			return false
		}
	}
	return true
}

// check compares an answer with the document: its status is listed, its
// headers are there, its body has the type and the form that is described, and
// a refusal has one of the reasons that the operation lists.
func (d *document) check(r *http.Request, status int, header http.Header, body []byte) error {
	op, found, known := d.find(r.Method, r.URL.EscapedPath())
	plain := path.Clean(r.URL.EscapedPath()) == r.URL.EscapedPath()
	switch {
	case found && plain:
		return d.checkOperation(op, r.Method, status, header, body)
	case public(r.URL.Path) && status < 400:
		return nil
	case known && plain:
		return d.checkRefusal(r.Method, status, header, body, postern.MethodNotAllowed, postern.InsecureTransport,
			postern.HeadersTooLarge)
	}
	if isLink(r.URL.Path) && (status == http.StatusRequestedRangeNotSatisfiable || status == http.StatusTooManyRequests) {
		return nil
	}
	return d.checkRefusal(r.Method, status, header, body, postern.NotFound, postern.MethodNotAllowed,
		postern.InsecureTransport, postern.HeadersTooLarge,
		postern.NotAcceptable)
}

// public are paths beside the operations.
func public(p string) bool {
	return p == "/v1/openapi.json" || strings.HasPrefix(p, "/docs") || strings.HasPrefix(p, "/problems/") ||
		strings.HasPrefix(p, "/link/") || isLink(p)
}

// isLink tells whether a path is that of a link to a file.
func isLink(p string) bool {
	return strings.HasPrefix(p, "/v1/media/") && strings.HasSuffix(p, "/file")
}

// checkRefusal is for what no operation answers.
func (d *document) checkRefusal(method string, status int, header http.Header, body []byte,
	reasons ...postern.Reason,
) error {
	if method == http.MethodHead { // its answer has no body
		if !slices.ContainsFunc(reasons, func(r postern.Reason) bool { return problem.Of(r).Status == status }) {
			return fmt.Errorf("the answer %d, want one of %v", status, reasons)
		}
		return nil
	}
	var p refusal
	if err := json.Unmarshal(body, &p); err != nil {
		return fmt.Errorf("%d: %w", status, err)
	}
	reason := postern.Reason(path.Base(p.Type))
	if !slices.Contains(reasons, reason) {
		return fmt.Errorf("the answer %d %s, want one of %v", status, reason, reasons)
	}
	if problem.Of(reason).Status != status || reason == postern.MethodNotAllowed && header.Get("Allow") == "" {
		return fmt.Errorf("%s with status %d and headers %v", reason, status, header)
	}
	for name := range d.Components.Headers {
		if slices.Contains([]string{"Request-Id", "RateLimit", "RateLimit-Policy"}, name) {
			if err := d.checkHeader(headerDoc{Ref: "#/components/headers/" + name}, name, header); err != nil {
				return err
			}
		}
	}
	return d.schemas.ValidJSON("/components/schemas/Problem", body)
}

func (d *document) checkOperation(op operation, method string, status int, header http.Header, body []byte) error {
	code := strconv.Itoa(status)
	r, ok := op.Responses[code]
	r.place = spectest.Pointer(op.place, "responses", code)
	if name, ref := strings.CutPrefix(r.Ref, "#/components/responses/"); ref {
		r = d.Components.Responses[name]
		r.place = spectest.Pointer("/components/responses", name)
	}
	if !ok {
		return fmt.Errorf("%s: the answer %d is not described: %s", op.OperationID, status, body)
	}
	for name, h := range r.Headers {
		if err := d.checkHeader(h, name, header); err != nil {
			return fmt.Errorf("%s %d: %w", op.OperationID, status, err)
		}
	}
	if method == http.MethodHead {
		return nil
	}
	if err := d.checkBody(r, header, body); err != nil {
		return fmt.Errorf("%s %d: %w", op.OperationID, status, err)
	}
	return nil
}

func (d *document) checkHeader(h headerDoc, name string, header http.Header) error {
	place := ""
	if shared, ref := strings.CutPrefix(h.Ref, "#/components/headers/"); ref {
		h, place = d.Components.Headers[shared], spectest.Pointer("/components/headers", shared, "schema")
	}
	values := header.Values(name)
	switch {
	case len(values) == 0 && !h.Required:
		return nil
	case len(values) != 1:
		return fmt.Errorf("the header %s is there %d times", name, len(values))
	case place == "":
		return nil
	}
	return d.schemas.Valid(place, values[0])
}

func (d *document) checkBody(r response, header http.Header, body []byte) error {
	if len(r.Content) == 0 {
		if len(body) > 0 {
			return errors.New("there is a body, and none is described")
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return err
	}
	if _, file := r.Content["*/*"]; file {
		return nil
	}
	c, ok := r.Content[kind]
	if !ok {
		return fmt.Errorf("the type %s is not described", kind)
	}
	if !strings.HasSuffix(kind, "json") {
		return nil // an image, or a stream
	}
	if err := d.schemas.ValidJSON(spectest.Pointer(r.place, "content", kind, "schema"), body); err != nil {
		return fmt.Errorf("%w in %.300s", err, body)
	}
	if kind != "application/problem+json" {
		return nil
	}
	var p refusal
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	if _, listed := c.Examples[path.Base(p.Type)]; !listed {
		return fmt.Errorf("the reason %s is not listed", path.Base(p.Type))
	}
	return nil
}

// TestTheCheckerFindsLies shows it answers that are almost right.
func TestTheCheckerFindsLies(t *testing.T) {
	t.Parallel()
	const device = `{"id":"dev_1","status":"connected","name":"x","statusReason":null,"restrictedUntil":null,"newChats":{"allowed":true,"until":null,"pacePercent":100},"mode":"sandbox","phoneNumber":null,"displayName":null,"metadata":{},"pace":null,"receive":{"direct":true,"groups":true,"channels":false,"status":false,"calls":true,"history":false,"media":"eager","viewOnce":false},"createdAt":"2026-11-21T09:00:00.000Z","linkedAt":null,"connectedAt":null,"lastSeenAt":null,"phoneSeenAt":null}`
	const missing = `{"type":"https://postern.test/problems/not-found","title":"Not found","status":404,"detail":"x","code":"NOT_FOUND","requestId":"req_1"}`
	good := map[string]string{
		"Request-Id":       "req_" + strings.Repeat("A", 26),
		"RateLimit-Policy": `"default";q=300;w=60`, "RateLimit": `"default";r=42;t=17`,
	}
	for name, tt := range map[string]struct {
		method, target string
		status         int
		kind, body     string
		header         map[string]string // beside the good ones; "" takes one away
		bad            string            // what is said of it; "" is right
	}{
		"right":                {status: 200, body: device},
		"a status":             {status: 202, body: device, bad: "202 is not described"},
		"a server error":       {status: 502, body: device, bad: "502 is not described"},
		"no member":            {status: 200, body: strings.Replace(device, `"name":"x",`, "", 1), bad: "name"},
		"another type":         {status: 200, body: strings.Replace(device, `"x"`, "5", 1), bad: "got number"},
		"a value":              {status: 200, body: strings.Replace(device, `"connected"`, `"fine"`, 1), bad: "must be one of"},
		"null":                 {status: 200, body: strings.Replace(device, `"x"`, "null", 1), bad: "got null"},
		"a time":               {status: 200, body: strings.Replace(device, `T09:00`, " 9:00", 1), bad: "date-time"},
		"a member more":        {status: 200, body: strings.Replace(device, `"name"`, `"secret":"x","name"`, 1), bad: "secret"},
		"no JSON":              {status: 200, body: device[1:], bad: "invalid character"},
		"another media type":   {status: 200, body: device, kind: "text/html", bad: "text/html is not described"},
		"no request id":        {status: 200, body: device, header: map[string]string{"Request-Id": ""}, bad: "Request-Id is there 0 times"},
		"a header of its own":  {status: 200, body: device, header: map[string]string{"RateLimit": "42"}, bad: "does not match pattern"},
		"an undescribed body":  {method: "DELETE", status: 204, body: "x", bad: "none is described"},
		"right refusal":        {status: 404, kind: "application/problem+json", body: missing},
		"a reason":             {status: 404, kind: "application/problem+json", body: strings.Replace(missing, "not-found", "number-taken", 1), bad: "number-taken is not listed"},
		"a refusal as JSON":    {status: 404, body: missing, bad: "application/json is not described"},
		"401 without a scheme": {status: 401, kind: "application/problem+json", body: strings.NewReplacer("not-found", "unauthorized", "404", "401").Replace(missing), bad: "WWW-Authenticate is there 0 times"},
		"no such route":        {target: "/v1/nothing", status: 404, kind: "application/problem+json", body: missing},
		"an unknown route":     {target: "/v1/nothing", status: 200, body: missing, bad: "not-found with status 200"},
		"405 without Allow":    {method: "PUT", target: "/v1/usage", status: 405, kind: "application/problem+json", body: strings.NewReplacer("not-found", "method-not-allowed", "404", "405").Replace(missing), bad: "with status 405"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{"Content-Type": {orElse(tt.kind, "application/json")}}
			for name, value := range good {
				h.Set(name, value)
			}
			for name, value := range tt.header {
				h.Set(name, value)
				if value == "" {
					h.Del(name)
				}
			}
			r := httptest.NewRequestWithContext(t.Context(), orElse(tt.method, "GET"),
				orElse(tt.target, "/v1/devices/dev_1"),
				nil)
			err := described().check(r, tt.status, h, []byte(tt.body))
			if (tt.bad == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.bad) {
				t.Errorf("the checker says %v, want %q", err, tt.bad)
			}
		})
	}
}

func orElse(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}
