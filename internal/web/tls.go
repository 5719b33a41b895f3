package web

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// certificateLook is the shortest time between two checks whether the files of
	// the certificate have changed. Only a handshake checks.
	certificateLook = time.Second
	// lingerTime is how long a client that spoke plain text has to read the refusal.
	lingerTime = time.Second
)

// certificate is the certificate of the server, read again when its files
// change. Connections stay open; the next handshake uses the new one.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu     sync.Mutex
	looked time.Time
	stamp  string // of the files when they were last read
	pair   *tls.Certificate
}

// loadCertificate reads the files. Files that cannot be used are an error now,
// and a warning once the server runs.
func loadCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{
		certFile: certFile, keyFile: keyFile, log: log, stamp: stampOf(certFile, keyFile),
		looked: time.Now(),
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read POSTERN_TLS_CERT_FILE and POSTERN_TLS_KEY_FILE: %w", err)
	}
	c.pair = &pair
	return c, nil
}

// get returns the certificate for a handshake.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= certificateLook {
		c.looked = now
		c.look()
	}
	return c.pair, nil
}

// look reads the files again when they have changed. While they do not match,
// because only one of them is written yet, the old pair stays in use.
func (c *certificate) look() {
	stamp := stampOf(c.certFile, c.keyFile)
	if stamp == c.stamp {
		return
	}
	c.stamp = stamp
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		c.log.Warn("the certificate changed and cannot be used; the old one stays in use", "error", err)
		return
	}
	c.pair = &pair
	c.log.Info("the certificate was read again")
}

// stampOf returns a text that changes when a file does.
func stampOf(files ...string) (stamp string) {
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			stamp += " " + err.Error()
			continue
		}
		stamp += fmt.Sprintf(" %d %d", info.ModTime().UnixNano(), info.Size())
	}
	return stamp
}

// config is for a server: TLS 1.2 or later, and of the suites of 1.2 only those
// that encrypt and authenticate in one step.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: c.get, NextProtos: []string{"h2", "http/1.1"},
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
	}
}

// SecureListener returns a listener whose connections speak TLS with the
// certificate of two files, which are read again when they change. A connection
// that speaks plain text gets what refuse returns and is closed.
func SecureListener(
	l net.Listener, certFile, keyFile string, log *slog.Logger, refuse func() []byte,
) (net.Listener, error) {
	c, err := loadCertificate(certFile, keyFile, log)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background()) // ends with Close
	return &tlsListener{
		Listener: l, config: c.config(), refuse: refuse, log: log, ready: make(chan accepted), open: ctx, stop: stop,
	}, nil
}

// tlsListener accepts connections that speak TLS and refuses those that speak
// plain text. The handshakes are done before a connection is returned, each on its own.
type tlsListener struct {
	net.Listener
	config *tls.Config
	refuse func() []byte
	log    *slog.Logger

	start sync.Once
	ready chan accepted
	open  context.Context //nolint:containedctx // of the listener itself
	stop  context.CancelFunc
	parts sync.WaitGroup
}

// accepted is what Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

// Accept returns the next connection whose handshake is done.
func (l *tlsListener) Accept() (net.Conn, error) {
	l.start.Do(func() { l.parts.Go(l.run) })
	select {
	case a := <-l.ready:
		return a.conn, a.err
	case <-l.open.Done():
		return nil, net.ErrClosed
	}
}

// Close ends the listener and the handshakes that are under way.
func (l *tlsListener) Close() error {
	l.stop()
	err := l.Listener.Close()
	l.parts.Wait()
	return err
}

// run accepts connections until the listener is closed. An error waits for a caller of
// Accept, who knows when to try again.
func (l *tlsListener) run() {
	for l.open.Err() == nil {
		c, err := l.Listener.Accept()
		if err != nil {
			l.give(accepted{err: err})
			continue
		}
		l.parts.Go(func() { l.shake(c) })
	}
}

// give returns false when the listener was closed before anyone took the connection.
func (l *tlsListener) give(a accepted) bool {
	select {
	case l.ready <- a:
		return true
	case <-l.open.Done():
		return false
	}
}

// shake does the handshake of a connection.
func (l *tlsListener) shake(c net.Conn) {
	ctx, cancel := context.WithTimeout(l.open, readHeaderTimeout)
	defer cancel()
	secure := tls.Server(&firstByte{Conn: c, refuse: l.refuse}, l.config)
	err := secure.HandshakeContext(ctx)
	if err != nil {
		l.log.Debug("a handshake failed", "error", err)
	}
	if err != nil || !l.give(accepted{conn: secure}) {
		_ = c.Close() // the client may be gone
	}
}

// handshakeRecord is the first byte of a TLS connection (RFC 8446, 5.1). No HTTP
// request begins with it.
const handshakeRecord = 22

// firstByte is a connection that checks its first byte.
type firstByte struct {
	net.Conn
	refuse func() []byte
	seen   bool
}

// Read reads. A connection in plain text is refused, and then ends.
func (c *firstByte) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.seen || n == 0 {
		return n, err
	}
	c.seen = true
	if b[0] == handshakeRecord {
		return n, err
	}
	c.answer()
	return 0, io.EOF
}

// answer writes the refusal and reads what is still on its way: a connection that
// is closed with unread data is reset, and the client might never see the answer.
func (c *firstByte) answer() {
	_ = c.SetDeadline(time.Now().Add(lingerTime)) // the client may be gone, here as below
	_, _ = c.Write(c.refuse())
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(c.Conn, 1<<20))
}
