package store

import (
	"testing"

	"postern/internal/postern"
)

// Whoever has an outcome told is told it, whenever the database is closed: a
// lane of webhooks would wait for it for ever.
func TestEveryOutcomeIsToldThoughTheDatabaseIsClosed(t *testing.T) {
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
					db.db.writer.after(opFunc(func(*tx) error { return nil }), func(err error) { told <- err })
				}
			}()
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			<-handed
			for i := range writes {
				if err := <-told; err != nil && postern.ReasonOf(err) != postern.Unavailable {
					t.Errorf("write %d: %v", i, err)
				}
			}
			if n := len(told); n > 0 {
				t.Errorf("%d outcomes are told twice", n)
			}
		}
	})
}
