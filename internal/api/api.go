// Package api is the REST API under /v1: it decodes and authorises requests,
// asks the gateway, and encodes answers. It decides nothing else.
//
// A request that has passed the front door passes, in this order: route, key,
// plan, scopes, rate limit, accepted types, query, body, and then the handler of
// its operation. A refusal is a problem document (RFC 9457) that never repeats a
// value of the caller; the pointers of a 422 name the members that are wrong.
package api

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"postern/internal/api/schema"
	"postern/internal/api/spec"
	"postern/internal/gateway"
	"postern/internal/obs"
	"postern/internal/postern"
	"postern/internal/problem"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/go-json-experiment/json"
)

// API serves /v1 over one gateway.
type API struct {
	gateway  *gateway.Gateway
	log      *slog.Logger
	baseURL  string
	problems *problem.Writer
	huma     huma.API
	mux      *http.ServeMux
	scopes   map[string][]postern.Scope
	throttle *throttle
	bodies   *schema.Checker
	streams  *streams
	uploads  *uploads
	code     time.Duration            // how long a response waits for the first code of a link
	document func() (document, error) // made for the first reader
}

// Options configure an API.
type Options struct {
	Gateway *gateway.Gateway
	Log     *slog.Logger // nil discards
	BaseURL string       // where callers reach the server; the start of a problem's type
	Sandbox bool         // the simulated network is on; the document says so

	// FirstCode is how long the response to a new link attempt waits for the first code to show.
	FirstCode time.Duration
}

// New returns an API. It fails when an operation and the table of scopes do not
// match: an operation without scopes must not be served.
func New(opts Options) (*API, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	a := &API{
		gateway: opts.Gateway, log: opts.Log, baseURL: strings.TrimRight(opts.BaseURL, "/"),
		problems: problem.NewWriter(opts.BaseURL, opts.Log), scopes: scopes(),
		throttle: newThrottle(), uploads: newUploads(), code: opts.FirstCode,
	}
	a.streams = newStreams(a.gateway, a.scopes)
	if _, err := a.build(opts.Sandbox); err != nil {
		return nil, err
	}
	a.document = sync.OnceValues(func() (document, error) { return a.describe(opts.Sandbox) })
	a.mux.HandleFunc("GET /v1/openapi.json", a.serveDocument)
	return a, nil
}

// build sets up the operations, and returns the part of the document that they need at work.
func (a *API) build(sandbox bool) (*huma.OpenAPI, error) {
	doc := spec.New(a.baseURL, sandbox)
	doc.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[List[loggedEvent]](), reflect.TypeFor[List[spec.Event]]())
	a.mux = http.NewServeMux()
	a.huma = humago.New(a.mux, config(doc, a.ownProblem))
	a.huma.UseMiddleware(a.guard)
	a.bodies = schema.NewChecker(doc.Components.Schemas)
	a.routes()
	return doc, errors.Join(a.checkScopes(), a.prepareBodies())
}

// Handler serves the API behind the front door, and answers every other path
// with 404.
func (a *API) Handler() http.Handler { return a.problems.Routed(a.mux) }

// EndStreams ends the streams that are open, and each one that is opened later as soon as it
// has begun. Their clients reconnect. Other requests go on.
func (a *API) EndStreams() { a.streams.end() }

// TellRate announces a rate on an answer that names none yet: what the key of the request
// has left or, without a valid key, how many refused credentials the address has left. A
// key that came in plain text is not looked at.
func (a *API) TellRate(r *http.Request, client netip.Addr, h http.Header) {
	if h["Ratelimit"] != nil { // the canonical form of the name
		return
	}
	ctx := r.Context()
	values, q := r.Header["Authorization"], obs.RequestOf(ctx)
	if len(values) > 0 && q != nil && !slices.Contains(unasked(), postern.Reason(q.Reason)) {
		caller, err := a.gateway.Keys.Authenticate(ctx, strings.Join(values, ", ")) // two are no key
		switch {
		case err == nil:
			a.throttle.show(ctx, caller, h)
			return
		case postern.ReasonOf(err) == postern.Unauthorized:
			_ = a.throttle.strike(ctx, client, h) // the response keeps its own status; only its headers and the count change
		}
	}
	if h["Ratelimit"] == nil {
		a.throttle.tell(ctx, client, h)
	}
}

