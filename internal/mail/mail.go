// Package mail submits mail to one server (RFC 5321, RFC 6409). It waits for the
// server's word and keeps nothing: what is not taken was not sent.
package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"postern/internal/seal"
)

const patience = 15 * time.Second // with the server, for one mail

// Server is a mail server that takes mail from here.
type Server struct {
	addr  string // host and port
	host  string // as its certificate has it
	tls   bool   // from the first byte
	plain bool   // never
	auth  smtp.Auth
	from  mail.Address
	roots *x509.CertPool // nil are the system's
}

// RefusedError is the word of a server that does not take a mail for its recipient, and
// would not take it later either.
type RefusedError struct{ Code int }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the mail server does not accept mail for this address (%d)", e.Code)
}

// New reads the address of a server: smtp://user:password@host:587?from=… begins
// in plain text and goes on encrypted, smtps://… is encrypted from its first byte
// (RFC 8314). Without a port it is 587 and 465. With tls=off, and to this machine,
// mail goes in plain text, for relays in a network of one's own.
func New(address seal.Secret) (*Server, error) {
	u, err := url.Parse(address.Reveal())
	if err != nil || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Path != "" && u.Path != "/" {
		return nil, errors.New("it must have the form smtp://user:password@mail.example.com:587?from=postern@example.com; " +
			"percent-encode special characters in the user and password, for example @ as %40")
	}
	s := &Server{host: u.Hostname(), tls: u.Scheme == "smtps", plain: u.Query().Get("tls") == "off"}
	from, err := mail.ParseAddress(u.Query().Get("from"))
	if err != nil {
		return nil, errors.New("it must end with the sender's email address, for example ?from=postern@example.com")
	}
	if s.plain && (s.tls || u.User != nil) {
		return nil, errors.New("tls=off is for smtp:// without a user: a password is never sent in plain text")
	}
	s.from, s.addr = mail.Address{Name: "Postern", Address: from.Address}, net.JoinHostPort(s.host, port(u))
	if from.Name != "" {
		s.from.Name = from.Name
	}
	if u.User != nil {
		password, _ := u.User.Password()
		s.auth = smtp.PlainAuth("", u.User.Username(), password, s.host)
	}
	return s, nil
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "smtps":
		return "465"
	default:
		return "587"
	}
}

// Trust has the server's certificate checked against these authorities instead of
// the system's.
func (s *Server) Trust(roots *x509.CertPool) { s.roots = roots }

// Send submits one mail. A [*RefusedError] means that its recipient is the reason why it
// was not taken; any other error that it may be later.
func (s *Server) Send(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	raw, err := m.compose(s.from, time.Now())
	if err != nil {
		return err
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return fmt.Errorf("reach the mail server: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	c, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return fmt.Errorf("meet the mail server: %w", err)
	}
	if err := c.Hello(literal(conn.LocalAddr())); err != nil {
		return fmt.Errorf("greet the mail server: %w", err)
	}
	return s.submit(c, m.To, raw)
}

// literal is what a client calls itself that has no name (RFC 5321, 4.1.4): some
// servers take no "localhost".
func literal(local net.Addr) string {
	host, _, _ := net.SplitHostPort(local.String())
	host, _, _ = strings.Cut(host, "%") // the zone means nothing to others
	if strings.Contains(host, ":") {
		host = "IPv6:" + host
	}
	return "[" + host + "]"
}

func (s *Server) dial(ctx context.Context) (net.Conn, error) {
	if s.tls {
		return (&tls.Dialer{Config: s.config()}).DialContext(ctx, "tcp", s.addr)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", s.addr)
}

func (s *Server) config() *tls.Config {
	return &tls.Config{ServerName: s.host, RootCAs: s.roots, MinVersion: tls.VersionTLS12}
}

// submit says what RFC 5321 asks for, and waits until the server has the mail.
func (s *Server) submit(c *smtp.Client, to string, raw []byte) error {
	if err := s.secure(c); err != nil {
		return err
	}
	if err := s.signIn(c); err != nil {
		return err
	}
	if err := c.Mail(s.from.Address); err != nil {
		return fmt.Errorf("the mail server refuses the sender: %w", err)
	}
	if err := c.Rcpt(to); err != nil {
		return refused(err)
	}
	w, err := c.Data()
	if err == nil {
		_, err = w.Write(raw)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return fmt.Errorf("the mail server does not take the mail: %w", bare(err))
	}
	_ = c.Quit() // it has the mail
	return nil
}

// secure goes on encrypted. A mail carries a link that lets somebody in: to another
// machine it does not go in plain text unasked.
func (s *Server) secure(c *smtp.Client) error {
	if s.tls || s.plain {
		return nil
	}
	if ok, _ := c.Extension("STARTTLS"); ok {
		if err := c.StartTLS(s.config()); err != nil {
			return fmt.Errorf("go on encrypted with the mail server: %w", err)
		}
		return nil
	}
	if s.auth != nil {
		return errors.New("the mail server does not offer STARTTLS, and a password is never sent in plain text")
	}
	if ip := net.ParseIP(s.host); s.host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return errors.New("the mail server does not offer STARTTLS; add &tls=off to send in plain text within a network of " +
		"your own")
}

func (s *Server) signIn(c *smtp.Client) error {
	if s.auth == nil {
		return nil
	}
	if ok, _ := c.Extension("AUTH"); !ok {
		return errors.New("the mail server offers no sign-in; leave the user and the password out of its address")
	}
	if err := c.Auth(s.auth); err != nil {
		return fmt.Errorf("sign in at the mail server: %w", bare(err))
	}
	return nil
}

// bare leaves the number of a server's word. Its text may repeat what the server was
// sent, the password and links among it, and errors are logged.
func bare(err error) error {
	if e, ok := errors.AsType[*textproto.Error](err); ok {
		return fmt.Errorf("it answers %d", e.Code)
	}
	return err
}

// refused tells a recipient that is none from one that the server has no time for
// (RFC 5321, 4.2.1).
func refused(err error) error {
	if e, ok := errors.AsType[*textproto.Error](err); ok && e.Code >= 500 && e.Code < 600 {
		return &RefusedError{e.Code}
	}
	return fmt.Errorf("the mail server does not take the recipient now: %w", bare(err))
}
