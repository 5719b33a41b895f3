package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
)

const (
	specPath   = "/v1/openapi.json"
	svgType    = "image/svg+xml"
	pngType    = "image/png"
	streamType = "text/event-stream"
	bearer     = "bearer"
)

// document starts the OpenAPI document.
func document(opts Options) *huma.OpenAPI {
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaName)
	schemas.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[Problem]())
	schemas.RegisterTypeAlias(reflect.TypeFor[List[loggedEvent]](), reflect.TypeFor[List[Event]]())
	schemas.RegisterTypeAlias(reflect.TypeFor[postern.Failure](), reflect.TypeFor[inlineFailure]())
	server := &huma.Server{URL: opts.BaseURL, Description: "The real network"}
	if opts.Sandbox {
		server.Description = "The sandbox: a simulated network with simulated phones"
	}
	if server.URL == "" {
		server.URL = "/"
	}
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Postern", Version: opts.Version,
			Description: "A gateway that sends and receives messages through a linked messaging account. Send your key as Authorization: Bearer.",
		},
		Servers: []*huma.Server{server},
		Tags: []*huma.Tag{
			{Name: "devices", Description: "Linked messaging accounts"},
			{Name: "messages", Description: "Messages in both directions"},
			{Name: "webhooks", Description: "Where events are posted"},
			{Name: "deliveries", Description: "What was posted where, attempt by attempt"},
			{Name: "replays", Description: "Parts of the log that are delivered again"},
			{Name: "events", Description: "The log of all that happened"},
			{Name: "usage", Description: "What is used of the plan"},
			{Name: "sandbox", Description: "What only a server with the sandbox on has"},
		},
		Components: &huma.Components{
			Schemas: schemas, Headers: headers(), Responses: refusals(schemas),
			SecuritySchemes: map[string]*huma.SecurityScheme{
				bearer: {Type: "http", Scheme: "bearer", BearerFormat: "pst_…", Description: "An API key of the workspace. The roles of an operation are the scopes it needs."},
			},
		},
	}
}

// inlineFailure describes [postern.Failure] in place, since a reference cannot
// be null.
type inlineFailure struct{}

// Schema is that of the failure itself.
func (inlineFailure) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[postern.Failure]())
}

// schemaName calls a list of devices DeviceList.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if of, ok := strings.CutPrefix(name, "List"); ok && of != "" {
		return of + "List"
	}
	return name
}

func tagOf(path string) string { return strings.Split(path, "/")[2] }

func hasBody[I any]() bool {
	_, ok := reflect.TypeFor[I]().FieldByName("Body")
	return ok
}

// creates marks an operation that makes something: 201, at most once for an
// idempotency key.
func creates(op *huma.Operation) {
	op.DefaultStatus = http.StatusCreated
	limit := maxKey
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: idempotencyHeader, In: "header", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &limit},
		Description: "Makes a retry safe: for 24 hours the same key gives the first answer again.",
	})
}

// status sets the status of the good answer.
func status(code int) func(*huma.Operation) {
	return func(op *huma.Operation) { op.DefaultStatus = code }
}

// gives marks an operation whose good answer is not JSON.
func gives(contentType string) func(*huma.Operation) {
	return func(op *huma.Operation) {
		op.DefaultStatus = http.StatusOK
		op.Responses["200"] = &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{
			contentType: {Schema: &huma.Schema{Type: huma.TypeString}},
		}}
		if contentType == streamType {
			op.Description = "Server-sent events: \"code\" with the link attempt each time its code changes, then \"ended\" with the final attempt, then the stream ends."
		}
	}
}

// describes says more about an operation than its summary.
func describes(text string) func(*huma.Operation) {
	return func(op *huma.Operation) { op.Description = text }
}

// refuses adds refusals that only this operation has.
func refuses(codes ...int) func(*huma.Operation) {
	return func(op *huma.Operation) {
		for _, code := range codes {
			op.Responses[strconv.Itoa(code)] = &huma.Response{Ref: "#/components/responses/" + strconv.Itoa(code)}
		}
	}
}

