package db

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// openNodes opens one PostgreSQL database as several servers.
func openNodes(t *testing.T, n int, with ...func(*Options)) []*DB {
	t.Helper()
	t.Parallel()
	opts := engine{postgres: true}.options(t)
	opts.Nodes = true
	for _, change := range with {
		change(&opts)
	}
	nodes := make([]*DB, n)
	for i := range nodes {
		opts.Dir = t.TempDir()
		nodes[i] = openAs(t, opts)
	}
	return nodes
}

func openAs(t *testing.T, opts Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// A write that reads before it writes sees what the writes of other servers have committed:
// none is lost.
func TestServersWriteInTurn(t *testing.T) {
	const writes = 100
	nodes := openNodes(t, 3)
	increment := Func(func(t *Tx) error {
		value := 0
		err := t.Row(`SELECT value FROM entry WHERE name = 'counter'`, nil, &value)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		return t.Exec(`INSERT INTO entry (name, value) VALUES ('counter', $1)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, value+1)
	})
	var all sync.WaitGroup
	for _, node := range nodes {
		all.Go(func() {
			for range writes {
				if err := node.Do(t.Context(), increment); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := entries(t, nodes[0])["counter"]; got != len(nodes)*writes {
		t.Errorf("%d writes of %d servers count %d", writes, len(nodes), got)
	}
}

// A reader that follows the positions of a log never misses one that is committed later, even
// if other servers write and their commits are slow.
func TestPositionsOfServersAreCommittedInOrder(t *testing.T) {
	const writes = 150
	nodes := openNodes(t, 3, func(o *Options) {
		table := `CREATE TABLE log (position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL);`
		o.Migrations.(fstest.MapFS)["postgres/0002_log.sql"] = &fstest.MapFile{Data: []byte(table)}
	})
	var writers sync.WaitGroup
	for i, node := range nodes {
		writers.Go(func() {
			for n := range writes {
				err := node.Do(t.Context(), Func(func(t *Tx) error {
					err := t.Exec(`INSERT INTO log (name) VALUES ($1)`, fmt.Sprint(i, " ", n))
					return errors.Join(err, t.Exec(`SELECT pg_sleep($1)`, float64(n%3)/1000)) // the commit is late
				}))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { writers.Wait(); close(written) }()
	seen := follow(t, nodes[0], written)
	if len(seen) != len(nodes)*writes {
		t.Errorf("a reader that follows the log saw %d of %d entries", len(seen), len(nodes)*writes)
	}
}

// follow reads the log behind the last position that it has seen, until all is written.
func follow(t *testing.T, db *DB, written <-chan struct{}) (seen []string) {
	t.Helper()
	last, over := int64(0), false
	for {
		select {
		case <-written:
			over = true
		default:
		}
		before := len(seen)
		err := db.Rows(t.Context(), `SELECT position, name FROM log WHERE position > $1 ORDER BY position`, []any{last},
			func(r *sql.Rows) error {
				var name string
				err := r.Scan(&last, &name)
				seen = append(seen, name)
				return err
			})
		if err != nil {
			t.Fatal(err)
		}
		if over && len(seen) == before {
			return seen
		}
	}
}

// take waits until a listener has something, and returns it.
func take(l *Listener) []string {
	<-l.C()
	return l.Take()
}

// takeUntil takes until an id has come, and returns all that came.
func takeUntil(l *Listener, id string) (all []string) {
	for !slices.Contains(all, id) {
		all = append(all, take(l)...)
	}
	return all
}

// listeningAt waits until a server receives notifications. Its first connection tells listeners that
// anything may have changed.
func listeningAt(db *DB) (*Listener, *Listener) {
	all, one := db.Listen("entry", ""), db.Listen("entry", "one")
	takeUntil(all, Anything)
	for range 2 { // of the listener to one id, which has been told the same
		db.hub.publishAnything()
		take(one)
	}
	takeUntil(all, Anything)
	return all, one
}

func wakes(ids ...string) Func {
	return func(t *Tx) error {
		for _, id := range ids {
			t.Wake("entry", id)
		}
		return nil
	}
}

// A commit wakes the listeners of the other servers, however many ids it names.
func TestCommitWakesListenersOfOtherServers(t *testing.T) {
	nodes := openNodes(t, 2)
	all, one := listeningAt(nodes[1])
	defer all.Close()
	defer one.Close()
	if err := nodes[0].Do(t.Context(), wakes("one")); err != nil {
		t.Fatal(err)
	}
	takeUntil(all, "one")
	takeUntil(one, "one")
	var many []string
	for i := range 3000 { // more than fits into one notification
		many = append(many, "entry "+strconv.Itoa(i))
	}
	if err := nodes[0].Do(t.Context(), wakes(many...)); err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, id := range many {
		missing[id] = true
	}
	for len(missing) > 0 {
		for _, id := range take(all) {
			delete(missing, id)
		}
	}
}

// News reaches the other servers in order, and neither the one that tells it nor who hears another topic. The largest news
// fits into a notification; larger one is left out, and so is the oldest when too much waits.
func TestNewsReachesOtherServers(t *testing.T) {
	nodes := openNodes(t, 2)
	all, one := listeningAt(nodes[1])
	all.Close()
	one.Close()
	heard := make(chan News, maxTold+1)
	nodes[0].Hear("entry", func(n News) { t.Errorf("the server hears its own %q", n.ID) })
	nodes[1].Hear("other", func(n News) { t.Errorf("%q is heard under another topic", n.ID) })
	nodes[1].Hear("entry", func(n News) { heard <- n })
	large := bytes.Repeat([]byte{0xfb}, MaxNews)
	nodes[0].Tell(News{Topic: "entry", ID: "too large", Text: append(large, 0)})
	nodes[0].Tell(News{Topic: "entry", ID: "first", Text: large})
	nodes[0].Tell(News{Topic: "entry", ID: "second", Text: []byte{}})
	if n := <-heard; n.ID != "first" || !bytes.Equal(n.Text, large) || n.From != nodes[0].courier.name {
		t.Errorf("heard %q of %d bytes from %q", n.ID, len(n.Text), n.From)
	}
	if n := <-heard; n.ID != "second" {
		t.Errorf("heard %q", n.ID)
	}
	c := &courier{more: make(chan struct{}, 1)}
	for i := range maxTold + 1 {
		c.tell(News{ID: strconv.Itoa(i)})
	}
	if list := c.takeTold(); len(list) != maxTold || !strings.Contains(list[0], `"id":"1"`) || len(c.takeTold()) > 0 {
		t.Errorf("%d wait, the first is %s", len(list), list[0])
	}
}

// What a server has committed just before it stops wakes the others.
func TestLastCommitBeforeAStopWakesOtherServers(t *testing.T) {
	var opts Options
	nodes := openNodes(t, 2, func(o *Options) { opts = *o })
	all, one := listeningAt(nodes[0])
	defer all.Close()
	defer one.Close()
	for i := range 8 {
		last, later := "last "+strconv.Itoa(i), "later "+strconv.Itoa(i)
		opts.Dir = t.TempDir()
		stopping := openAs(t, opts)
		err := errors.Join(stopping.Do(t.Context(), wakes(last)), stopping.Close(),
			nodes[1].Do(t.Context(), wakes(later)))
		if err != nil {
			t.Fatal(err)
		}
		if got := takeUntil(all, later); !slices.Contains(got, last) { // notifications arrive in order
			t.Errorf("stop %d: the others are told %v", i, got)
		}
	}
}

// A server whose connection for notifications was lost looks at everything when it has a new
// one, so a change that nobody told it of is found.
func TestLostNotificationsMakeListenersLook(t *testing.T) {
	nodes := openNodes(t, 2)
	all, one := listeningAt(nodes[1])
	defer all.Close()
	defer one.Close()
	all.Take()
	err := nodes[0].Do(t.Context(), Func(func(t *Tx) error {
		return t.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'postern notifications'
			AND datname = current_database()`)
	}))
	if err != nil {
		t.Fatal(err)
	}
	takeUntil(all, Anything)
	takeUntil(one, "one")
	if err := nodes[0].Do(t.Context(), wakes("later")); err != nil {
		t.Fatal(err)
	}
	for { // its own connection may have been lost too: then it says that anything may have changed
		ids := take(all)
		if slices.Contains(ids, "later") || slices.Contains(ids, Anything) {
			return
		}
	}
}

