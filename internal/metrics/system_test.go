package metrics

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"postern/internal/health"
	"postern/internal/postern"
	"postern/internal/store"

	"github.com/prometheus/client_golang/prometheus"
)

// What waited when the database was read need not wait any more, so its age does not grow until the next reading.
func TestAgesAreThoseOfTheReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := prometheus.NewRegistry()
		Watch(r, Source{
			System: func(context.Context) (store.SystemStatus, error) {
				second := postern.TimeOf(time.Now().Add(-time.Second))
				return store.SystemStatus{OldestDue: second, OldestQueued: second}, nil
			},
			Health: func() health.Report { return health.Report{Status: health.Ready} },
			Disk:   func() (int64, error) { return 0, nil },
			Store:  func() store.Figures { return store.Figures{} },
		})
		for range 5 {
			families, err := r.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				switch f.GetName() {
				case "postern_webhook_lag_seconds", "postern_queue_oldest_seconds":
					if got := f.GetMetric()[0].GetGauge().GetValue(); got != 1 {
						t.Errorf("%s is %v, want 1", f.GetName(), got)
					}
				}
			}
			time.Sleep(fresh / 4)
		}
	})
}
