package db

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
)

var errNegative = errors.New("a value is not negative")

// add is a hot write that adds to an entry.
type add struct {
	name  string
	value int
}

func (add) About() About { return About{} }

var addEntries = NewStatement("name, value",
	`INSERT INTO entry AS e (name, value) @values (@name, @value) ON CONFLICT (name) DO UPDATE SET value = e.value + excluded.value`)

func (add) WriteAll(t *Tx, list []Pending[add]) error {
	var rows [][]any
	for _, p := range list {
		switch v := p.Value; {
		case v.value < 0:
			p.Refuse(errNegative)
		case v.name == "bad":
			return errors.New("the whole list fails")
		default:
			rows = append(rows, []any{v.name, v.value})
			t.Note(v)
		}
	}
	err := t.Each(addEntries, rows)
	return err
}

// set is a hot write of another kind, which tells what it changed.
type set struct {
	name    string
	value   int
	changed bool
}

func (*set) About() About { return About{} }

var setEntries = NewStatement("entry_name, new_value",
	`UPDATE entry SET value = @new_value [FROM @rows] WHERE name = @entry_name`)

func (*set) WriteAll(t *Tx, list []Pending[*set]) error {
	rows := make([][]any, len(list))
	for i, p := range list {
		rows[i] = []any{p.Value.name, p.Value.value}
	}
	changed, err := t.Which(setEntries, rows)
	for i, p := range list {
		p.Value.changed = changed[i]
	}
	return err
}

func TestHotWritesOfAGroupHaveTheirOwnOutcomes(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		there, missing := &set{name: "a", value: 5}, &set{name: "z", value: 5}
		got := group(t, db, Item(add{"a", 1}), Item(add{"b", -1}), Item(add{"c", 3}), Item(there), Item(missing))
		for i, want := range []error{nil, errNegative, nil, nil, nil} {
			if !errors.Is(got[i], want) {
				t.Errorf("write %d: %v, want %v", i, got[i], want)
			}
		}
		if all := entries(t, db); !maps.Equal(all, map[string]int{"a": 5, "c": 3}) || !there.changed ||
			missing.changed {
			t.Errorf("entries %v; changed %v and %v", all, there.changed, missing.changed)
		}
	})
}

func TestOneFailureDoesNotFailItsNeighbours(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		breaks := Func(func(tx *Tx) error { return tx.Exec(`INSERT INTO entry (name, value) VALUES ('a', 9), ('a', 9)`) })
		panics := Func(func(*Tx) error { panic("boom") })
		got := group(t, db, Item(add{"a", 1}), Item(add{"bad", 2}), breaks, panics, Item(add{"a", 4}),
			Item(add{"c", -1}))
		for i, fails := range []bool{false, true, true, true, false, true} {
			if (got[i] != nil) != fails {
				t.Errorf("write %d: %v, want a failure: %v", i, got[i], fails)
			}
		}
		if all := entries(t, db); !maps.Equal(all, map[string]int{"a": 5}) {
			t.Errorf("entries %v, want only a = 5", all)
		}
	})
}

// sums is a ledger that adds up what was added and writes it under one name.
type sums struct{ total int }

func (s *sums) Note(change any) {
	if a, is := change.(add); is {
		s.total += a.value
	}
}

func (s *sums) Write(t *Tx) error {
	n := s.total
	s.total = 0
	if n == 0 {
		return nil
	}
	err := t.Each(addEntries, [][]any{{"total", n}})
	return err
}

func (s *sums) Discard() { s.total = 0 }

func TestLedgersFollowWhatIsCommitted(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t, func(o *Options) { o.Ledgers = []Ledger{&sums{}} })
		undone := Then(Item(add{"d", 100}), func(*Tx) error { return errors.New("undone") })
		group(t, db, Item(add{"a", 1}), Item(add{"b", 2}), undone, Item(add{"c", -5}))
		group(t, db, Item(add{"a", 3}))
		if all := entries(t, db); !maps.Equal(all, map[string]int{"a": 4, "b": 2, "total": 6}) {
			t.Errorf("entries %v, want a total of 6", all)
		}
	})
}

