package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"postern/internal/postern"
	"postern/internal/store"
)

// Idempotency identifies a request that must take effect only once.
type Idempotency struct {
	Method string
	Path   string // the path with its ids filled in
	Key    string
	Hash   [32]byte // SHA-256 of the body
}

// once returns what the database has of a request at a time.
func (i *Idempotency) once(ws postern.WorkspaceID, at postern.Time) store.Once {
	return store.Once{
		WorkspaceID: ws, Method: i.Method, Path: i.Path, Key: i.Key, RequestHash: i.Hash, At: at,
	}
}

// Created is what a request created, or what an earlier request with the same idempotency
// key created.
type Created[T any] struct {
	Value    T
	Replayed bool
}

type scopedKey struct {
	ws                postern.WorkspaceID
	method, path, key string
}

// create runs build and its commit at most once for an idempotency key. The commit writes
// the encrypted answer in the same transaction as the effect. A refusal stores nothing.
func create[T any](
	ctx context.Context,
	g *core,
	ws postern.WorkspaceID,
	idem *Idempotency,
	build func() (T, func(*store.Once) error, error),
) (Created[T], error) {
	if idem == nil {
		v, commit, err := build()
		if err != nil {
			return Created[T]{}, err
		}
		return Created[T]{Value: v}, commit(nil)
	}
	done, ok := g.running.start(scopedKey{ws, idem.Method, idem.Path, idem.Key})
	if !ok {
		return Created[T]{}, stillRunning()
	}
	defer done()
	return createOnce(ctx, g, ws, idem, build)
}

func stillRunning() error {
	return postern.Errorf(
		postern.IdempotencyRunning, "the first request with this Idempotency-Key is still running; try again shortly",
	)
}

func createOnce[T any](
	ctx context.Context,
	g *core,
	ws postern.WorkspaceID,
	idem *Idempotency,
	build func() (T, func(*store.Once) error, error),
) (Created[T], error) {
	once := idem.once(ws, g.time())
	if v, ok, err := replay[T](ctx, g, once); ok || err != nil {
		return Created[T]{v, true}, err
	}
	v, commit, err := build()
	if err != nil {
		return Created[T]{}, err
	}
	answer, err := json.Marshal(v)
	if err != nil {
		return Created[T]{}, fmt.Errorf("encode an answer: %w", err)
	}
	once.Answer = g.box.Seal(answer, once.Place())
	err = commit(&once)
	if errors.Is(err, store.ErrAlreadyDone) { // another node was faster
		v, ok, err := replay[T](ctx, g, once)
		if err == nil && !ok { // its answer is gone again
			err = stillRunning()
		}
		return Created[T]{v, true}, err
	}
	return Created[T]{Value: v}, err
}

func replay[T any](ctx context.Context, g *core, once store.Once) (v T, ok bool, err error) {
	hash, sealed, ok, err := g.db.Idempotency.Answered(ctx, once)
	if err != nil || !ok {
		return v, false, err
	}
	if hash != once.RequestHash {
		return v, false, postern.Errorf(
			postern.IdempotencyReused,
			"this Idempotency-Key was used with a different body; use a new one for a new request",
		)
	}
	answer, err := g.box.Open(sealed, once.Place())
	if err != nil {
		return v, false, err
	}
	return v, true, json.Unmarshal(answer, &v)
}