// documentOperation adds what follows from the kind of an operation: its
// scopes and its refusals.
func (a *API) documentOperation(op *huma.Operation, body bool) {
	var needed []string
	for _, s := range a.scopes[op.OperationID] {
		needed = append(needed, string(s))
	}
	op.Security = []map[string][]string{{bearer: needed}}
	refusals := []int{400, 401, 403, 406, 422, 429, 431, 500, 503}
	if body {
		refusals = append(refusals, 413, 415)
	}
	if strings.Contains(op.Path, "{id}") || op.OperationID == "sendMessage" {
		refusals = append(refusals, 404)
	}
	if op.Method != http.MethodGet {
		refusals = append(refusals, 409)
	}
	for _, code := range refusals {
		op.Responses[strconv.Itoa(code)] = &huma.Response{Ref: "#/components/responses/" + strconv.Itoa(code)}
	}
}

// operations ranges over the operations of a path.
func operations(item *huma.PathItem) iter.Seq2[string, *huma.Operation] {
	return func(yield func(string, *huma.Operation) bool) {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil && !yield(op.Method, op) {
				return
			}
		}
	}
}

// describe finishes the document and writes it.
func (a *API) describe() ([]byte, error) {
	doc := a.huma.OpenAPI()
	for _, item := range doc.Paths {
		for _, op := range operations(item) {
			documentHeaders(op)
		}
	}
	for _, s := range doc.Components.Schemas.Map() {
		tidy(s)
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	var out bytes.Buffer
	err = json.Indent(&out, raw, "", "  ")
	out.WriteByte('\n')
	return out.Bytes(), err
}

// documentHeaders adds the headers that every answer to a key has.
func documentHeaders(op *huma.Operation) {
	r := op.Responses[strconv.Itoa(op.DefaultStatus)]
	if r.Headers == nil {
		r.Headers = map[string]*huma.Param{}
	}
	for _, name := range []string{"Request-Id", "RateLimit-Policy", "RateLimit"} {
		r.Headers[name] = &huma.Param{Ref: "#/components/headers/" + name}
	}
}

// headers describes the headers that many answers have.
func headers() map[string]*huma.Param {
	text := func(doc string) *huma.Param {
		return &huma.Param{Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	return map[string]*huma.Param{
		"Request-Id":       text("Names this request in the server's log."),
		"RateLimit-Policy": text(`The rate: "default";q=300;w=60 is 300 requests in 60 seconds.`),
		"RateLimit":        text(`What is left: "default";r=42;t=17 is 42 requests now, and all again in 17 seconds.`),
		"Retry-After":      text("Seconds to wait."),
		"WWW-Authenticate": text("Bearer"),
		"Allow":            text("The methods that this path takes."),
	}
}

// refusals describes the problem documents, one for each status.
func refusals(schemas huma.Registry) map[string]*huma.Response {
	words, list := map[int][]string{}, map[string]*huma.Response{}
	for reason, k := range kinds() {
		words[k.status] = append(words[k.status], string(reason))
	}
	for status, reasons := range words {
		slices.Sort(reasons)
		r := &huma.Response{
			Description: http.StatusText(status) + ": " + strings.Join(reasons, ", "),
			Headers:     map[string]*huma.Param{},
			Content:     map[string]*huma.MediaType{problemType: {Schema: schemas.Schema(reflect.TypeFor[Problem](), true, "")}},
		}
		also := map[int]string{401: "WWW-Authenticate", 405: "Allow", 429: "Retry-After", 503: "Retry-After"}
		for _, name := range []string{"Request-Id", also[status]} {
			if name != "" {
				r.Headers[name] = &huma.Param{Ref: "#/components/headers/" + name}
			}
		}
		list[strconv.Itoa(status)] = r
	}
	return list
}

// tidy leaves out what is so anyway, that an object may gain members, and adds
// null to the values of members that may be null.
func tidy(s *huma.Schema) {
	if s.AdditionalProperties == true {
		s.AdditionalProperties = nil
	}
	if s.Nullable && len(s.Enum) > 0 && !slices.Contains(s.Enum, nil) {
		s.Enum = append(s.Enum, nil)
	}
	for _, p := range s.Properties {
		tidy(p)
	}
}

// OpenAPI is the document that describes the API, as it is served.
func (a *API) OpenAPI() ([]byte, error) { return bytes.Clone(a.spec), nil }

func (a *API) serveSpec(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.spec)))
	_, _ = w.Write(a.spec) // the caller may be gone
}
