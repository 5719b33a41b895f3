package mail_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"postern/internal/mail"
	"postern/internal/mail/mailtest"
	"postern/internal/seal"
)

func address(scheme, addr, rest string) seal.Secret {
	return seal.Secret(scheme + "://" + url.UserPassword(
		mailtest.User, mailtest.Password,
	).String() + "@" + addr + "?from=postern@example.com" + rest)
}

func server(t *testing.T, at seal.Secret, roots *x509.CertPool) *mail.Server {
	t.Helper()
	s, err := mail.New(at)
	if err != nil {
		t.Fatal(err)
	}
	s.Trust(roots)
	return s
}

func hello() mail.Message {
	return mail.Message{
		To: "ada@example.com", Subject: "Grüße",
		Text: "one\n.\n..two = three\n" + strings.Repeat("long ", 300) + "\nhttps://example.com/join/x?a=b\n",
	}
}

func TestMailArrivesAsItWasWritten(t *testing.T) {
	t.Parallel()
	for scheme, start := range map[string]func(testing.TB) *mailtest.Server{
		"smtp": mailtest.New, "smtps": mailtest.NewTLS,
	} {
		at := start(t)
		if err := server(t, address(scheme, at.Addr, ""), at.Roots).Send(t.Context(), hello()); err != nil {
			t.Fatal(scheme, err)
		}
		m := at.Next(t)
		if m.Subject != hello().Subject || m.Text != hello().Text || m.From != "postern@example.com" ||
			m.To != "ada@example.com" || m.Client != "[127.0.0.1]" || !m.Encrypted || !m.SignedIn {
			t.Errorf("by %s came %+v", scheme, m)
		}
		if from := m.Header.Get("From"); from != `"Postern" <postern@example.com>` ||
			m.Header.Get("Auto-Submitted") != "auto-generated" ||
			!strings.HasSuffix(m.Header.Get("Message-Id"), "@example.com>") {
			t.Errorf("by %s with the headers %v", scheme, m.Header)
		}
		if at, err := m.Header.Date(); err != nil || time.Since(at).Abs() > time.Minute {
			t.Errorf("it is of %v, %v", at, err)
		}
	}
}

// Servers take a recipient only as an address, without a name.
func TestRecipientMayHaveAName(t *testing.T) {
	t.Parallel()
	at := mailtest.New(t)
	m := hello()
	m.To = "Night shift <" + m.To + ">"
	if err := server(t, address("smtp", at.Addr, ""), at.Roots).Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got := at.Next(t); got.To != hello().To {
		t.Errorf("the recipient is %q, want %q", got.To, hello().To)
	}
}

func TestNothingGetsIntoTheHeaders(t *testing.T) {
	t.Parallel()
	at := mailtest.New(t)
	m := hello()
	m.Subject = "a\r\nBcc: eve@example.com\r\n\r\nb"
	if err := server(t, address("smtp", at.Addr, ""), at.Roots).Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got := at.Next(t); got.Subject != m.Subject || got.Header.Get("Bcc") != "" || got.Text != m.Text {
		t.Errorf("came %+v", got)
	}
	m.Subject = "=?utf-8?q?a=0D=0Ab?="
	if err := server(t, address("smtp", at.Addr, ""), at.Roots).Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got := at.Next(t).Subject; strings.Contains(got, "\r\n") {
		t.Errorf("what looks encoded is read as %q", got)
	}
	m.To = "ada@example.com>\r\nRCPT TO:<eve@example.com"
	if err := server(t, address("smtp", at.Addr, ""), at.Roots).Send(t.Context(), m); err == nil {
		t.Error("an address with a line's end was taken")
	}
}

func TestServerIsKnownByItsCertificate(t *testing.T) {
	t.Parallel()
	for scheme, start := range map[string]func(testing.TB) *mailtest.Server{
		"smtp": mailtest.New, "smtps": mailtest.NewTLS,
	} {
		at := start(t)
		if err := server(t, address(scheme, at.Addr, ""), x509.NewCertPool()).Send(t.Context(), hello()); err == nil ||
			len(at.Mails()) != 0 {
			t.Errorf("%s to a stranger: %v", scheme, err)
		}
	}
}

func TestRefusalsAreToldApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command, answer string
		recipient       bool
	}{
		{"RCPT", "550 no such user", true},
		{"RCPT", "451 come back later", false},
		{"MAIL", "550 not from you", false},
		{"AUTH", "535 who are you", false},
		{"DATA", "554 no", false},
		{"EHLO", "421 busy", false},
	} {
		at := mailtest.New(t)
		at.Answer(c.command, c.answer)
		err := server(t, address("smtp", at.Addr, ""), at.Roots).Send(t.Context(), hello())
		if _, refused := errors.AsType[*mail.RefusedError](err); err == nil || refused != c.recipient {
			t.Errorf("%s answered %q gives %v", c.command, c.answer, err)
		}
		if err != nil && strings.Contains(err.Error(), mailtest.Password) {
			t.Errorf("the password is in %v", err)
		}
	}
}

func TestLinksDoNotGoInPlainText(t *testing.T) {
	t.Parallel()
	at := mailtest.New(t)
	at.OfferNoTLS()
	_, port, _ := net.SplitHostPort(at.Addr)
	elsewhere := "smtp://0.0.0.0:" + port + "?from=a@example.com" // this machine by an address that does not say so
	if err := server(t, seal.Secret(elsewhere), nil).Send(t.Context(), hello()); err == nil ||
		!strings.Contains(err.Error(), "STARTTLS") {
		t.Errorf("to another machine: %v", err)
	}
	if err := server(t, seal.Secret(elsewhere+"&tls=off"), nil).Send(t.Context(), hello()); err != nil {
		t.Errorf("to another machine, asked for: %v", err)
	}
	at.Next(t)
	if err := server(t, seal.Secret("smtp://"+at.Addr+"?from=a@example.com"), nil).Send(t.Context(),
		hello()); err != nil {
		t.Errorf("to this machine: %v", err)
	}
	if m := at.Next(t); m.Encrypted || m.SignedIn {
		t.Errorf("came %+v", m)
	}
	at.Answer("AUTH", "235 welcome")
	if err := server(t, address("smtp", at.Addr, ""), nil).Send(t.Context(), hello()); err == nil {
		t.Error("a password went to this machine in plain text")
	}
}

func TestBusyServerIsNotTakenForOneWithoutTLS(t *testing.T) {
	t.Parallel()
	at := mailtest.New(t)
	at.Answer("EHLO", "421 busy")
	_, port, _ := net.SplitHostPort(at.Addr)
	err := server(t, seal.Secret("smtp://0.0.0.0:"+port+"?from=a@example.com"), nil).Send(t.Context(), hello())
	if err == nil || strings.Contains(err.Error(), "tls=off") {
		t.Errorf("who runs the server is told: %v", err)
	}
}

func TestErrorsDoNotRepeatWhatTheServerWasSent(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"AUTH", "RCPT", "DATA"} {
		at := mailtest.New(t)
		at.Answer(command, `451 5.5.1 unrecognized: "canary"`)
		err := server(t, address("smtp", at.Addr, ""), at.Roots).Send(t.Context(), hello())
		if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "451") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func TestPasswordGoesOnlyWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	at := mailtest.New(t)
	at.OfferNoSignIn()
	at.Answer("AUTH", "235 welcome")
	if err := server(t, address("smtp", at.Addr, ""), at.Roots).Send(t.Context(), hello()); err == nil {
		t.Error("a password went to a server that does not ask for it")
	}
}

func TestSilentServerIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := server(
		t, seal.Secret("smtp://"+l.Addr().String()+"?from=a@example.com"), nil,
	).Send(ctx, hello()); err == nil {
		t.Error("a server that says nothing has taken a mail")
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it was waited for %s", took)
	}
}

func TestAddressesOfServers(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"smtp://mail.example.com?from=a@example.com", "smtps://u:p%40ss@mail.example.com:4650/?from=a@example.com",
		"smtp://10.0.0.1:25?from=a@example.com&tls=off",
		"smtp://mail.example.com?from=Acme+%3Ca@example.com%3E",
	} {
		if _, err := mail.New(seal.Secret(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "mail.example.com:587", "http://mail.example.com?from=a@example.com", "smtp://?from=a@example.com",
		"smtp://mail.example.com", "smtp://mail.example.com?from=nobody",
		"smtp://mail.example.com/path?from=a@example.com",
		"smtp://canary:canary@mail.example.com?from=a@example.com&tls=off",
		"smtps://mail.example.com?from=a@example.com&tls=off", "smtp://canary:can ary@[::1?from=a@example.com",
	} {
		if _, err := mail.New(seal.Secret(bad)); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