// An observer is told once of each change that was committed, also if the group had to be written again.
func TestObserverIsToldOfWhatIsCommitted(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		var told []string
		db := on.open(t, func(o *Options) {
			o.Ledgers = []Ledger{Observer(func(change any) { told = append(told, change.(add).name) })}
		})
		undone := Then(Item(add{"d", 100}), func(*Tx) error { return errors.New("undone") })
		group(t, db, Item(add{"a", 1}), undone, Item(add{"b", 2}))
		err := db.Do(t.Context(), Func(func(tx *Tx) error {
			return tx.Exec(`CREATE TABLE later (name TEXT REFERENCES entry (name) DEFERRABLE INITIALLY DEFERRED)`)
		}))
		if err != nil {
			t.Fatal(err)
		}
		fails := Then(Item(add{"c", 3}), func(tx *Tx) error { return tx.Exec(`INSERT INTO later VALUES ('nobody')`) })
		if err := db.Do(t.Context(), fails); err == nil {
			t.Error("the commit succeeded")
		}
		group(t, db, Item(add{"e", 1}))
		if !slices.Equal(told, []string{"a", "b", "e"}) {
			t.Errorf("told of %v", told)
		}
	})
}

// What is put around a write does not change its turn.
func TestThenKeepsTheScheduling(t *testing.T) {
	t.Parallel()
	w := numbered{"ws", Flood, 1}
	if got := Then(Item(w), func(*Tx) error { return nil }).about(); got != w.About() {
		t.Errorf("about %+v, want %+v", got, w.About())
	}
}

func TestFirstIsNewAfterAPartialRollback(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		var ran []string
		once := func(name string, fails bool) Write {
			return Func(func(tx *Tx) error {
				if tx.First("key") {
					ran = append(ran, name)
				}
				if fails {
					return errors.Join(tx.Exec(`INSERT INTO entry (name, value) VALUES ($1, 1)`, name),
						errors.New("undone"))
				}
				return nil
			})
		}
		group(t, db, once("a", false), once("b", false))
		group(t, db, once("c", true), once("d", false))
		if got, want := fmt.Sprint(ran), "[a c c d]"; got != want {
			t.Errorf("ran %s, want %s", got, want)
		}
	})
}

// together is a hot write that records how many values are written at once.
type together struct{ lists *[]int }

func (together) About() About { return About{} }

func (w together) WriteAll(_ *Tx, list []Pending[together]) error {
	*w.lists = append(*w.lists, len(list))
	return nil
}

// PostgreSQL gets the writes of one kind at once, whatever is between them.
func TestWritesOfOneKindAreWrittenTogether(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		var lists []int
		w := Item(together{&lists})
		group(t, db, w, Item(add{"a", 1}), w, w, Item(add{"b", 1}), w)
		want := "[1 1 1 1]"
		if on.postgres {
			want = "[4]"
		}
		if got := fmt.Sprint(lists); got != want {
			t.Errorf("lists of %s values were written, want %s", got, want)
		}
	})
}

// clumsy is a ledger that panics at a value of 13.
type clumsy struct{ fails bool }

func (c *clumsy) Note(change any) {
	if a, is := change.(add); is && a.value == 13 {
		c.fails = true
	}
}

func (c *clumsy) Write(*Tx) error {
	if c.fails {
		panic("thirteen")
	}
	return nil
}

func (c *clumsy) Discard() { c.fails = false }

// A panic in what others gave to the writer is logged with its stack, and the writer goes
// on. A write that a ledger cannot follow is refused.
func TestPanicDoesNotEndTheWriter(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		var log bytes.Buffer // of the writer alone
		db := on.open(t, func(o *Options) {
			o.Ledgers, o.Log = []Ledger{&clumsy{}}, slog.New(slog.NewTextHandler(&log, nil))
		})
		got := group(t, db, Item(add{"a", 1}), Item(add{"b", 13}), Item(add{"c", 1}))
		if all := entries(t, db); got[0] != nil || got[1] == nil || got[2] != nil || len(all) != 2 {
			t.Errorf("outcomes %v, entries %v", got, all)
		}
		dropped := false
		db.Invalidate("t", func() { panic("a cache") })
		db.Invalidate("t", func() { dropped = true })
		db.After(Func(func(tx *Tx) error { tx.Wake("t", ""); return nil }), func(error) { panic("a callback") })
		if err := db.Do(t.Context(), Item(add{"d", 1})); err != nil || !dropped {
			t.Fatalf("after the panics: %v; the next cache was dropped: %v", err, dropped)
		}
		for _, want := range []string{"thirteen", "a cache", "a callback", "write_test.go"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log says nothing of %s", want)
			}
		}
	})
}
