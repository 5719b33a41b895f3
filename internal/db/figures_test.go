package db

import (
	"os"
	"testing"
)

func TestFiguresCountReadsThatWait(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		db := e.open(t)
		ctx := ReadFor(t.Context(), "ws")
		var ends []func()
		for range db.lists.share {
			end, err := db.lists.begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		if n := db.Figures().Waiting; n != 0 {
			t.Errorf("%d reads wait before all turns are taken", n)
		}
		done := make(chan error, 2)
		for range cap(done) {
			go func() { done <- db.Rows(ctx, `SELECT 1`, nil, ignoreRow) }()
		}
		until(func() bool { return db.Figures().Waiting == 2 })
		for _, end := range ends {
			end()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n := db.Figures().Waiting; n != 0 {
			t.Errorf("%d reads wait after the turns are free", n)
		}
	})
}

func TestFiguresHaveTheSizeOfTheLog(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		db := e.open(t)
		var want int64
		if !e.postgres {
			var file string
			if err := db.Row(t.Context(), `SELECT file FROM pragma_database_list`, nil, &file); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(file + "-wal")
			if err != nil || info.Size() == 0 {
				t.Fatalf("no log of %v: %v", info, err)
			}
			want = info.Size()
		}
		if got := db.Figures().Log; got != want {
			t.Errorf("the log has %d bytes, want %d", got, want)
		}
	})
}
