// Package spec holds the parts of the OpenAPI document that do not follow from
// the routes and types of the API: what each operation does, why it refuses,
// examples, headers, and the webhooks. openapi.json is the committed copy of the
// document.
package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"postern/internal/postern"
	"postern/internal/problem"
	"postern/internal/reference"

	"github.com/danielgtaylor/huma/v2"
)

// The media types of answers and bodies.
const (
	JSON   = "application/json"
	Patch  = "application/merge-patch+json" // JSON in the body of a PATCH (RFC 7396)
	SVG    = "image/svg+xml"
	PNG    = "image/png"
	Stream = "text/event-stream" // server-sent events
	Bytes  = "application/octet-stream"
	Form   = "multipart/form-data"
	Any    = "*/*" // of a file, which has a type of its own
)

// IdempotencyKey is the header that makes the retry of a POST safe.
const IdempotencyKey = "Idempotency-Key"

const bearer = "bearer"

// New starts the document of a server that callers reach at baseURL; "" stands
// for wherever the document is read. Operations are added to it as they are
// registered, and [Finish] completes it.
func New(baseURL string, sandbox bool) *huma.OpenAPI {
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Postern", Version: reference.Version(), Description: introduction,
			Contact: &huma.Contact{Name: "The Postern authors"},
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*huma.Server{server(strings.TrimRight(baseURL, "/"), sandbox)},
		Tags:    tags(),
		Components: &huma.Components{
			Schemas: schemas(), Headers: headers(), Responses: map[string]*huma.Response{},
			Examples: map[string]*huma.Example{},
			SecuritySchemes: map[string]*huma.SecurityScheme{
				bearer: {
					Type: "http", Scheme: "bearer", BearerFormat: "pst_…",
					Description: "An API key of the workspace.",
				},
			},
		},
	}
}

func server(url string, sandbox bool) *huma.Server {
	s := &huma.Server{URL: url, Description: "The real network"}
	if sandbox {
		s.Description = "The sandbox: a simulated network with simulated phones"
	}
	if s.URL == "" {
		s.URL = "/"
	}
	return s
}

func tags() []*huma.Tag {
	return []*huma.Tag{
		{Name: "devices", Description: "Linked messaging accounts"},
		{Name: "contacts", Description: "People on the network, and what they see and hear at once"},
		{Name: "groups", Description: "The groups that a device is in"},
		{Name: "messages", Description: "Messages in both directions"},
		{Name: "media", Description: "Files to send, and files that came with messages"},
		{Name: "webhooks", Description: "Endpoints to which events are posted"},
		{Name: "deliveries", Description: "What was posted to which endpoint, with every attempt"},
		{Name: "replays", Description: "Parts of the event log that are delivered again"},
		{Name: "events", Description: "The log of all events, in the order in which they were recorded"},
		{Name: "usage", Description: "How much of the plan is used"},
		{Name: "me", Description: "The key of the request, its workspace and its plan"},
		{Name: "sandbox", Description: "Simulated phones; only on a server whose sandbox is on"},
	}
}

const introduction = `A gateway that sends and receives messages through a linked messaging account.

Send your key as ` + "`Authorization: Bearer`" + `. Every refusal is a problem document (RFC 9457): ` + "`code`" + ` is the stable word to branch on; ` + "`type`" + ` ends in the precise reason and is the address of a page about it. Each operation lists its reasons. In addition, an unknown path is answered with 404 ` + "`not-found`" + `, and a method that a path does not support with 405 ` + "`method-not-allowed`" + ` and an ` + "`Allow`" + ` header.

Lists come in pages: pass ` + "`nextCursor`" + ` as ` + "`cursor`" + ` to get the next one. A page is at most 1 MiB of JSON, so it may be shorter than ` + "`limit`" + `, or even empty when a filter matches little; the list ends when ` + "`nextCursor`" + ` is null. A POST that creates something accepts an ` + "`Idempotency-Key`" + `. Times are RFC 3339 in UTC. The [changelog](/docs/changelog) lists all changes.`

// components begins a reference to a schema.
const components = "#/components/schemas/"

// schemas is the registry of the types in bodies. Some have a schema other than
// their own.
func schemas() huma.Registry {
	r := huma.NewMapRegistry(components, schemaName)
	r.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[problem.Document]())
	r.RegisterTypeAlias(reflect.TypeFor[postern.Message](), reflect.TypeFor[postern.MessageObject]())
	r.RegisterTypeAlias(reflect.TypeFor[postern.Failure](), reflect.TypeFor[inlineFailure]())
	r.RegisterTypeAlias(reflect.TypeFor[postern.Pace](), reflect.TypeFor[inlinePace]())
	r.RegisterTypeAlias(reflect.TypeFor[postern.PasskeyRequest](), reflect.TypeFor[inlinePasskey]())
	return r
}

// inlineFailure describes [postern.Failure] in place, since a reference cannot
// be null.
type inlineFailure struct{}

// Schema returns the schema of the failure itself.
func (inlineFailure) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[postern.Failure]())
}

// inlinePace describes [postern.Pace] in place, for the same reason.
type inlinePace struct{}

// Schema returns the schema of the pace itself.
func (inlinePace) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[postern.Pace]())
}

