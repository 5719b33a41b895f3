package api

import (
	"context"
	"net/http"
	"strings"

	"postern/internal/api/spec"

	"github.com/danielgtaylor/huma/v2"
)

// add registers one operation. Its handler gets the request and its decoded
// input, and returns the answer or an error, which becomes a problem document.
func add[I, O any](a *API, route, id, summary string,
	handle func(context.Context, *request, *I) (*O, error), more ...func(*huma.Operation),
) {
	method, path, _ := strings.Cut(route, " ")
	op := huma.Operation{
		Method: method, Path: path, OperationID: id, Summary: summary, Tags: []string{tagOf(path)},
		BodyReadTimeout: -1, SkipValidateBody: true, MaxBodyBytes: 2 * MaxBodyBytes,
		// guard reads and checks the body first
		Responses: map[string]*huma.Response{},
	}
	for _, change := range more {
		change(&op)
	}
	spec.Describe(&op, a.scopes[op.OperationID])
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		q := requestOf(ctx)
		out, err := handle(ctx, q, in)
		if err != nil {
			return nil, a.problems.Document(q.Request, err)
		}
		return out, nil
	})
}

func tagOf(path string) string {
	rest, nested := strings.CutPrefix(path, "/v1/devices/{id}/")
	switch first, _, _ := strings.Cut(rest, "/"); {
	case nested && first == "groups":
		return "groups"
	case nested && (first == "contacts" || first == "chats" || first == "calls"):
		return "contacts"
	}
	return strings.Split(path, "/")[2]
}

// creates marks an operation that creates something: it answers with 201, and at
// most once for an idempotency key.
func creates(op *huma.Operation) {
	op.DefaultStatus = http.StatusCreated
	limit := maxKey
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: spec.IdempotencyKey, In: "header", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &limit},
		Description: "Makes a retry safe: for 24 hours, a request with the same key gets the first response again.",
	})
}

// compressed marks an operation whose response the front door may compress. The response
// must contain no secret: no key, code, signing secret or address that lets its holder in.
func compressed(op *huma.Operation) { op.Metadata = map[string]any{compressedMark: true} }

func mayCompress(op *huma.Operation) bool { return op.Metadata[compressedMark] != nil }

const compressedMark = "compressed" // in the metadata, which is not in the document

// status sets the status of the successful answer.
func status(code int) func(*huma.Operation) {
	return func(op *huma.Operation) { op.DefaultStatus = code }
}

// gives marks an operation whose successful answer is not JSON.
func gives(contentType string) func(*huma.Operation) {
	return func(op *huma.Operation) {
		op.DefaultStatus = http.StatusOK
		op.Responses["200"] = &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{
			contentType: {Schema: &huma.Schema{Type: huma.TypeString}},
		}}
	}
}
