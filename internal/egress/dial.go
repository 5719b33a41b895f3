package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// dialer makes connections. The guard checks each one in the control hook of
// [net.Dialer].
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

// dialTLS makes a TLS connection that offers only HTTP/1.1.
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

// handshake makes the TLS handshake on a connection and offers the protocols, the
// preferred one first. It closes the connection on failure. The handshake is made
// here and not in net/http so that its errors can be told from other ones.
func (d dialer) handshake(ctx context.Context, raw net.Conn, address string, protocols ...string) (*tls.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &Error{Connect, errors.Join(err, raw.Close())}
	}
	// net/http continues a dial after its request has ended, so the handshake needs
	// its own time-out.
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
