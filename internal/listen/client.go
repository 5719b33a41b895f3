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
	answerTimeout = 30 * time.Second // for a request other than the stream
	maxProblem    = 64 << 10         // bytes read of an error response
	streamType    = "text/event-stream"
)

// client calls the API with one key.
type client struct {
	transport http.RoundTripper // follows no redirect: the key is for one server only
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

// first reads the oldest event of the log. Its data is nil if the log is empty. A page may be empty although there is a
// next one.
func (c *client) first(ctx context.Context) (m message, err error) {
	for cursor := ""; ; {
		page, err := c.page(ctx, cursor)
		if err != nil || len(page.Data) == 0 && page.Next == "" {
			return m, err
		}
		if len(page.Data) > 0 {
			e := read(page.Data[0])
			return message{id: e.EventID, name: e.Type, data: page.Data[0]}, nil
		}
		cursor = page.Next
	}
}

// eventPage is a page of the log.
type eventPage struct {
	Data []json.RawMessage `json:"data"` // the bytes exactly as sent
	Next string            `json:"nextCursor"`
}

// page reads a page with one event: the first page, or the one at a cursor.
func (c *client) page(ctx context.Context, cursor string) (p eventPage, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	query := url.Values{"limit": {"1"}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	maps.Copy(query, c.filter)
	res, err := c.get(ctx, "/v1/events?"+query.Encode(), http.Header{"Accept": {"application/json"}})
	if err != nil {
		return p, err
	}
	defer res.Body.Close()
	return p, json.NewDecoder(io.LimitReader(res.Body, maxEvent)).Decode(&p)
}

// errSilent ends a connection on which nothing has arrived for too long.
var errSilent = fmt.Errorf("the server has sent nothing for %s", silence)

// errBuffered ends a stream whose beginning does not arrive, although the response has begun.
var errBuffered = errors.New("the response has begun, but nothing of the stream arrives: a proxy in between collects " +
	"the response; turn its buffering off for this server (nginx: proxy_buffering off)")

// stream follows the log after the given event; "" follows new events only.
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

// get makes a request. A response other than 200 with the accepted content type
// is returned as a *refusal.
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

// refusal is an error response, or one that does not come from Postern's API.
type refusal struct {
	Status     int
	Reason     postern.Reason // "" if the response is not a problem document
	Detail     string
	RetryAfter time.Duration
}

// refusal reads an error response. The server may be anyone, so its text is shown
// without the key and without terminal control characters.
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
