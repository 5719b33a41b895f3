package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"postern/internal/postern"
	"postern/internal/reference"

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
	schemas.RegisterTypeAlias(reflect.TypeFor[postern.Message](), reflect.TypeFor[postern.MessageObject]())
	schemas.RegisterTypeAlias(reflect.TypeFor[postern.Failure](), reflect.TypeFor[inlineFailure]())
	schemas.RegisterTypeAlias(reflect.TypeFor[postern.Pace](), reflect.TypeFor[inlinePace]())
	server := &huma.Server{URL: strings.TrimRight(opts.BaseURL, "/"), Description: "The real network"}
	if opts.Sandbox {
		server.Description = "The sandbox: a simulated network with simulated phones"
	}
	if server.URL == "" {
		server.URL = "/"
	}
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Postern", Version: reference.Version(), Description: introduction,
			Contact: &huma.Contact{Name: "The Postern authors"},
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
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
			Schemas: schemas, Headers: headers(), Responses: map[string]*huma.Response{}, Examples: map[string]*huma.Example{},
			SecuritySchemes: map[string]*huma.SecurityScheme{
				bearer: {Type: "http", Scheme: "bearer", BearerFormat: "pst_…", Description: "An API key of the workspace."},
			},
		},
	}
}

const introduction = `A gateway that sends and receives messages through a linked messaging account.

Send your key as ` + "`Authorization: Bearer`" + `. Every refusal is a problem document (RFC 9457): ` + "`code`" + ` is the word to switch on, ` + "`type`" + ` ends in the precise reason and leads to a page about it. Each operation lists the reasons it can give; beside them, a path that is none is answered 404 ` + "`not-found`" + `, and a method that a path does not take 405 ` + "`method-not-allowed`" + ` with an ` + "`Allow`" + ` header.

Lists are pages: give ` + "`nextCursor`" + ` back as ` + "`cursor`" + `. A POST that creates something takes an ` + "`Idempotency-Key`" + `. Times are RFC 3339 in UTC. What changed is told in [the changelog](/docs/changelog).`

// inlineFailure describes [postern.Failure] in place, since a reference cannot
// be null.
type inlineFailure struct{}

// Schema is that of the failure itself.
func (inlineFailure) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[postern.Failure]())
}

// inlinePace describes [postern.Pace] in place, for the same reason.
type inlinePace struct{}

// Schema is that of the pace itself.
func (inlinePace) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[postern.Pace]())
}

// schemaName calls a list of devices DeviceList.
func schemaName(t reflect.Type, hint string) string {
	name := strings.TrimSuffix(huma.DefaultSchemaNamer(t, hint), "Object") // MessageObject is a Message in the document
	if of, ok := strings.CutPrefix(name, "List"); ok && of != "" {
		return of + "List"
	}
	return name
}

func tagOf(path string) string { return strings.Split(path, "/")[2] }

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
	}
}

// documentOperation adds an operation's scopes and what its types do not say.
func (a *API) documentOperation(op *huma.Operation) {
	needed := make([]string, len(a.scopes[op.OperationID]))
	for i, s := range a.scopes[op.OperationID] {
		needed[i] = string(s)
	}
	op.Security = []map[string][]string{{bearer: {}}}
	op.Extensions = map[string]any{"x-scopes": needed} // many readers take names beside a bearer scheme for a mistake
	op.Description = notes()[op.OperationID].text + "\n\nNeeds the scope `" + strings.Join(needed, "` and `") + "`."
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

// describe finishes the document: what follows from all that is registered.
func (a *API) describe() error {
	doc := a.huma.OpenAPI()
	book, err := readExamples()
	if err != nil {
		return err
	}
	for _, item := range doc.Paths {
		for _, op := range operations(item) {
			a.documentRefusals(doc.Components, op)
			documentHeaders(op)
			book.show(op)
		}
	}
	a.documentNotifications(doc, book)
	for _, s := range doc.Components.Schemas.Map() {
		tidy(s)
	}
	return nil
}

// write makes the bytes of the document.
func (a *API) write() ([]byte, error) {
	raw, err := json.Marshal(a.huma.OpenAPI())
	if err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	var out bytes.Buffer
	err = json.Indent(&out, raw, "", "  ")
	out.WriteByte('\n')
	return out.Bytes(), err
}

// documentHeaders adds the headers that every answer has.
func documentHeaders(op *huma.Operation) {
	r := op.Responses[strconv.Itoa(op.DefaultStatus)]
	if r.Headers == nil {
		r.Headers = map[string]*huma.Param{}
	}
	maps.Copy(r.Headers, commonHeaders())
}

// commonHeaders are those of every answer, as references.
func commonHeaders() map[string]*huma.Param {
	list := map[string]*huma.Param{}
	for _, name := range []string{"Request-Id", "RateLimit-Policy", "RateLimit"} {
		list[name] = &huma.Param{Ref: "#/components/headers/" + name}
	}
	return list
}

// headers describes the headers that many answers have.
func headers() map[string]*huma.Param {
	text := func(doc, pattern, example string) *huma.Param {
		return &huma.Param{Description: doc, Required: true, Schema: &huma.Schema{Type: huma.TypeString, Pattern: pattern}, Example: example}
	}
	return map[string]*huma.Param{
		"Request-Id":       text("Names this request in the server's log.", `^req_[0-9A-Z]{26}$`, "req_"+exampleULID),
		"RateLimit-Policy": text(`The rate: "default";q=300;w=60 is 300 requests in 60 seconds, for the key and for all keys of the workspace together. On an answer that no accepted key was needed for it is "address": refused credentials from the caller's address.`, `^"(default|address)";q=[0-9]+;w=60$`, `"default";q=300;w=60`),
		"RateLimit":        text(`What is left: "default";r=42;t=17 is 42 requests now, and all again in 17 seconds.`, `^"(default|address)";r=[0-9]+;t=[0-9]+$`, `"default";r=42;t=17`),
		"Retry-After":      text("Seconds to wait.", `^[1-9][0-9]*$`, "17"),
		"WWW-Authenticate": text("How to authenticate.", `^Bearer$`, "Bearer"),
	}
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
func (a *API) OpenAPI() ([]byte, error) {
	b, err := a.spec()
	return bytes.Clone(b), err
}

// Document is what a server for the real network serves at a base URL. "" stands for
// wherever it is read.
func Document(baseURL string) ([]byte, error) {
	a, err := New(Options{BaseURL: baseURL})
	if err != nil {
		return nil, err
	}
	return a.OpenAPI()
}

func (a *API) serveSpec(w http.ResponseWriter, r *http.Request) {
	b, err := a.spec()
	if err != nil {
		a.refuse(w, requestOf(r.Context()), err)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b) // the caller may be gone
}
