package db

import (
	"errors"
	"testing"
)

// Every outcome is reported even if the database is closed at the same time: a lane of
// webhooks would wait for it for ever.
func TestEveryOutcomeIsReportedWhenTheDatabaseIsClosed(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		for range 3 {
			db, err := Open(t.Context(), on.options(t))
			if err != nil {
				t.Fatal(err)
			}
			const writes = 100
			told := make(chan error, 2*writes)
			handed := make(chan struct{})
			go func() {
				defer close(handed)
				for range writes {
					db.After(Func(func(*Tx) error { return nil }), func(err error) { told <- err })
				}
			}()
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			<-handed
			for i := range writes {
				var closed *UnavailableError
				if err := <-told; err != nil && !errors.As(err, &closed) {
					t.Errorf("write %d: %v", i, err)
				}
			}
			if n := len(told); n > 0 {
				t.Errorf("%d outcomes are reported twice", n)
			}
		}
	})
}