// unasked are the refusals after which a key is not looked at: it came in plain text, is
// known not to be valid, or looking at it may fail again.
func unasked() []postern.Reason {
	return []postern.Reason{postern.InsecureTransport, postern.Unauthorized, postern.Internal}
}

// config sets huma up without its own routes, links and error texts.
func config(doc *huma.OpenAPI, transform huma.Transformer) huma.Config {
	c := huma.DefaultConfig(doc.Info.Title, doc.Info.Version)
	c.OpenAPI = doc
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil                         // they add $schema to every body
	c.AllowAdditionalPropertiesByDefault = true // answers may gain members; bodies of requests say no themselves
	format := huma.Format{Marshal: encode, Unmarshal: decode}
	c.Formats = map[string]huma.Format{spec.JSON: format, problem.ContentType: format}
	c.Transformers = []huma.Transformer{transform, encodeInTurn}
	return c
}

// encoded is the body of an answer.
type encoded []byte

// encodeInTurn encodes an answer and ends its turn, before the client is waited for.
func encodeInTurn(ctx huma.Context, _ string, v any) (any, error) {
	q := requestOf(ctx.Context())
	if q == nil || q.endTurn == nil {
		return v, nil
	}
	defer q.endTurn()
	b, err := postern.EncodeJSON(v)
	return encoded(b), err
}

// encode writes an answer with its length, which tells the front door that it is whole.
// A caller that left is no error of ours.
func encode(w io.Writer, v any) (err error) {
	b, done := v.(encoded)
	if !done {
		if b, err = postern.EncodeJSON(v); err != nil {
			return err
		}
	}
	if rw, ok := w.(http.ResponseWriter); ok {
		rw.Header().Set("Content-Length", strconv.Itoa(len(b)))
	}
	_, _ = w.Write(b) // the client may be gone, and nobody else reads the error
	return nil
}

// decode reads a body that [API.checkBody] has accepted.
func decode(b []byte, v any) error { return json.Unmarshal(b, v) }

// ownProblem replaces huma's error documents, which repeat what the caller
// sent, by ours.
func (a *API) ownProblem(ctx huma.Context, _ string, v any) (any, error) {
	if m, ok := v.(*huma.ErrorModel); ok {
		return a.problems.Document(obs.RequestOf(ctx.Context()), fromHuma(m)), nil
	}
	return v, nil
}

// The limits of requests.
const (
	// MaxBodyBytes is how large a JSON body may be; beyond it the answer is 413.
	MaxBodyBytes = 1 << 20

	maxKey = 255 // characters of an idempotency key

	bodyTimeout = 15 * time.Second // for a body of 1 MiB over a slow line
	streamWrite = 10 * time.Second // a reader of a stream that takes longer is gone
	streamPulse = 15 * time.Second // proxies close a silent stream after 30 s or more

	uploadWait    = 30 * time.Second // for the next part of an upload
	uploadTime    = time.Hour        // for all of it: 100 MiB at 30 kB per second
	uploadRetry   = 5 * time.Second  // after which there may be room for another upload
	maxUploads    = 8                // of a workspace at once
	maxAllUploads = 64               // of all workspaces at once
	maxEnvelope   = 64 << 10         // bytes of a form before its file, and after it

	maxStreams    = 100         // of a workspace at once
	maxAllStreams = 5000        // of all workspaces at once: half of the connections that a server has
	codeWait      = time.Second // until the first code of a link attempt, as it usually takes
	strikes       = 600         // refused credentials a minute from one address
	throttledKeys = 100_000     // keys and workspaces whose rate is remembered
)
