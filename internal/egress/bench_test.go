package egress

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkPost compares the client with a bare transport of the same settings, with
// 64 exchanges at the same time.
func BenchmarkPost(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
	}))
	defer srv.Close()
	c := NewClient(Options{AllowPrivate: true})
	defer c.Close()
	t := c.Transport()
	defer t.CloseIdleConnections()
	body := bytes.Repeat([]byte("x"), 500)
	run := func(post func() error) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := post(); err != nil {
						b.Error(err)
					}
				}
			})
		}
	}
	b.Run("client", run(func() error {
		_, err := c.Post(b.Context(), "ws", srv.URL+"/hook", http.Header{"Content-Type": {"application/json"}}, body)
		return err
	}))
	b.Run("bare", run(func() error {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, srv.URL+"/hook", bytes.NewReader(body))
		if err != nil {
			return err
		}
		r.Header["Content-Type"] = []string{"application/json"}
		res, err := t.RoundTrip(r)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		return err
	}))
}
