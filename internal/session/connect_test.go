package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Beyond the first ones, connections are opened at the rate that is configured.
func TestConnectionsAreOpenedAtTheConfiguredRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Options{ConnectRate: 10})
		began := time.Now()
		for range parallelConnects + 20 {
			release, err := e.admit(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			release()
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("%d connections took %v, want 2s", parallelConnects+20, took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := e.admit(ctx); err == nil {
			t.Error("a connection was admitted after its end")
		}
		if len(e.connects) != 0 {
			t.Errorf("%d slots are taken", len(e.connects))
		}
	})
}