// A server that hangs in its turn to write loses it, and what it was writing. The others go on.
func TestServerThatHangsLosesItsTurn(t *testing.T) {
	nodes := openNodes(t, 2, func(o *Options) { o.turnLimit = 100 * time.Millisecond })
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	hung := make(chan error, 1)
	go func() {
		hung <- nodes[0].Do(t.Context(), Func(func(t *Tx) error {
			err := t.Exec(`INSERT INTO entry (name, value) VALUES ('hung', 1)`)
			once.Do(func() { close(begun); <-goOn })
			return err
		}))
	}()
	<-begun
	err := nodes[1].Do(t.Context(), Func(func(t *Tx) error {
		return t.Exec(`INSERT INTO entry (name, value) VALUES ('next', 2)`)
	}))
	if err != nil {
		t.Error(err)
	}
	if got := entries(t, nodes[1]); got["next"] != 2 || got["hung"] != 0 {
		t.Errorf("beside a server that hangs, the table has %v", got)
	}
	close(goOn)
	reported, stored := <-hung, entries(t, nodes[1])["hung"] == 1
	if (reported == nil) != stored {
		t.Errorf("the write of the server that hung is reported as %v, and stored: %v", reported, stored)
	}
	if err := nodes[0].Do(t.Context(), wakes("one")); err != nil {
		t.Errorf("the server that hung writes again: %v", err)
	}
}

// A server that is alone on its database, such as one of an earlier release, does not share
// it, and is not shared with.
func TestServerThatIsAloneSharesNothing(t *testing.T) {
	t.Parallel()
	for _, alone := range []int{0, 1} {
		opts := engine{postgres: true}.options(t)
		opts.Nodes = alone != 0
		openAs(t, opts)
		opts.Dir, opts.Nodes = t.TempDir(), alone == 0
		db, err := Open(t.Context(), opts)
		if _, inUse := errors.AsType[*InUseError](err); !inUse {
			t.Errorf("a second server, of which one is alone, opens the database: %v", errors.Join(err, db.Close()))
		}
	}
}

// A server that stops does not ask PostgreSQL to cancel its wait for notifications: there is no statement
// whose end would be confirmed, so that each stop would take as long as the limit for that.
func TestWaitForNotificationsEndsAtOnce(t *testing.T) {
	config := openNodes(t, 1)[0].courier.config
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	h, ok := config.BuildContextWatcherHandler(conn.PgConn()).(*pgconn.DeadlineContextWatcherHandler)
	if !ok || h.DeadlineDelay != 0 {
		t.Errorf("the wait ends by %+v", h)
	}
}
