package web

import (
	"bytes"
	"io"
	"net/http"
	"net/netip"

	"postern/internal/obs"
	"postern/internal/postern"
	"postern/internal/problem"
)

func plainRefused() error {
	return postern.Errorf(postern.InsecureTransport,
		"requests from other machines must use HTTPS; if this one contained a key, rotate it, because others may have read it")
}

// PlainRefusal returns the whole answer, as HTTP/1.1, to a request in plain text
// on a connection that is for TLS. It writes the log line of that request.
func (d *Door) PlainRefusal() []byte { return d.wholeRefusal(plainRefused(), netip.Addr{}) }

// wholeRefusal returns the whole answer, as HTTP/1.1, to a request that no handler gets.
// It writes the log line of that request. The connection ends with it.
func (d *Door) wholeRefusal(refusal error, client netip.Addr) []byte {
	q := &obs.Request{ID: postern.NewRequestID()}
	p := d.problems.Document(q, refusal)
	body, err := postern.EncodeJSON(p)
	if err != nil {
		d.log.Error("encode a problem", "request_id", q.ID, "error", err)
	}
	d.log.Info("request", "request_id", q.ID, "status", p.Status, "client", addressText(client), "reason", q.Reason)
	h := http.Header{
		"Content-Type": {problem.ContentType}, "Request-Id": {q.ID},
		"Cache-Control": noStore, "X-Content-Type-Options": noSniff,
	}
	d.announce(&http.Request{}, client, h)
	resp := http.Response{
		StatusCode: p.Status, ProtoMajor: 1, ProtoMinor: 1, Header: h, Close: true,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	var b bytes.Buffer
	if err := resp.Write(&b); err != nil {
		d.log.Error("write a refusal", "request_id", q.ID, "error", err)
	}
	return b.Bytes()
}
