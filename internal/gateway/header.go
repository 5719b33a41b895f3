package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"postern/internal/postern"
	"postern/internal/seal"
)

// ours lists the headers that an endpoint's own headers may not replace, in addition to
// those that start with "webhook-".
func ours() []string {
	return []string{
		"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host",
		"Keep-Alive",
		"Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent",
		"X-Service-Signature",
	}
}

// checkHeaderCount refuses more headers than an endpoint may have.
func checkHeaderCount(n int) error {
	if n > maxEndpointHeaders {
		return postern.Invalid("/headers", "add at most %d headers", maxEndpointHeaders)
	}
	return nil
}

func checkHeaders(headers map[string]string) error {
	seen := map[string]bool{}
	for name, value := range headers {
		canonical, place := textproto.CanonicalMIMEHeaderKey(name), "/headers"+postern.Step(name)
		if seen[canonical] {
			return postern.Invalid(place, "the header %s is given twice", canonical)
		}
		seen[canonical] = true
		switch {
		case !headerName(name):
			return postern.Invalid(place, "a header name may contain only letters, digits and hyphens")
		case slices.Contains(ours(), canonical) || strings.HasPrefix(canonical, "Webhook-"):
			return postern.Invalid(place, "headers that the delivery itself sets cannot be replaced")
		case len(value) > maxHeaderValue || !visible(value):
			return postern.Invalid(
				place, "a header value may have at most %d visible ASCII characters", maxHeaderValue,
			)
		}
	}
	return nil
}

// visible tells whether s is visible ASCII, with spaces.
func visible(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

func headerName(s string) bool {
	return s != "" && len(s) <= 100 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
	})
}

// SealHeaders gives an endpoint its own headers. Only their names can be read afterwards.
func SealHeaders(box *seal.Box, e *postern.Endpoint, headers map[string]string) error {
	named := map[string]string{}
	for name, value := range headers {
		named[textproto.CanonicalMIMEHeaderKey(name)] = value
	}
	e.Headers, e.HeaderValues = append([]string{}, slices.Sorted(maps.Keys(named))...), nil
	if len(named) == 0 {
		return nil
	}
	text, err := json.Marshal(named)
	if err != nil {
		return fmt.Errorf("write the headers of an endpoint: %w", err)
	}
	e.HeaderValues = box.Seal(text, e.ID.HeadersPlace())
	return nil
}

func (g Webhooks) openHeaders(e *postern.Endpoint) (headers map[string]string, err error) {
	headers = map[string]string{}
	if len(e.HeaderValues) == 0 {
		return headers, nil
	}
	text, err := g.box.Open(e.HeaderValues, e.ID.HeadersPlace())
	if err == nil && json.Unmarshal(text, &headers) != nil {
		err = errors.New("they are not JSON") // the cause would show a part of them
	}
	if err != nil {
		return nil, fmt.Errorf("open the headers of an endpoint: %w", err)
	}
	return headers, nil
}

// givenHeaders returns the headers that a change names; those that it removes have no value.
func givenHeaders(c Change[map[string]Change[string]]) map[string]string {
	headers := map[string]string{}
	if c.Value == nil {
		return headers
	}
	for name, value := range *c.Value {
		headers[name] = value.or("", "")
	}
	return headers
}

// changeHeaders applies a change to the own headers of an endpoint: those that it does not
// name keep their values. Kept values are not sent to another host, because a member who
// changes the URL could read them there.
func (g Webhooks) changeHeaders(e *postern.Endpoint, in EndpointChange) error {
	moved := in.URL != "" && !sameHost(in.URL, e.URL) && !sameHost(in.URL, string(e.PendingURL))
	if !in.Headers.Given && (!moved || len(e.Headers) == 0) {
		return nil
	}
	was, err := g.openHeaders(e)
	if err != nil {
		return err
	}
	change := canonical(in.Headers)
	now := mergeLabels(was, change)
	if moved {
		if kept := keptHeaders(now, change); len(kept) > 0 {
			return postern.Invalid("/headers", "the values of %s are not sent to another host; "+
				"give them again together with the new URL, or remove the headers", strings.Join(kept, ", "))
		}
	}
	if err := checkHeaderCount(len(now)); err != nil || maps.Equal(was, now) {
		return err
	}
	return SealHeaders(g.box, e, now)
}

// canonical returns the change with the names of headers in their canonical form.
func canonical(c Change[map[string]Change[string]]) Change[map[string]Change[string]] {
	if c.Value == nil {
		return c
	}
	named := make(map[string]Change[string], len(*c.Value))
	for name, value := range *c.Value {
		named[textproto.CanonicalMIMEHeaderKey(name)] = value
	}
	return Change[map[string]Change[string]]{Given: true, Value: &named}
}

// keptHeaders returns the names of headers whose values the change does not give.
func keptHeaders(now map[string]string, c Change[map[string]Change[string]]) (names []string) {
	given := c.or(nil, nil)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, ok := given[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

// sameHost reports whether two URLs have the same scheme, host and port.
func sameHost(a, b string) bool {
	x, err := url.Parse(a)
	y, err2 := url.Parse(b)
	return err == nil && err2 == nil && x.Scheme == y.Scheme && strings.EqualFold(x.Host, y.Host)
}
