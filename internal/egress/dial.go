package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// dialer makes connections; every one passes the guard in net's hook.
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

// dialTLS makes the handshake itself, so that what goes wrong in it is known
// to be that.
func (d dialer) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &Error{Connect, err}
	}
	raw, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	// net/http lets a dial go on when its request has ended: it needs a bound of its own.
	ctx, cancel := context.WithTimeout(ctx, d.net.Timeout)
	defer cancel()
	cfg := d.tls.Clone()
	cfg.ServerName = host
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