// inlinePasskey describes [postern.PasskeyRequest] in place, for the same reason.
type inlinePasskey struct{}

// Schema returns the schema of the request itself.
func (inlinePasskey) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[postern.PasskeyRequest]())
}

// schemaName names a list of devices DeviceList, a problem document Problem, and a
// message object Message.
func schemaName(t reflect.Type, hint string) string {
	switch t {
	case reflect.TypeFor[problem.Document]():
		return "Problem"
	case reflect.TypeFor[postern.MessageObject]():
		return "Message"
	}
	name := strings.TrimSuffix(huma.DefaultSchemaNamer(t, hint), "Object") // a MessageObject is a Message
	if of, ok := strings.CutPrefix(name, "List"); ok && of != "" {
		return of + "List"
	}
	return name
}

// Describe adds to an operation the scopes that it needs and what its types do
// not say.
func Describe(op *huma.Operation, scopes []postern.Scope) {
	needed := make([]string, len(scopes))
	for i, s := range scopes {
		needed[i] = string(s)
	}
	op.Security = []map[string][]string{{bearer: {}}}
	op.Extensions = map[string]any{"x-scopes": needed} // many readers take names beside a bearer scheme for a mistake
	op.Description = notes()[op.OperationID].text + "\n\n" + needs(needed)
}

// needs names the scopes of an operation.
func needs(scopes []string) string {
	if len(scopes) == 1 {
		return "Needs the scope `" + scopes[0] + "`."
	}
	if len(scopes) == 0 {
		return "Needs no scope."
	}
	list := strings.Join(scopes, "`, `")
	if at := strings.LastIndex(list, "`, `"); at >= 0 {
		list = list[:at] + "` and `" + list[at+len("`, `"):]
	}
	return "Needs the scopes `" + list + "`."
}

// Operations ranges over the operations of a path, each with its method.
func Operations(item *huma.PathItem) iter.Seq2[string, *huma.Operation] {
	return func(yield func(string, *huma.Operation) bool) {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil && !yield(op.Method, op) {
				return
			}
		}
	}
}

// Finish completes the document with what follows from all that is registered:
// refusals, headers, examples and webhooks.
func Finish(doc *huma.OpenAPI, problems *problem.Writer) error {
	book, err := readExamples()
	if err != nil {
		return err
	}
	for _, item := range doc.Paths {
		for _, op := range Operations(item) {
			documentRefusals(doc.Components, op, problems)
			documentHeaders(op)
			documentPatch(op)
			documentForm(op)
			book.show(op)
		}
	}
	documentNotifications(doc, book)
	for _, s := range doc.Components.Schemas.Map() {
		closeReasons(s)
		tidy(s)
	}
	return nil
}

// BodyTypes returns the media types in which an operation takes its body.
func BodyTypes(op *huma.Operation) []string {
	if op.Method == http.MethodPatch {
		return []string{JSON, Patch}
	}
	return []string{JSON}
}

// TakesFile tells whether the body of an operation is a file.
func TakesFile(op *huma.Operation) bool {
	return op.RequestBody != nil && op.RequestBody.Content[JSON] == nil
}

// File describes the bytes of a file.
func File(doc string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "binary", Description: doc}
}

// documentForm adds the form in which a file may come.
func documentForm(op *huma.Operation) {
	if !TakesFile(op) {
		return
	}
	const shown = "(the bytes of the file)"
	op.RequestBody.Content[Bytes].Example = shown
	op.RequestBody.Content[Form] = &huma.MediaType{
		Example: map[string]any{"file": shown},
		Schema: &huma.Schema{
			Type: huma.TypeObject, Required: []string{"file"},
			Properties: map[string]*huma.Schema{"file": File("The file, with its name as filename.")},
		},
	}
}

// documentPatch adds the types of a body beside JSON.
func documentPatch(op *huma.Operation) {
	for _, t := range BodyTypes(op) {
		if op.RequestBody != nil && !TakesFile(op) {
			op.RequestBody.Content[t] = op.RequestBody.Content[JSON]
		}
	}
}

// closeReasons lists the values of a state's reason. An endpoint is known by its secret.
func closeReasons(s *huma.Schema) {
	list := problem.SessionReasons()
	if s.Properties["secretLastFour"] != nil {
		list = problem.EndpointReasons()
	}
	for _, name := range []string{"statusReason", "reason"} {
		p := s.Properties[name]
		if p == nil || len(p.Enum) > 0 || s.Properties["status"] == nil || s.Properties["status"].Type != huma.TypeString {
			continue // such as the reason of an attempt
		}
		for _, reason := range list {
			p.Enum = append(p.Enum, reason)
		}
		p.Description += " Each value has a page that explains it and what to do, such as " + problem.Path + list[0] + "."
	}
}

// tidy leaves out that an object may gain members, which is so anyway, and adds
// null to the values of an enumeration that may be null.
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

// Encode returns the bytes of the document.
func Encode(doc *huma.OpenAPI) ([]byte, error) {
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	var out bytes.Buffer
	err = json.Indent(&out, raw, "", "  ")
	out.WriteByte('\n')
	return out.Bytes(), err
}
