package mail

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"time"
)

// Message is a plain-text mail to one address.
type Message struct {
	To      string
	Subject string
	Text    string // lines end in "\n"
}

// compose encodes the mail (RFC 5322, RFC 2045). Text that is not plain ASCII is encoded, so
// that a subject or an address cannot add headers.
func (m Message) compose(from mail.Address, to string, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	for _, h := range [][2]string{
		{"From", from.String()},
		{"To", (&mail.Address{Address: to}).String()},
		{"Subject", encoded(m.Subject)},
		{"Date", at.Format(time.RFC1123Z)},
		{"Message-ID", "<" + rand.Text() + from.Address[strings.LastIndex(from.Address, "@"):] + ">"},
		{"Auto-Submitted", "auto-generated"}, // RFC 3834: prevents automatic replies
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	if _, err := w.Write([]byte(strings.ReplaceAll(m.Text, "\n", "\r\n"))); err != nil {
		return nil, err
	}
	return b.Bytes(), w.Close()
}

// encoded encodes a header value. Text that only looks encoded is broken up, because mail
// programs would decode it.
func encoded(s string) string {
	return mime.QEncoding.Encode("utf-8", strings.ReplaceAll(s, "=?", "= ?"))
}
