package api

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"postern/internal/access"
	"postern/internal/api/schema"
	"postern/internal/api/spec"
	"postern/internal/gateway"
	"postern/internal/obs"
	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// request is what the API knows about a request that it serves.
type request struct {
	*obs.Request

	authorization string               // the header, "" when it is not given exactly once
	caller        access.Caller        // whose key it is
	idem          *gateway.Idempotency // nil: a repetition is a new request
	w             http.ResponseWriter  // of an operation that reads its body itself
	r             *http.Request        // of that operation
	permit        func() error         // checks the key again; see stillPermitted
	endTurn       func()               // ends the workspace's turn; nil when the request keeps none
}

type requestKey struct{}

// requestOf returns the request that ctx belongs to. The guard puts one into
// the context of every operation.
func requestOf(ctx context.Context) *request {
	q, _ := ctx.Value(requestKey{}).(*request)
	return q
}

// guard runs before every operation. It checks the key before anything else, and
// keeps from huma what huma would misread.
func (a *API) guard(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	q, op := &request{Request: obs.RequestOf(r.Context()), w: w, r: r}, ctx.Operation()
	q.permit = func() error { return a.stillPermitted(r.Context(), q, op) }
	err := a.admit(w, r, q, op)
	if err == nil {
		err = a.checkRequest(w, r, q, op)
	}
	if err != nil {
		a.problems.Refuse(w, q.Request, err)
		return
	}
	if mayCompress(op) {
		w.Header().Set("Vary", "Accept-Encoding")
	}
	read := gateway.ReadFor(context.WithValue(ctx.Context(), requestKey{}, q), q.caller.Workspace())
	if readsJSON(op) {
		read, q.endTurn = gateway.KeepTurn(read)
		defer q.endTurn()
	}
	next(huma.WithContext(ctx, read))
}

// readsJSON tells whether an operation reads something from the database and encodes it. A
// stream, which lasts, does not count.
func readsJSON(op *huma.Operation) bool {
	return op.Method == http.MethodGet && slices.Contains(spec.AnswerTypes(op), spec.JSON)
}

// admit checks the key, the plan, the scopes and the rate. A request is counted
// before its scopes are checked, so that every answer to a key announces the rate;
// a missing scope is still reported first.
func (a *API) admit(w http.ResponseWriter, r *http.Request, q *request, op *huma.Operation) error {
	if values := r.Header["Authorization"]; len(values) == 1 {
		q.authorization = values[0]
	}
	caller, err := a.gateway.Keys.Authenticate(r.Context(), q.authorization)
	if err != nil {
		if strings.Contains(r.URL.RawQuery, "pst_") {
			a.log.WarnContext(r.Context(), "a key came in a URL, where others can read it; revoke it", "request_id",
				q.ID)
		}
		if postern.ReasonOf(err) == postern.Unauthorized {
			return cmp.Or(a.throttle.strike(r.Context(), q.Client, w.Header()), err)
		}
		return err
	}
	q.caller, q.Workspace, q.KeyID = caller, string(caller.Workspace()), string(caller.Key.ID)
	if err := caller.Permit(); err != nil {
		return err
	}
	limited := a.throttle.take(r.Context(), caller, w.Header())
	if err := caller.Permit(a.scopes[op.OperationID]...); err != nil {
		return err
	}
	return limited
}

// checkRequest checks the form of a request: the types it accepts, its query, its
// body and its idempotency key.
func (a *API) checkRequest(w http.ResponseWriter, r *http.Request, q *request, op *huma.Operation) error {
	if offers := spec.AnswerTypes(op); len(offers) > 0 && !accepts(r.Header["Accept"], offers) {
		return postern.Errorf(postern.NotAcceptable,
			"the Accept header excludes the type of the response, %s", strings.Join(offers, " or "))
	}
	r.Header.Set("Accept", spec.JSON) // decided; huma's own parser panics on some values
	if err := checkQuery(op, r.URL.RawQuery); err != nil {
		return err
	}
	hash, err := a.checkBody(w, r, op)
	if err == nil && op.RequestBody != nil {
		err = q.permit()
	}
	if err != nil || !spec.TakesKey(op) {
		return err
	}
	key, err := idempotencyKey(r.Header[spec.IdempotencyKey])
	if key != "" {
		q.idem = &gateway.Idempotency{Method: r.Method, Path: r.URL.Path, Key: key, Hash: hash}
	}
	return err
}

// stillPermitted checks the key again after a body, which takes as long to arrive as its sender likes: a key that was
// revoked meanwhile must do nothing any more.
func (a *API) stillPermitted(ctx context.Context, q *request, op *huma.Operation) (err error) {
	if q.caller, err = a.gateway.Keys.Authenticate(ctx, q.authorization); err != nil {
		return err
	}
	return q.caller.Permit(a.scopes[op.OperationID]...)
}

// checkQuery refuses parameters that the operation does not have, and ambiguous
// ones: given twice, empty, or not text.
func checkQuery(op *huma.Operation, raw string) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return postern.Errorf(postern.MalformedRequest,
			"the query is not a list of name=value pairs in percent-encoding")
	}
	var bad []error
	for name, list := range values {
		switch {
		case !plainText(name) || slices.ContainsFunc(list, func(v string) bool { return !plainText(v) }):
			return postern.Errorf(postern.MalformedRequest,
				"the query contains text that is not UTF-8, or the character NUL")
		case !slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.In == "query" && p.Name == name }):
			bad = append(bad, postern.Invalid("/query"+postern.Step(name), "there is no such parameter"))
		case len(list) > 1:
			bad = append(bad, postern.Invalid("/query"+postern.Step(name),
				"the parameter is given more than once; give it once"))
		case list[0] == "":
			bad = append(bad, postern.Invalid("/query"+postern.Step(name),
				"the parameter is empty; give it a value or leave it out"))
		}
	}
	return schema.Merge(bad)
}

func plainText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// accepts tells whether a caller accepts one of the offered media types (RFC 9110,
// 12.5.1). Without an Accept header it accepts all; of several ranges, the most
// specific one counts.
func accepts(header, offers []string) bool {
	ranges := strings.Split(strings.Join(header, ","), ",")
	if strings.TrimSpace(strings.Join(ranges, "")) == "" {
		return true
	}
	return slices.ContainsFunc(offers, func(offer string) bool { return quality(ranges, offer) > 0 })
}

func quality(ranges []string, offer string) float64 {
	main, _, _ := strings.Cut(offer, "/")
	best, q := 0, 0.0
	for _, r := range ranges {
		name, params, _ := strings.Cut(r, ";")
		rank := slices.Index([]string{"*/*", main + "/*", offer}, strings.ToLower(strings.TrimSpace(name))) + 1
		if rank > best {
			best, q = rank, weight(params)
		}
	}
	return q
}

// weight returns the q of a range's parameters; 1 when it has none, or one that
// cannot be parsed.
func weight(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			if q, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
				return q
			}
		}
	}
	return 1
}
