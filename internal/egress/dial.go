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
	return &line{Conn: conn}, nil
}

// line is a connection that remembers what came on it, for whoever reads.
type line struct {
	net.Conn

	heard  bool  // anything, in this exchange
	failed error // what ended it
}

// Read reads, and notes what came.
func (l *line) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	l.heard = l.heard || n > 0
	if err != nil {
		l.failed = err
	}
	return n, err
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
	return &line{Conn: conn}, nil
}
