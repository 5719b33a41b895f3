package db

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A read that gets no connection in time says that the storage is busy. It does not close
// the idle connections, as one that met a lost connection does.
func TestWaitForABusyConnectionIsNoDisconnect(t *testing.T) {
	t.Parallel()
	db := engine{postgres: true}.open(t)
	if err := db.Row(t.Context(), `SELECT 1`, nil, new(int)); err != nil {
		t.Fatal(err) // leaves an idle connection
	}
	over, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	var busy *UnavailableError
	err := db.Row(over, `SELECT 1`, nil, new(int))
	if !errors.As(err, &busy) || !busy.Wait || !strings.Contains(busy.Detail, "busy") {
		t.Errorf("the read fails with %v", err)
	}
	err = db.Rows(over, `SELECT 1`, nil, func(*sql.Rows) error { return nil })
	if !errors.As(err, &busy) || !strings.Contains(busy.Detail, "busy") {
		t.Errorf("the read of rows fails with %v", err)
	}
	if n := db.read.Stats().MaxIdleClosed; n != 0 {
		t.Errorf("%d idle connections were closed", n)
	}
}

// A connection that is lost between the pool and the statement says so in the driver's own
// words.
func TestStatementOnALostConnectionMeetsADisconnect(t *testing.T) {
	t.Parallel()
	opts := engine{postgres: true}.options(t)
	conn, err := pgx.Connect(t.Context(), opts.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `SELECT 1`); !isDisconnect(err) {
		t.Errorf("%v is no disconnect", err)
	}
}
