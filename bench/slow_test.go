package bench

import (
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"postern/internal/egress"
)

const (
	slowDeliveries = 15_000
	slowAnswer     = 5 * time.Millisecond
)

// slow measures a backlog to one receiver behind TLS that takes 5 ms for each
// answer, as most do or more.
func slow(t *testing.T) []figure {
	var list []figure
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		f := figure{name: "webhook deliveries to a TLS receiver that takes 5 ms, " + protocol, unit: "/s"}
		var cpu []float64
		for range rounds {
			rate, spent, like := slowOut(t, protocol == "HTTP/2")
			f.ours, cpu = append(f.ours, rate), append(cpu, spent)
			f.bare = append(f.bare, slowBare(t, protocol == "HTTP/2", like))
		}
		f.extra = fmt.Sprintf("%.0f µs of processor time each, the receiver's included", median(cpu))
		list = append(list, f)
	}
	return list
}

// slowReceiver takes its time for each answer, and says when it has given so many.
func slowReceiver(n int64, http2 bool) (srv *httptest.Server, all chan struct{}, first *letter) {
	all, first = make(chan struct{}), &letter{}
	var got, answered atomic.Int64
	srv = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if got.Add(1) == 1 {
			first.header, first.body = r.Header.Clone(), body
		}
		time.Sleep(slowAnswer)
		if answered.Add(1) == n {
			close(all)
		}
	}))
	srv.EnableHTTP2 = http2
	srv.StartTLS()
	return srv, all, first
}

// trusting makes a client that trusts a receiver.
func trusting(srv *httptest.Server) *egress.Client {
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	return egress.NewClient(egress.Options{AllowPrivate: true, RootCAs: roots})
}

func slowOut(t *testing.T, http2 bool) (rate, cpu float64, like *letter) {
	t.Helper()
	srv, all, first := slowReceiver(slowDeliveries, http2)
	defer srv.Close()
	b := newBacklog(t, srv.URL)
	b.fill(t, slowDeliveries)
	client := trusting(srv)
	before := processorTime(t)
	rate = timed(slowDeliveries, func() {
		stop := b.dispatchBy(t, client, true)
		<-all
		stop()
	})
	return rate, (processorTime(t) - before).Seconds() * 1e6 / slowDeliveries, first
}

func slowBare(t *testing.T, http2 bool, like *letter) float64 {
	t.Helper()
	srv, all, _ := slowReceiver(slowDeliveries, http2)
	defer srv.Close()
	transport := trusting(srv).Transport()
	defer transport.CloseIdleConnections()
	return timed(slowDeliveries, func() {
		barePost(t, transport, srv.URL, slowDeliveries, like)
		<-all
	})
}

// processorTime is what the process has used so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
