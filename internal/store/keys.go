package store

import (
	"context"
	"database/sql"
	"fmt"
)

// OpenKeys opens the database file that the network driver keeps its session
// keys in. It is a file of its own so that a burst of prekeys at linking does
// not stall the gateway's writer. One connection: the driver's transactions are
// short, and a second one would only wait for the lock.
func OpenKeys(ctx context.Context, path string) (*sql.DB, error) {
	db, err := openFile(ctx, path, "immediate", 1)
	if err != nil {
		return nil, fmt.Errorf("open session keys: %w", err)
	}
	return db, nil
}
