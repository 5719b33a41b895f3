package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// dialer makes connections. Each passes the guard in the hook of package net.
type dialer struct {
	net net.Dialer
	tls *tls.Config
}

func (d dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.net.DialContext(ctx, network, address)
	if err != nil {
		return nil, &Error{dialReason(err), err}
	}
	return conn, nil
}

// dialTLS makes a connection for HTTP/1 only.
func (d dialer) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn, err := d.handshake(ctx, raw, address, "http/1.1")
	if err != nil {
		return nil, err // not conn: a nil pointer in an interface is not nil
	}
	return conn, nil
}

// handshake begins TLS on a connection and offers the protocols, the preferred
// one first. Its errors are known to be those of the handshake, because it does
// not leave it to net/http. It closes the connection when it fails.
func (d dialer) handshake(ctx context.Context, raw net.Conn, address string, protocols ...string) (*tls.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &Error{Connect, errors.Join(err, raw.Close())}
	}
	// net/http lets a dial go on when its request has ended: it needs a bound of its own.
	ctx, cancel := context.WithTimeout(ctx, d.net.Timeout)
	defer cancel()
	cfg := d.tls.Clone()
	cfg.ServerName, cfg.NextProtos = host, protocols
	conn := tls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		reason := TLS
		if isTimeout(err) {
			reason = Timeout
		}
		return nil, &Error{reason, errors.Join(err, raw.Close())}
	}
	return conn, nil
}
