package store

import (
	"errors"
	"testing"

	"postern/internal/postern"
)

// forbidClaims makes the database fail when an idempotency key is written.
func (e engine) forbidClaims(t *testing.T, db *Store) {
	t.Helper()
	texts := []string{`CREATE TRIGGER claimed BEFORE INSERT ON idempotency BEGIN SELECT RAISE(ABORT, 'claimed'); END`}
	if e.postgres {
		texts = []string{
			`CREATE FUNCTION claimed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'claimed'; END $$`,
			`CREATE TRIGGER claimed BEFORE INSERT ON idempotency FOR EACH ROW EXECUTE FUNCTION claimed()`,
		}
	}
	for _, text := range texts {
		if err := db.db.Do(t.Context(), opFunc(func(tx *tx) error { return tx.Exec(text) })); err != nil {
			t.Fatal(err)
		}
	}
}

// Refusing a write with an idempotency key writes nothing, not even for the time being: the
// engine would have to write the other operations of its group again.
func TestARefusalClaimsNoKey(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, d, e := on.endpoint(t)
		receiveN(t, db, d, 1)
		due := finish(t, db, e, succeed)
		change(t, db, e, func(e *postern.Endpoint) { e.Status = postern.EndpointPaused })
		on.forbidClaims(t, db)
		ctx, ws := t.Context(), d.WorkspaceID
		once := &Once{WorkspaceID: ws, Method: "POST", Path: "/", Key: "k", Answer: []byte("a"), At: testNow}
		link, page := openLinkOf(d, 5), OpenLinkPage{WorkspaceID: ws, DeviceID: d.ID, Once: once}
		link.Once = once
		notice, replay := postern.Delivery{EndpointID: e.ID}, postern.Replay{WorkspaceID: ws, EndpointID: e.ID}
		_, retried := db.Deliveries.Retry(ctx, ws, due[0].ID, testNow, once)
		_, changed := db.Endpoints.Change(ctx, ws, e.ID, once, func(*postern.Endpoint) error {
			return postern.Errorf(postern.ResourceNotAllowed, "no")
		})
		for what, got := range map[string]struct {
			err  error
			want postern.Reason
		}{
			"a retry":      {retried, postern.EndpointNotActive},
			"a change":     {changed, postern.ResourceNotAllowed},
			"an endpoint":  {db.Endpoints.Create(ctx, e, 1, once), postern.EndpointLimit},
			"a notice":     {db.Deliveries.QueueNotice(ctx, ws, notice, nil, once), postern.EndpointNotActive},
			"a link":       {db.Links.Open(ctx, link), postern.DeviceAlreadyLinked},
			"a link page":  {db.LinkPages.Open(ctx, page), postern.NoOpenLink},
			"a replay":     {db.Replays.Create(ctx, replay, once), postern.EndpointNotActive},
			"a new device": {db.Devices.Create(ctx, d, once), ""},
		} {
			if got.want == "" { // nothing refuses it, so it claims the key
				if got.err == nil || postern.ReasonOf(got.err) != postern.Internal {
					t.Errorf("%s = %v, want the failure of the claim", what, got.err)
				}
			} else if postern.ReasonOf(got.err) != got.want {
				t.Errorf("%s = %v, want %s", what, got.err, got.want)
			}
		}
	})
}

// A refusal does not make the engine run the operations of its group twice.
func TestARefusalLeavesItsGroupAlone(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws, checked, written := newWorkspace(t, db), 0, 0
		once := &Once{WorkspaceID: ws, Method: "POST", Path: "/", Key: "k", Answer: []byte("a"), At: testNow}
		refuse := func(*tx) error { checked++; return errors.New("no") }
		write := func(*tx) error { written++; return nil }
		if err := db.doOnce(t.Context(), ws, once, refuse, write); err == nil || checked != 1 || written != 0 {
			t.Errorf("refused with %v after %d checks and %d writes, want one check", err, checked, written)
		}
		for i, want := range []error{nil, ErrAlreadyDone} {
			if err := db.doOnce(t.Context(), ws, once, unchecked, write); !errors.Is(err, want) || written != 1 {
				t.Errorf("run %d: %v after %d writes, want %v after one", i, err, written, want)
			}
		}
	})
}
