package store

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// batch is an op that PostgreSQL writes together with the others of its kind in
// a group: what costs there is the way to the server and back, which SQLite has
// not. Those in one group have no order among kinds: their callers wait for
// them, or for what comes after in the same transaction.
type batch interface {
	op
	// applyAll writes ops of its own type. Those it gives back, because they are
	// refused or out of the ordinary, are written one by one. An error makes the
	// whole group be written one by one.
	applyAll(t *tx, list []pending) (rest []pending, err error)
}

// pending is an op of a group and where its own outcome goes.
type pending struct {
	op      op
	outcome *error
}

// runTogether applies a group of ops without savepoints. Those that are no
// batch keep their place.
func (t *tx) runTogether(list []pending) error {
	for len(list) > 0 {
		n := 0
		for n < len(list) && isBatch(list[n].op) {
			n++
		}
		if err := t.runKinds(list[:n]); err != nil {
			return err
		}
		if list = list[n:]; len(list) == 0 {
			return nil
		}
		if err := t.run(list[0].op, false, list[0].outcome); err != nil {
			return err
		}
		list = list[1:]
	}
	return nil
}

func isBatch(o op) bool {
	_, ok := o.(batch)
	return ok
}

// runKinds applies batches kind by kind.
func (t *tx) runKinds(list []pending) error {
	var order []reflect.Type
	kinds := map[reflect.Type][]pending{}
	for _, p := range list {
		kind := reflect.TypeOf(p.op)
		if kinds[kind] == nil {
			order = append(order, kind)
		}
		kinds[kind] = append(kinds[kind], p)
	}
	for _, kind := range order {
		if err := t.runKind(kinds[kind]); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) runKind(list []pending) error {
	if len(list) == 1 {
		return t.run(list[0].op, false, list[0].outcome)
	}
	rest, err := t.applyAll(list)
	if err != nil {
		return err
	}
	for _, p := range rest {
		if *p.outcome, err = t.guarded(p.op); err != nil {
			return err
		}
	}
	return nil
}

// applyAll applies ops of one kind; see apply.
func (t *tx) applyAll(list []pending) (rest []pending, err error) {
	t.failed = nil
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in %T: %v", list[0].op, p)
		}
	}()
	rest, err = list[0].op.(batch).applyAll(t, list) //nolint:errcheck // isBatch said so
	return rest, unavailable(errors.Join(err, t.failed))
}

// table is the text and the parameters of a table of values, each column a
// parameter, whose rows keep their order in the column ord. All rows have
// values of the same types.
func table(columns string, rows [][]any) (text string, args []any) {
	names := strings.Split(columns, ", ")
	types := make([]string, len(names))
	args = make([]any, len(names))
	for i := range names {
		var kind string
		args[i], kind = column(rows, i)
		types[i] = fmt.Sprintf("$%d::%s[]", i+1, kind)
	}
	return "unnest(" + strings.Join(types, ", ") + ") WITH ORDINALITY AS u(" + columns + ", ord)", args
}

func column(rows [][]any, i int) (values any, kind string) {
	switch plain(rows[0][i : i+1])[0].(type) {
	case int64:
		return gather[int64](rows, i), "bigint"
	case []byte:
		return gather[[]byte](rows, i), "bytea"
	}
	return gather[string](rows, i), "text"
}

func gather[V any](rows [][]any, i int) []V {
	list := make([]V, len(rows))
	for n, row := range rows {
		list[n] = plain(row[i : i+1])[0].(V) //nolint:errcheck,forcetypeassert // a programmer's mistake; applyAll recovers
	}
	return list
}
