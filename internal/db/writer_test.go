package db

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"
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

// The writer of a full queue waits for the end of a pause, and takes no more writes.
func TestAFullQueueWaitsForTheEndOfAPause(t *testing.T) {
	t.Parallel()
	w := newWriter(connection{dialect: sqliteDialect()}, nil, nil, nil)
	for i := range queueLength {
		w.scheduler.add(writeOf("flood", i))
	}
	w.in <- writeOf("flood", queueLength)
	w.rest(time.Now().Add(10 * time.Millisecond))
	if len(w.scheduler.waiting) != queueLength || len(w.in) != 1 {
		t.Errorf("%d wait, and %d have been left to their callers", len(w.scheduler.waiting), len(w.in))
	}
}

// While there is always something to write, the writer still looks at its connection and
// the server's clock.
func TestConnectionIsCheckedUnderLoad(t *testing.T) {
	t.Parallel()
	db := engine{postgres: true}.open(t)
	looks, seen := 0, 0
	writes := make([]Write, 2*groupSize) // two groups, without a pause between them
	for i := range writes {
		writes[i] = Func(func(*Tx) error { return nil })
	}
	w := db.writer
	writes[0] = Func(func(*Tx) error {
		w.looked = time.Time{}
		w.look = func(context.Context, *sql.Conn) error { looks++; return nil }
		return nil
	})
	writes[groupSize] = Func(func(*Tx) error { seen = looks; return nil })
	group(t, db, writes...)
	if seen != 1 {
		t.Errorf("the writer looked %d times between two groups, want 1", seen)
	}
}

func TestAFuncIsNamedAfterItsMaker(t *testing.T) {
	t.Parallel()
	f := Func(func(*Tx) error { return nil })
	for _, w := range []Write{f, Then(f, nil), FuncOf("ws", f)} {
		if got, want := nameOf(w), "db.TestAFuncIsNamedAfterItsMaker.func1"; got != want {
			t.Errorf("name %s, want %s", got, want)
		}
	}
}
