package app

import (
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
	// certificateLook is how often the files of the certificate are looked at,
	// while clients come.
	certificateLook = time.Second
	// lingerTime is how long a client that spoke in plain text has to read the
	// refusal.
	lingerTime = time.Second
)

// certificate is the server's certificate, reloaded when its files change. Existing
// connections stay open; the next handshake uses the new one.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu     sync.Mutex
	looked time.Time
	stamp  string // of the files when they were read last
	pair   *tls.Certificate
}

// loadCertificate reads the files. A problem with them is an error now, and only a warning
// later.
func loadCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log, stamp: stampOf(certFile, keyFile), looked: time.Now()}
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

// look reloads the files if they have changed. While they do not match, because only one
// has been written yet, the old pair stays in use.
func (c *certificate) look() {
	stamp := stampOf(c.certFile, c.keyFile)
	if stamp == c.stamp {
		return
	}
	c.stamp = stamp
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		c.log.Warn("the certificate changed and cannot be used; the old one stays", "error", err)
		return
	}
	c.pair = &pair
	c.log.Info("the certificate was read again")
}

// stampOf changes with the files.
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

// config is the TLS configuration of a server: TLS 1.2 or later, and for 1.2 only cipher
// suites with authenticated encryption.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: c.get, NextProtos: []string{"h2", "http/1.1"},
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
	}
}

// tlsListener accepts connections with TLS, and refuses unencrypted ones with an HTTP
// response.
type tlsListener struct {
	net.Listener
	config *tls.Config
	refuse func() []byte
}

// Accept returns the next connection.
func (l *tlsListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tls.Server(&firstByte{Conn: c, refuse: l.refuse}, l.config), nil
}

// handshakeRecord is the first byte of TLS (RFC 8446, 5.1); no HTTP request
// begins with it.
const handshakeRecord = 22

// firstByte peeks at the first byte of a connection.
type firstByte struct {
	net.Conn
	refuse func() []byte
	seen   bool
}

// Read reads from the connection. An unencrypted connection is refused, and then at its
// end.
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

// answer writes the refusal and reads what is under way, because a connection that is
// closed with unread data is reset, and the client might never see the answer.
func (c *firstByte) answer() {
	_ = c.SetDeadline(time.Now().Add(lingerTime)) // the client may be gone, here as below
	_, _ = c.Write(c.refuse())
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(c.Conn, 1<<20))
}
