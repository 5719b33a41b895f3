package api

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/reference"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/go-json-experiment/json"
)

// API serves /v1 over one gateway.
type API struct {
	gateway   *gateway.Gateway
	log       *slog.Logger
	baseURL   string
	huma      huma.API
	mux       *http.ServeMux
	kinds     map[postern.Reason]kind
	scopes    map[string][]postern.Scope
	throttle  *throttle
	streams   openStreams
	transport Transport
	dashboard http.Handler
	pulse     time.Duration          // between heartbeats of a stream
	patience  time.Duration          // with a reader of a stream that takes nothing
	spec      func() ([]byte, error) // made when somebody asks first
}

// Options configure an API.
type Options struct {
	Gateway *gateway.Gateway
	Log     *slog.Logger // nil discards
	BaseURL string       // where callers reach the server; the start of a problem's type
	Version string       // of the program, for the document
	Sandbox bool         // the simulated network is on; the document says so

	LinkPages http.Handler // serves what is under /link/; nil serves nothing there
	Dashboard http.Handler // serves what is not the API's; nil serves nothing there

	Transport Transport // which requests may come in plain text; zero: those from this machine
}

// New makes an API. It fails when an operation and the table of scopes do not
// match: an operation that nobody gave scopes must not be served.
func New(opts Options) (*API, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	a := &API{
		gateway: opts.Gateway, log: opts.Log, baseURL: strings.TrimRight(opts.BaseURL, "/"),
		mux: http.NewServeMux(), kinds: kinds(), scopes: scopes(), throttle: newThrottle(), transport: opts.Transport, dashboard: opts.Dashboard, streams: openStreams{n: map[postern.WorkspaceID]int{}}, pulse: streamPulse, patience: streamWrite,
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
	if opts.LinkPages != nil {
		a.mux.Handle("/link/", opts.LinkPages)
	}
	return a, a.pages()
}

// Handler serves the API, and answers every other path with 404.
func (a *API) Handler() http.Handler { return http.HandlerFunc(a.serve) }

// config sets huma up without its own routes, links and error texts.
func (a *API) config(opts Options) huma.Config {
	c := huma.DefaultConfig("Postern", reference.Version())
	c.OpenAPI = document(opts)
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil                         // they add $schema to every body
	c.AllowAdditionalPropertiesByDefault = true // answers may gain members; bodies of requests say no themselves
	format := huma.Format{Marshal: encode, Unmarshal: decode}
	c.Formats = map[string]huma.Format{jsonType: format, problemType: format}
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
		return a.problem(requestOf(ctx.Context()), fromHuma(m)), nil
	}
	return v, nil
}
