package web

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Transport says which requests may come in plain text, and which proxies are
// trusted to name the address of a client.
type Transport struct {
	Proxies  []netip.Prefix // networks whose X-Forwarded-* headers count
	Insecure bool           // plain requests may come from anywhere
}

// Client returns the address that a request comes from: the other end of the
// connection or, behind trusted proxies, the last address that belongs to none
// of them. It is invalid when the connection has no address.
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
// trusted proxy, or it never left this machine. When proxies name several
// protocols, the last one counts: the proxy next to us wrote it.
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

// addrOf parses an address with or without a port; invalid text gives an invalid
// address.
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
