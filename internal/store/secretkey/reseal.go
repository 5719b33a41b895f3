package secretkey

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"

	"postern/internal/db"
	"postern/internal/seal"
	"postern/internal/store"
)

// pageRows is how many rows one step looks at, and changes in one transaction at most.
const pageRows = 100

// Resealing goes once through all encrypted values and encrypts those of earlier keys again with the present
// one. If it is interrupted, a new one finds what is left. It changes a value only if that is still what was
// read, so nothing that servers write meanwhile is lost.
type Resealing struct {
	Changed int64 // values that were encrypted again
	Broken  int64 // values that no key opens, or that are not of the form of their column

	table   *Table
	box     *seal.Box
	columns []column
	after   []string
}

// NewResealing returns a pass that has not begun.
func (t *Table) NewResealing(box *seal.Box) *Resealing {
	return &Resealing{table: t, box: box, columns: columns()}
}

// Step goes on by a page. more is false when all values were seen.
func (r *Resealing) Step(ctx context.Context) (changed int64, more bool, err error) {
	if len(r.columns) == 0 {
		return 0, false, nil
	}
	c := r.columns[0]
	list, after, err := r.table.read(ctx, c, r.after, r.box.Head(r.box.Sealing()))
	if err != nil {
		return 0, true, err
	}
	rows, broken := r.freshen(c, list)
	if changed, err = r.table.write(ctx, c, rows, r.box.Sealing()); err != nil {
		return 0, true, err
	}
	r.Changed += changed
	r.Broken += broken
	if r.after = after; after == nil {
		r.columns = r.columns[1:]
	}
	return changed, len(r.columns) > 0, nil
}

// row is a row with a value.
type row struct {
	keys  []string
	value []byte
}

// read returns those rows of a page whose values the key of head has not encrypted, and the last row of the
// page; nil if it is the last page.
func (t *Table) read(ctx context.Context, c column, after []string, head []byte) (list []row, last []string, err error) {
	args := make([]any, 0, len(c.keys)+2)
	for i := range c.keys {
		if after == nil {
			args = append(args, "")
		} else {
			args = append(args, after[i])
		}
	}
	args = append(args, pageRows)
	if !c.list {
		args = append(args, head)
	}
	n := 0
	err = t.db.Rows(ctx, c.page(len(head)), args, func(r *sql.Rows) error {
		one := row{keys: make([]string, len(c.keys))}
		dst := make([]any, 0, len(c.keys)+1)
		for i := range one.keys {
			dst = append(dst, &one.keys[i])
		}
		err := r.Scan(append(dst, &one.value)...)
		if one.value != nil {
			list = append(list, one)
		}
		n, last = n+1, one.keys
		return err
	})
	if n < pageRows {
		last = nil
	}
	return list, last, err
}

// freshen returns the rows of the statement for the values that can be encrypted again, and the number of the
// others.
func (r *Resealing) freshen(c column, list []row) (rows [][]any, broken int64) {
	for _, one := range list {
		fresh, err := c.reseal(r.box, one.keys, one.value)
		if err != nil {
			broken++
			continue
		}
		if bytes.Equal(fresh, one.value) {
			continue
		}
		var args []any
		for _, key := range one.keys {
			args = append(args, key)
		}
		rows = append(rows, append(args, c.stored(one.value), c.stored(fresh)))
	}
	return rows, broken
}

func (t *Table) write(ctx context.Context, c column, rows [][]any, sealing seal.KeyID) (changed int64, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	err = t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) (err error) {
		if c.table == "device" {
			tx.Wake(store.DeviceRow, "")
		}
		if changed, err = tx.Count(c.update, rows); err != nil {
			return fmt.Errorf("encrypt values of %s again: %w", c.table, err)
		}
		return tx.Exec(`UPDATE secret_key SET resealed = resealed + $2 WHERE id = $1`, string(sealing), changed)
	})))
	return changed, err
}

// Count counts the values that are encrypted with a key before the one that encrypts now.
func (t *Table) Count(ctx context.Context, box *seal.Box, id seal.KeyID) (n int64, err error) {
	head := box.Head(id)
	for _, c := range columns() {
		for after := []string(nil); ; {
			list, last, err := t.read(ctx, c, after, box.Head(box.Sealing()))
			if err != nil {
				return n, err
			}
			for _, one := range list {
				if c.sealedWith(head, one.value) {
					n++
				}
			}
			if after = last; last == nil {
				break
			}
		}
	}
	return n, nil
}
