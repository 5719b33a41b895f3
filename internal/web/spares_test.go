package web_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"postern/internal/web"
)

// scarce is a listener that can accept no connection without a spare file, as when the process has no more files.
type scarce struct {
	net.Listener

	refused atomic.Int32
	turn    atomic.Bool
}

func (l *scarce) Accept() (net.Conn, error) {
	if l.turn.CompareAndSwap(false, true) {
		l.refused.Add(1)
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	l.turn.Store(false)
	return l.Listener.Accept()
}

// A caller who comes when there are no more files is told so, on as many connections as come one after the
// other; its connection is not used again.
func TestConnectionsWithoutAFileAreAnswered(t *testing.T) {
	t.Parallel()
	spares := web.NewSpares()
	defer spares.Close()
	door := web.New(web.Options{Late: spares.Late, API: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the request got through")
	})})
	srv := httptest.NewUnstartedServer(door)
	few := &scarce{Listener: srv.Listener}
	srv.Listener = spares.Listen(few)
	srv.Start()
	defer srv.Close()
	var callers sync.WaitGroup
	for range 3 {
		callers.Go(func() {
			for range 20 { // more than there are spare files
				res, err := srv.Client().Get(srv.URL + "/v1/devices")
				if err != nil {
					t.Error(err)
					return
				}
				res.Body.Close()
				if res.StatusCode != http.StatusServiceUnavailable || !res.Close || res.Header.Get("Retry-After") == "" {
					t.Errorf("%s, close %v, %v", res.Status, res.Close, res.Header)
				}
			}
		})
	}
	callers.Wait()
	if few.refused.Load() < 60 {
		t.Errorf("%d connections found no file", few.refused.Load())
	}
}
