// Package mailtest is a small mail server for tests. It speaks what a submission
// needs of RFC 5321, checks the order of it, and can be told to refuse.
package mailtest

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"
)

// What a Server asks of who signs in.
const (
	User     = "gateway"
	Password = "p@ss word"
)

// Mail is one that was taken.
type Mail struct {
	From, To  string // of the envelope
	Client    string // as it called itself
	Subject   string
	Text      string
	Header    mail.Header
	Encrypted bool
	SignedIn  bool
}

// Server is a mail server that runs.
type Server struct {
	Addr  string
	Roots *x509.CertPool // that its certificate is of

	mu      sync.Mutex
	mails   []Mail
	answers map[string]string // what begins with these commands is answered so
	noTLS   bool
	noUsers bool
	gate    sync.Mutex // that mails are taken through
	took    chan struct{}

	cert tls.Certificate
}

// New starts a server that offers STARTTLS.
func New(tb testing.TB) *Server {
	tb.Helper()
	return start(tb, false)
}

// NewTLS starts a server that is encrypted from the first byte.
func NewTLS(tb testing.TB) *Server {
	tb.Helper()
	return start(tb, true)
}

func start(tb testing.TB, encrypted bool) *Server {
	tb.Helper()
	web := httptest.NewUnstartedServer(nil) // for its certificate, which is for 127.0.0.1
	web.StartTLS()
	s := &Server{
		answers: map[string]string{}, cert: web.TLS.Certificates[0], Roots: x509.NewCertPool(),
		took: make(chan struct{}, 1000),
	}
	s.Roots.AddCert(web.Certificate())
	web.Close()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s.Addr = l.Addr().String()
	if encrypted {
		l = tls.NewListener(l, s.tls())
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(c, encrypted) })
		}
	})
	tb.Cleanup(func() { _ = l.Close(); serving.Wait() })
	return s
}

func (s *Server) tls() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{s.cert}} }

// Answer has a command, such as "RCPT", answered with a line instead of done.
func (s *Server) Answer(command, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[command] = line
}

// OfferNoTLS leaves STARTTLS out.
func (s *Server) OfferNoTLS() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noTLS = true
}

// OfferNoSignIn leaves AUTH out.
func (s *Server) OfferNoSignIn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noUsers = true
}

// Hold lets mails wait before they are taken, until it is undone.
func (s *Server) Hold() (release func()) {
	s.gate.Lock()
	return s.gate.Unlock
}

// Mails are those that were taken.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.mails...)
}

// Next waits for one that was not waited for yet, and gives the newest.
func (s *Server) Next(tb testing.TB) Mail {
	tb.Helper()
	select {
	case <-s.took:
	case <-time.After(20 * time.Second):
		tb.Fatal("no mail came")
	}
	list := s.Mails()
	return list[len(list)-1]
}

// session is one client's.
type session struct {
	s    *Server
	conn net.Conn
	in   *bufio.Reader
	mail Mail
}

func (s *Server) serve(c net.Conn, encrypted bool) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	t := &session{s: s, conn: c, in: bufio.NewReader(c), mail: Mail{Encrypted: encrypted}}
	t.say("220 mailtest")
	for {
		line, err := t.in.ReadString('\n')
		if err != nil {
			return
		}
		if !strings.HasSuffix(line, "\r\n") || len(line) > 512 {
			t.say("500 a line ends with CR LF within 512 bytes")
			return
		}
		line = strings.TrimSuffix(line, "\r\n")
		verb, rest, _ := strings.Cut(line, " ")
		verb = strings.ToUpper(verb)
		if answer := s.answer(verb); answer != "" {
			t.say(answer)
			continue
		}
		if !t.do(verb, rest) {
			return
		}
	}
}

func (s *Server) answer(verb string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers[verb]
}

func (t *session) say(line string) { fmt.Fprint(t.conn, line+"\r\n") }

// do does what a command asks for; false ends the session.
func (t *session) do(verb, rest string) bool {
	switch verb {
	case "EHLO":
		t.hello(rest)
	case "STARTTLS":
		return t.encrypt()
	case "AUTH":
		t.signIn(rest)
	case "MAIL":
		t.mail.From, t.mail.To = address(rest, "FROM:"), ""
		t.say("250 ok")
	case "RCPT":
		t.recipient(rest)
	case "DATA":
		return t.take()
	case "QUIT":
		t.say("221 bye")
		return false
	default:
		t.say("502 what?")
	}
	return true
}

func (t *session) hello(client string) {
	t.mail.Client = client
	t.s.mu.Lock()
	offer, users := !t.s.noTLS && !t.mail.Encrypted, !t.s.noUsers && t.mail.Encrypted
	t.s.mu.Unlock()
	t.say("250-mailtest")
	if offer {
		t.say("250-STARTTLS")
	}
	if users {
		t.say("250-AUTH PLAIN")
	}
	t.say("250 8BITMIME")
}

func (t *session) encrypt() bool {
	t.say("220 go on")
	c := tls.Server(t.conn, t.s.tls())
	t.conn, t.in, t.mail = c, bufio.NewReader(c), Mail{Encrypted: true}
	return true
}

func (t *session) signIn(rest string) {
	if !t.mail.Encrypted {
		t.say("538 encrypted only")
		return
	}
	kind, text, _ := strings.Cut(rest, " ")
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || kind != "PLAIN" || string(raw) != "\x00"+User+"\x00"+Password {
		t.say("535 wrong user or password")
		return
	}
	t.mail.SignedIn = true
	t.say("235 welcome")
}

func (t *session) recipient(rest string) {
	if t.mail.From == "" || t.mail.To != "" {
		t.say("503 one sender first, then one recipient")
		return
	}
	t.mail.To = address(rest, "TO:")
	t.say("250 ok")
}

func address(rest, prefix string) string {
	rest, _, _ = strings.Cut(strings.TrimPrefix(rest, prefix), ">")
	return strings.TrimPrefix(rest, "<")
}

// take reads the mail and keeps it.
func (t *session) take() bool {
	if t.mail.To == "" {
		t.say("503 for whom?")
		return true
	}
	t.say("354 go on")
	t.s.gate.Lock()
	defer t.s.gate.Unlock()
	var raw strings.Builder
	for {
		line, err := t.in.ReadString('\n')
		if err != nil {
			return false
		}
		if line == ".\r\n" {
			break
		}
		raw.WriteString(strings.TrimPrefix(line, "."))
	}
	if err := t.read(raw.String()); err != nil {
		t.say("554 " + err.Error())
		return true
	}
	t.s.mu.Lock()
	t.s.mails = append(t.s.mails, t.mail)
	t.s.mu.Unlock()
	t.say("250 taken")
	t.s.took <- struct{}{}
	return true
}

func (t *session) read(raw string) error {
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		return err
	}
	t.mail.Header, t.mail.Text = m.Header, strings.ReplaceAll(string(text), "\r\n", "\n")
	t.mail.Subject, err = (&mime.WordDecoder{}).DecodeHeader(m.Header.Get("Subject"))
	return err
}
