package web

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/netip"

	"postern/internal/obs"
	"postern/internal/postern"
	"postern/internal/problem"
)

func plainRefused() error {
	return postern.Errorf(postern.InsecureTransport,
		"requests from elsewhere come by HTTPS only; a key that was sent in plain text may have been read on its way: rotate it")
}

// PlainRefusal returns the whole answer, as HTTP/1.1, to a request in plain text
// on a connection that is for TLS. It writes the log line of that request.
func (d *Door) PlainRefusal() []byte {
	q := &obs.Request{ID: postern.NewRequestID()}
	p := d.problems.Document(q, plainRefused())
	body, err := postern.EncodeJSON(p)
	if err != nil {
		d.log.Error("encode a problem", "request_id", q.ID, "error", err)
	}
	d.log.Info("request", "request_id", q.ID, "status", p.Status, "reason", q.Reason)
	h := http.Header{
		"Content-Type": {problem.ContentType}, "Request-Id": {q.ID}, "Cache-Control": noStore, "X-Content-Type-Options": noSniff,
	}
	d.announce(context.Background(), netip.Addr{}, h)
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
