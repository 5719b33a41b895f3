package api

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"postern/internal/gateway"
	"postern/internal/obs"
	"postern/internal/postern"
	"postern/internal/problem"
	"postern/internal/reference"

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
	streams  openStreams
	pulse    time.Duration          // between heartbeats of a stream
	patience time.Duration          // with a reader of a stream that takes nothing
	spec     func() ([]byte, error) // made for the first request
}

// Options configure an API.
type Options struct {
	Gateway *gateway.Gateway
	Log     *slog.Logger // nil discards
	BaseURL string       // where callers reach the server; the start of a problem's type
	Version string       // of the program, for the document
	Sandbox bool         // the simulated network is on; the document says so
}

// New makes an API. It fails when an operation and the table of scopes do not
// match: an operation that nobody gave scopes must not be served.
func New(opts Options) (*API, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	limit, err := newThrottle()
	if err != nil {
		return nil, err
	}
	a := &API{
		gateway: opts.Gateway, log: opts.Log, baseURL: strings.TrimRight(opts.BaseURL, "/"),
		problems: problem.NewWriter(opts.BaseURL, opts.Log), mux: http.NewServeMux(), scopes: scopes(), throttle: limit,
		streams: openStreams{n: map[postern.WorkspaceID]int{}}, pulse: streamPulse, patience: streamWrite,
	}
	a.huma = humago.New(a.mux, a.config(opts))
	a.huma.UseMiddleware(a.guard)
	a.routes()
	if err := a.checkScopes(); err != nil {
		return nil, err
	}
	if err := a.describe(); err != nil {
		return nil, err
	}
	a.spec = sync.OnceValues(a.write)
	a.mux.HandleFunc("GET "+specPath, a.serveSpec)
	return a, nil
}

// Handler serves the API behind the front door, and answers every other path
// with 404.
func (a *API) Handler() http.Handler { return a.problems.Routed(a.mux) }

// TellRate announces, on an answer that names no rate yet, how many refused
// credentials the address has left.
func (a *API) TellRate(ctx context.Context, client netip.Addr, h http.Header) {
	if h["Ratelimit"] == nil { // the canonical form of the name
		a.throttle.tell(ctx, client, h)
	}
}

// config sets huma up without its own routes, links and error texts.
func (a *API) config(opts Options) huma.Config {
	c := huma.DefaultConfig("Postern", reference.Version())
	c.OpenAPI = document(opts)
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil                         // they add $schema to every body
	c.AllowAdditionalPropertiesByDefault = true // answers may gain members; bodies of requests say no themselves
	format := huma.Format{Marshal: encode, Unmarshal: decode}
	c.Formats = map[string]huma.Format{jsonType: format, problem.ContentType: format}
	c.Transformers = []huma.Transformer{a.ownProblem}
	return c
}

// encode writes an answer. That the caller is gone is no error of ours.
func encode(w io.Writer, v any) error {
	b, err := postern.EncodeJSON(v)
	if err == nil {
		_, _ = w.Write(b)
	}
	return err
}

// decode reads a body that [API.checkBody] has let through.
func decode(b []byte, v any) error { return json.Unmarshal(b, v) }

// ownProblem replaces huma's error documents, which repeat what the caller
// sent, by ours.
func (a *API) ownProblem(ctx huma.Context, _ string, v any) (any, error) {
	if m, ok := v.(*huma.ErrorModel); ok {
		return a.problems.Document(obs.RequestOf(ctx.Context()), fromHuma(m)), nil
	}
	return v, nil
}
