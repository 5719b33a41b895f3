package keys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"postern/internal/postern"
)

// load reads a record stored as JSON.
func (r *Ring) load(ctx context.Context, k ref, into any) (found bool, err error) {
	rec, err := r.get(ctx, k)
	if err != nil || rec.value == nil {
		return false, err
	}
	return true, r.check(ctx, unmarshal(rec.value, into))
}

func (b *batch) load(ctx context.Context, k ref, into any) (found bool, err error) {
	rec, err := b.get(ctx, k)
	if err != nil || rec.value == nil {
		return false, err
	}
	return true, unmarshal(rec.value, into)
}

// save writes a record stored as JSON.
func (b *batch) save(k ref, at postern.Time, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write a record: %w", err)
	}
	b.put(k, record{value: value, at: at})
	return nil
}

func unmarshal(value []byte, into any) error {
	if err := json.Unmarshal(value, into); err != nil {
		return errors.New("a record cannot be read") // the text of a JSON error may contain part of the value
	}
	return nil
}
