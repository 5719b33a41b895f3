package ratelimit

import "net/netip"

// networkBits is the length of an IPv6 prefix that one caller can choose addresses
// from: providers give a home a /56.
const networkBits = 56

// Network is the name for all addresses that one caller can easily choose from: an
// IPv4 address by itself, and the /56 of an IPv6 address.
func Network(a netip.Addr) string {
	if a = a.Unmap(); !a.Is6() {
		return a.String()
	}
	return netip.PrefixFrom(a, networkBits).Masked().String()
}
