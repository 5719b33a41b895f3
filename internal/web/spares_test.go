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

// scarce is a listener that can accept no connection without some spare files, as when the process has no more files
// and others take those that become free.
type scarce struct {
	net.Listener

	needs   int32
	refused atomic.Int32
	turn    atomic.Int32
}

func (l *scarce) Accept() (net.Conn, error) {
	if l.turn.Add(1) <= l.needs {
		l.refused.Add(1)
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	l.turn.Store(0)
	return l.Listener.Accept()
}

// A caller who comes when there are no more files is told so, on as many connections as come one after the
// other; its connection is not used again.
func TestConnectionsWithoutAFileAreAnswered(t *testing.T) {
	t.Parallel()
	t.Run("several at once", func(t *testing.T) {
		t.Parallel()
		answersWithoutFiles(t, 3, 1)
	})
	t.Run("while others take spare files", func(t *testing.T) {
		t.Parallel()
		answersWithoutFiles(t, 1, 2)
	})
}

// answersWithoutFiles makes requests of several callers, each of which needs some spare files.
func answersWithoutFiles(t *testing.T, callersAtOnce int, needs int32) {
	t.Helper()
	spares := web.NewSpares()
	defer spares.Close()
	door := web.New(web.Options{Late: spares.Late, API: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the request got through")
	})})
	srv := httptest.NewUnstartedServer(door)
	few := &scarce{Listener: srv.Listener, needs: needs}
	srv.Listener = spares.Listen(few)
	srv.Start()
	defer srv.Close()
	var callers sync.WaitGroup
	for range callersAtOnce {
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
	if few.refused.Load() < 20*int32(callersAtOnce)*needs {
		t.Errorf("%d connections found no file", few.refused.Load())
	}
}
