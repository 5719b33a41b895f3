package egress

import (
	"context"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// guard decides which addresses may be reached. The zero guard allows all addresses.
type guard struct {
	public *ssrf.Guardian
}

func newGuard(opts Options) guard {
	if opts.AllowPrivate {
		return guard{}
	}
	var v4, v6 []netip.Prefix
	for _, p := range opts.Networks {
		if p.Addr().Is4() {
			v4 = append(v4, p.Masked())
		} else {
			v6 = append(v6, p.Masked())
		}
	}
	return guard{ssrf.New(
		ssrf.WithAnyPort(),
		ssrf.WithAllowedV4Prefixes(v4...),
		ssrf.WithAllowedV6Prefixes(v6...),
		// Azure's host agent answers every virtual machine on this public address.
		ssrf.WithDeniedV4Prefixes(netip.PrefixFrom(netip.AddrFrom4([4]byte{168, 63, 129, 16}), 32)),
	)}
}

// control checks the address of every dial after the name was resolved and before
// the first packet, so that a refused address is never contacted.
func (g guard) control(_ context.Context, network, address string, c syscall.RawConn) error {
	if g.public == nil {
		return nil
	}
	if err := g.public.Safe(network, address, c); err != nil {
		return &Error{Blocked, err}
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return &Error{Blocked, err}
	}
	return g.check(at.Addr())
}

// check returns an error if an address must not be reached.
func (g guard) check(ip netip.Addr) error {
	if g.public == nil {
		return nil
	}
	if err := g.public.SafeAddr(ip); err != nil {
		return &Error{Blocked, err}
	}
	if inner, ok := isatap(ip); ok {
		return g.check(inner)
	}
	return nil
}

// isatap returns the IPv4 address inside an ISATAP address (RFC 5214). Such an
// address has any prefix, and an interface identifier that consists of 0:5efe or
// 200:5efe and the IPv4 address.
func isatap(ip netip.Addr) (inner netip.Addr, ok bool) {
	if !ip.Is6() {
		return inner, false
	}
	b := ip.As16()
	ok = b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
	return netip.AddrFrom4([4]byte(b[12:])), ok
}
