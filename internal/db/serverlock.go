package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// InUseError means that another server, or a command, is using the PostgreSQL database and
// one of the two does not share it.
type InUseError struct {
	Holder string // such as "postern, process 12 on host a"; "" when it could not be read
}

func (e *InUseError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "another session"
	}
	return fmt.Sprintf("the database is in use by %s; stop that first, because a sandbox, or an earlier release, "+
		"shares its database with no other server", holder)
}

// serverLock is the key of the advisory lock that a server holds on its database. The
// writer's connection holds it, so everything is written under the lock, and PostgreSQL
// releases it when that connection ends, however it ends.
const serverLock = 0x706f737465726e // "postern"

// writersTurn makes the servers of a database commit one after the other. A transaction has
// the lock until its commit is visible, and reads after it has got the lock: it sees what all
// earlier ones have written, and nobody sees a later one before it.
const writersTurn = `SELECT pg_advisory_xact_lock(8101821198418210347)` // "postern+"

// channel is that of the notifications between servers.
const channel = "postern_wake"

// connectLocked returns a connection that holds the server's lock, after reading the
// clock there.
func connectLocked(ctx context.Context, db *sql.DB, name string, take func(context.Context, *sql.Conn, string) error,
	look func(context.Context, *sql.Conn) error,
) (*sql.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	if err := errors.Join(take(ctx, conn, name), look(ctx, conn)); err != nil {
		discard(conn)
		return nil, unavailable(err)
	}
	return conn, nil
}

// discard closes a connection instead of returning it to its pool.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // tells database/sql
	_ = conn.Close()                                           // it is closed already
}

// takeServerLock takes the lock, or names its holder. An old connection of this very
// server that was cut off may still hold it: that one is terminated, so that none of its
// transactions can commit once the lock is taken.
func takeServerLock(ctx context.Context, conn *sql.Conn, name string) error {
	for {
		var got bool
		if err := conn.QueryRowContext(ctx, `SELECT pg_try_advisory_lock($1)`,
			int64(serverLock)).Scan(&got); err != nil ||
			got {
			return err
		}
		pid, holder, err := lockHolder(ctx, conn)
		if err != nil {
			return err
		}
		if pid != 0 && holder != name {
			return &InUseError{Holder: shownHolder(holder)}
		}
		if _, err := conn.ExecContext(ctx, `SELECT pg_terminate_backend($1) WHERE $1 <> 0`, pid); err != nil {
			return err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// shareServerLock returns a function that takes the lock together with the other servers that
// share the database. PostgreSQL ends a transaction in which the server is silent for the limit,
// so that one that hangs does not keep the others from writing.
func shareServerLock(limit time.Duration) func(context.Context, *sql.Conn, string) error {
	return func(ctx context.Context, conn *sql.Conn, name string) error {
		if err := endOld(ctx, conn, name); err != nil {
			return err
		}
		var got bool
		err := conn.QueryRowContext(ctx, `SELECT pg_try_advisory_lock_shared($1)
			FROM (SELECT set_config('idle_in_transaction_session_timeout', $2, false)) AS ready`,
			int64(serverLock), strconv.FormatInt(limit.Milliseconds(), 10)).Scan(&got)
		if err != nil || got {
			return err
		}
		_, holder, err := lockHolder(ctx, conn)
		if err != nil {
			return err
		}
		return &InUseError{Holder: shownHolder(holder)}
	}
}

// endOld ends connections of this very server that were cut off, so that none of their
// transactions can commit from now on.
func endOld(ctx context.Context, conn *sql.Conn, name string) error {
	for {
		var old int
		if err := conn.QueryRowContext(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE application_name = $1 AND datname = current_database() AND pid <> pg_backend_pid()`,
			name).Scan(&old); err != nil || old == 0 {
			return err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// lockHolder finds the connection that holds the lock; pid is 0 when none does.
func lockHolder(ctx context.Context, conn *sql.Conn) (pid int, name string, err error) {
	err = conn.QueryRowContext(ctx, `SELECT l.pid, coalesce(a.application_name, '') FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND l.classid::bigint = $1 AND l.objid::bigint = $2
		AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1`, int64(serverLock>>32), int64(serverLock&0xffffffff)).Scan(&pid, &name)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, "", nil
	}
	return pid, name, err
}

// shownHolder leaves out the random part of a name.
func shownHolder(name string) string {
	if cut := strings.LastIndex(name, ", "); strings.HasPrefix(name, "postern, ") && cut > len("postern") {
		return name[:cut]
	}
	return name
}

// waitForLock connects, and waits a little for a server that has just ended: PostgreSQL
// notices that only when it next uses the connection.
func waitForLock(ctx context.Context, connect func(context.Context) (*sql.Conn, error)) (*sql.Conn, error) {
	for end := time.Now().Add(lockWait); ; {
		conn, err := connect(ctx)
		if _, inUse := errors.AsType[*InUseError](err); !inUse || time.Now().After(end) {
			return conn, err
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
