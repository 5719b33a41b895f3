package listen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
)

const (
	answerTimeout = 30 * time.Second // of a request that is no stream
	maxProblem    = 64 << 10         // read of a refusal
	streamType    = "text/event-stream"
)

// client calls the API with one key.
type client struct {
	transport http.RoundTripper // follows no redirect: the key is for one server
	base, key string
	filter    url.Values
}

func newClient(o Options) *client {
	c := &client{
		transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, DisableCompression: true},
		base:      o.base(), key: o.key(), filter: url.Values{},
	}
	if len(o.Types) > 0 {
		c.filter.Set("type", strings.Join(o.Types, ","))
	}
	if o.Device != "" {
		c.filter.Set("deviceId", o.Device)
	}
	return c
}

func (c *client) close() {
	if t, ok := c.transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// first reads the oldest event of the log; its data is nil when there is none.
func (c *client) first(ctx context.Context) (m message, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	query := url.Values{"limit": {"1"}}
	maps.Copy(query, c.filter)
	res, err := c.get(ctx, "/v1/events?"+query.Encode(), http.Header{"Accept": {"application/json"}})
	if err != nil {
		return m, err
	}
	defer res.Body.Close()
	var list struct {
		Data []json.RawMessage `json:"data"` // the bytes as they were sent
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxEvent)).Decode(&list); err != nil || len(list.Data) == 0 {
		return m, err
	}
	e := read(list.Data[0])
	return message{id: e.EventID, name: e.Type, data: list.Data[0]}, nil
}

// errSilent ends a connection that shows no sign of life.
var errSilent = fmt.Errorf("no sign of life from the server for %s", silence)

// stream follows the log behind an event; "" is from now on.
func (c *client) stream(ctx context.Context, after string) (*stream, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(silence, func() { cancel(errSilent) })
	header := http.Header{"Accept": {streamType}}
	if after != "" {
		header.Set("Last-Event-ID", after)
	}
	res, err := c.get(ctx, "/v1/events/stream?"+c.filter.Encode(), header) //nolint:bodyclose // closed with the stream
	watch.Stop()
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		err = errSilent
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	return newStream(res.Body, watch, cancel), nil
}

// get makes a request and gives its answer if that is of the kind accepted.
func (c *client) get(ctx context.Context, target string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+target, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header = header
	req.Header.Set("Authorization", "Bearer "+c.key)
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), header.Get("Accept")) {
		defer res.Body.Close()
		return nil, c.refusal(res)
	}
	return res, nil
}

// refusal is an answer that is not the one asked for.
type refusal struct {
	Status     int
	Reason     postern.Reason // "" when the answer is no problem document
	Detail     string
	RetryAfter time.Duration
}

// refusal reads an answer. Nobody knows who answers there: what it says is
// shown without the key, and without what a terminal would obey.
func (c *client) refusal(res *http.Response) *refusal {
	r := &refusal{Status: res.StatusCode, RetryAfter: egress.RetryAfter(res.Header.Get("Retry-After"), time.Now())}
	var p struct {
		Type   string          `json:"type"`
		Detail string          `json:"detail"`
		Errors []postern.Field `json:"errors"`
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxProblem))
	if err != nil || json.Unmarshal(body, &p) != nil || p.Type == "" {
		return r
	}
	e := postern.Error{Detail: p.Detail, Fields: p.Errors}
	r.Reason = postern.Reason(p.Type[strings.LastIndexByte(p.Type, '/')+1:])
	r.Detail = printable(strings.ReplaceAll(e.Error(), c.key, "***"))
	return r
}
