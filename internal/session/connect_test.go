package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// No second has more connections than are configured.
func TestConnectionsAreOpenedAtTheConfiguredRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Options{ConnectRate: 100})
		var opened []time.Time
		for range 300 {
			release, err := e.admit(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			release()
			opened = append(opened, time.Now())
		}
		for i, at := range opened[100:] {
			if since := at.Sub(opened[i]); since < time.Second {
				t.Fatalf("101 connections within %v", since)
			}
		}
		if took := opened[299].Sub(opened[0]); took > 4*time.Second {
			t.Errorf("300 connections took %v", took)
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
