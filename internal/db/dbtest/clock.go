package dbtest

import (
	"database/sql"
	"fmt"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver named "pgx"
)

// SetClockAhead sets the clock that a database shows ahead of this machine's, for
// connections made from now on; by is an interval such as "40 days".
func SetClockAhead(tb testing.TB, url, by string) {
	tb.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		fmt.Sprintf(`CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$
			SELECT pg_catalog.clock_timestamp() + interval '%s' $$`, by),
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database()); END $$`,
	} {
		if _, err := db.ExecContext(tb.Context(), statement); err != nil {
			tb.Fatal(err)
		}
	}
}
