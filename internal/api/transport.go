package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"postern/internal/postern"
)

// Transport says which requests may come in plain text, and whose word on
// where a request comes from counts.
type Transport struct {
	Proxies  []netip.Prefix // networks whose X-Forwarded-* headers count
	Insecure bool           // plain requests may come from anywhere
}

// Client is where a request comes from: the connection's other end, or, behind
// proxies that are trusted, the last address that is none of theirs. It is
// invalid when the connection has no address.
func (t Transport) Client(r *http.Request) netip.Addr {
	client := addrOf(r.RemoteAddr)
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !t.trusts(client) {
			break
		}
		next := addrOf(strings.TrimSpace(hop))
		if !next.IsValid() {
			break
		}
		client = next
	}
	return client
}

func (t Transport) trusts(a netip.Addr) bool {
	return a.IsValid() && slices.ContainsFunc(t.Proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// admits tells whether a request may be served: it came by TLS, to us or to a
// proxy that is trusted, or never left this machine. Of several protocols that
// proxies name the last counts: it is the word of the one before us.
func (t Transport) admits(r *http.Request, client netip.Addr) bool {
	remote := addrOf(r.RemoteAddr)
	if t.Insecure || r.TLS != nil || remote.IsLoopback() && client == remote {
		return true
	}
	if !t.trusts(remote) {
		return false
	}
	named := strings.Split(strings.Join(r.Header["X-Forwarded-Proto"], ","), ",")
	return strings.EqualFold(strings.TrimSpace(named[len(named)-1]), "https")
}

// addrOf reads an address with or without a port.
func addrOf(s string) netip.Addr {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

func plainRefused() error {
	return postern.Errorf(postern.InsecureTransport, "requests from elsewhere come by HTTPS only; a key that was sent in plain text may have been read on its way: rotate it")
}

// PlainRefusal is the whole answer, as HTTP/1.1, to a request in plain text on
// a connection that is for TLS.
func (a *API) PlainRefusal() []byte {
	q := &request{id: postern.NewRequestID()}
	p := a.problem(q, plainRefused())
	body, err := postern.EncodeJSON(p)
	if err != nil {
		a.log.Error("encode a problem", "request_id", q.id, "error", err)
	}
	a.log.Info("request", "request_id", q.id, "status", p.Status, "reason", q.reason)
	h := http.Header{"Content-Type": {problemType}, "Request-Id": {q.id}, "Cache-Control": noStore, "X-Content-Type-Options": noSniff}
	a.throttle.tell(context.Background(), netip.Addr{}, h)
	resp := http.Response{
		StatusCode: p.Status, ProtoMajor: 1, ProtoMinor: 1, Header: h, Close: true,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	var b bytes.Buffer
	if err := resp.Write(&b); err != nil {
		a.log.Error("write a refusal", "request_id", q.id, "error", err)
	}
	return b.Bytes()
}
