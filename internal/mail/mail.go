// Package mail submits mail to one server (RFC 5321, RFC 6409). It waits for the server's
// response and has no queue: a mail that is not accepted is not sent.
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

const patience = 15 * time.Second // for submitting one mail

// Server is a mail server that accepts mail from us.
type Server struct {
	addr  string // host and port
	host  string // as in its certificate
	tls   bool   // from the first byte
	plain bool   // never
	auth  smtp.Auth
	from  mail.Address
	roots *x509.CertPool // nil means the system's
}

// RefusedError is returned if the server permanently refuses mail for the recipient.
type RefusedError struct{ Code int }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the mail server does not accept mail for this address (%d)", e.Code)
}

// New parses the address of a server: smtp://user:password@host:587?from=… starts in plain text
// and switches to TLS with STARTTLS, smtps://… uses TLS from the first byte (RFC 8314). The
// default ports are 587 and 465. With tls=off, or to this machine, mail is sent in plain text,
// for relays in a private network.
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
		return nil, errors.New(
			"tls=off is allowed only for smtp:// without a user, because a password is never sent unencrypted")
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

// Trust makes Send check the server's certificate against these authorities instead of the
// system's.
func (s *Server) Trust(roots *x509.CertPool) { s.roots = roots }

// Send submits one mail. A [*RefusedError] means that the recipient was refused permanently;
// after any other error, a later attempt may succeed.
func (s *Server) Send(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	to, err := mail.ParseAddress(m.To)
	if err != nil {
		return fmt.Errorf("the recipient: %w", err)
	}
	raw, err := m.compose(s.from, to.Address, time.Now())
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
		return fmt.Errorf("connect to the mail server: %w", err)
	}
	if err := c.Hello(literal(conn.LocalAddr())); err != nil {
		return fmt.Errorf("greet the mail server: %w", err)
	}
	return s.submit(c, to.Address, raw)
}

// literal is the name of a client without a host name (RFC 5321, 4.1.4): some servers do not
// accept "localhost".
func literal(local net.Addr) string {
	host, _, _ := net.SplitHostPort(local.String())
	host, _, _ = strings.Cut(host, "%") // the zone is meaningless elsewhere
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

// submit runs the commands of RFC 5321 and waits until the server has accepted the mail.
func (s *Server) submit(c *smtp.Client, to string, raw []byte) error {
	if err := s.secure(c); err != nil {
		return err
	}
	if err := s.signIn(c); err != nil {
		return err
	}
	if err := c.Mail(s.from.Address); err != nil {
		return fmt.Errorf("the mail server refused the sender: %w", err)
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
		return fmt.Errorf("the mail server did not accept the mail: %w", bare(err))
	}
	_ = c.Quit() // it has the mail
	return nil
}

// secure switches to TLS. Mails contain links that give access, so they are never sent to
// another machine in plain text unless tls=off is set.
func (s *Server) secure(c *smtp.Client) error {
	if s.tls || s.plain {
		return nil
	}
	if ok, _ := c.Extension("STARTTLS"); ok {
		if err := c.StartTLS(s.config()); err != nil {
			return fmt.Errorf("start TLS with the mail server: %w", err)
		}
		return nil
	}
	if s.auth != nil {
		return errors.New("the mail server does not offer STARTTLS, and a password is never sent unencrypted")
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
		return errors.New(
			"the mail server does not support authentication; remove the user and the password from its URL")
	}
	if err := c.Auth(s.auth); err != nil {
		return fmt.Errorf("sign in to the mail server: %w", bare(err))
	}
	return nil
}

// bare reduces a server's response to its code. The text may repeat what was sent, such as the
// password or a link, and errors are logged.
func bare(err error) error {
	if e, ok := errors.AsType[*textproto.Error](err); ok {
		return fmt.Errorf("it answered %d", e.Code)
	}
	return err
}

// refused distinguishes a permanent refusal of a recipient from a temporary one (RFC 5321,
// 4.2.1).
func refused(err error) error {
	if e, ok := errors.AsType[*textproto.Error](err); ok && e.Code >= 500 && e.Code < 600 {
		return &RefusedError{e.Code}
	}
	return fmt.Errorf("the mail server does not accept the recipient at the moment: %w", bare(err))
}
