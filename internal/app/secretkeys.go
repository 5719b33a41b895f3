package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"postern/internal/config"
	"postern/internal/health"
	"postern/internal/lease"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/secretkey"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

const (
	lookForKeys  = 2 * time.Second  // between two looks at the key file and the database
	resealEvery  = time.Second      // between two looks whether values are to be encrypted again
	resealRest   = 4                // rests for each time that a page with changes took, so that others get the writer
	resealReport = 10 * time.Second // between two lines in the log
)

// secretKeys keeps the box in step with the key file and the database.
type secretKeys struct {
	db     *store.Store
	table  *secretkey.Table
	box    *seal.Box
	path   string
	log    *slog.Logger
	leases *lease.Holder // nil for a command
	count  prometheus.Counter

	refreshing sync.Mutex // one refresh at a time; it may wait for the database
	announce   string     // what this server has said last

	mu      sync.Mutex // guards the fields below, which only a refresh changes
	file    seal.Keys
	list    []secretkey.Key
	lacking []string // servers that do not know the first key of the file yet
}

// openKeys reads the secret keys, and refuses a key file with which not all values could be opened. It creates a
// key only for a database that has never had one.
func openKeys(ctx context.Context, cfg config.Data, db *store.Store) (*secretKeys, error) {
	k := &secretKeys{db: db, table: secretkey.Of(db), path: cfg.KeyFile(), log: slog.New(slog.DiscardHandler)}
	check, err := db.Settings.Get(ctx, keyCheck)
	if err != nil {
		return nil, err
	}
	if check == "" {
		k.file, err = cfg.LoadKeys()
	} else {
		k.file, err = seal.LoadKeys(k.path)
	}
	if errors.Is(err, fs.ErrNotExist) && check != "" {
		return nil, fmt.Errorf("there is no file %s, but the database is encrypted with a secret key; "+
			"restore the file, or name it by POSTERN_SECRET_KEY_FILE", k.path)
	}
	if err != nil {
		return nil, err
	}
	return k, k.open(ctx, check)
}

// open makes the box. check is by what the database recognizes its first key.
func (k *secretKeys) open(ctx context.Context, check string) (err error) {
	first, hasFirst := k.file.Checked(check)
	if k.list, err = k.table.List(ctx); err != nil {
		return err
	}
	if len(k.list) == 0 { // it was never rotated
		if check == "" {
			first, hasFirst = k.file.IDs()[0], true
		}
		if !hasFirst {
			return errors.New("the secret key is not the one this database was sealed with; " +
				"restore secret.key, or name it by POSTERN_SECRET_KEY_FILE")
		}
		if err := k.table.Begin(ctx, first); err != nil {
			return err
		}
		if k.list, err = k.table.List(ctx); err != nil {
			return err
		}
	}
	needed := secretkey.Needed(k.list)
	if err := k.refuse(needed); err != nil {
		return err
	}
	if k.box, err = seal.NewBoxOf(k.file, first, needed[0]); err != nil {
		return err
	}
	if check == "" {
		return k.db.Settings.Set(ctx, keyCheck, k.box.Check())
	}
	return secretkey.Recall(k.box, k.list)
}

// refuse returns an error that names the keys that the file lacks.
func (k *secretKeys) refuse(needed []seal.KeyID) error {
	if missing := missingIn(k.file, needed); len(missing) > 0 {
		return fmt.Errorf("the file %s lacks the secret key %s, with which values in the database are encrypted; "+
			"add its line from a copy of the file", k.path, joined(missing))
	}
	return nil
}

func missingIn(file seal.Keys, needed []seal.KeyID) []seal.KeyID {
	return slices.DeleteFunc(slices.Clone(needed), file.Has)
}

func joined(ids []seal.KeyID) (text string) {
	for i, id := range ids {
		if i > 0 {
			text += " and "
		}
		text += string(id)
	}
	return text
}

// run keeps the box in step until ctx is done. It fails if the database is encrypted with a key that this server
// does not have.
func (k *secretKeys) run(ctx context.Context) error {
	changed := k.db.Listen(store.SecretKeysChanged, "")
	defer changed.Close()
	tick := time.NewTicker(lookForKeys)
	defer tick.Stop()
	for {
		err := k.refresh(ctx)
		if _, fatal := errors.AsType[*seal.MissingKeyError](err); fatal {
			return fmt.Errorf("%w (%s)", err, k.path)
		}
		if err != nil && ctx.Err() == nil {
			k.log.WarnContext(ctx, "look for secret keys", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-changed.C():
			changed.Take()
		}
	}
}

// refresh takes up what has changed in the key file and in the database. A key file that cannot be read is reported
// by the check of the key file.
func (k *secretKeys) refresh(ctx context.Context) error {
	k.refreshing.Lock()
	defer k.refreshing.Unlock()
	if file, err := seal.LoadKeys(k.path); err == nil {
		k.set(func() { k.file = file })
		k.box.Add(file)
	}
	if err := k.follow(ctx); err != nil {
		return err
	}
	return k.lead(ctx)
}

// set changes what is known. Nobody who reads it waits for the database.
func (k *secretKeys) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

// follow encrypts with the key that the database names, and tells the other servers which keys this one knows.
func (k *secretKeys) follow(ctx context.Context) error {
	list, err := k.table.List(ctx)
	if err != nil {
		return err
	}
	k.set(func() { k.list = list })
	if needed := secretkey.Needed(k.list); len(needed) > 0 && needed[0] != k.box.Sealing() {
		if err := k.box.Use(needed[0]); err != nil {
			return err
		}
		k.log.InfoContext(ctx, "this server encrypts with another secret key", "key", needed[0])
	}
	if err := secretkey.Recall(k.box, k.list); err != nil {
		return err
	}
	n, _ := k.db.Nodes.Self()
	said := fmt.Sprint(n.Term, k.box.IDs())
	if said == k.announce {
		return nil
	}
	if err := k.table.Announce(ctx, k.box.IDs()); err != nil {
		return err
	}
	k.announce = said
	return nil
}

// lead makes the first key of the file the one that encrypts, once all servers know it. A key that has encrypted
// before does not come back. A file that lacks a key that is needed was replaced by mistake, and changes nothing.
func (k *secretKeys) lead(ctx context.Context) error {
	before := k.lacking
	k.set(func() { k.lacking = nil })
	wanted := k.file.IDs()[0]
	if k.leases == nil || !k.leases.Leads() || k.knows(wanted) || len(missingIn(k.file, secretkey.Needed(k.list))) > 0 {
		return nil
	}
	done, err := k.table.Switch(ctx, k.box, wanted)
	if err != nil {
		return err
	}
	if done {
		k.log.InfoContext(ctx, "a new secret key encrypts", "key", wanted)
		return k.follow(ctx)
	}
	lacking, err := k.table.Lacking(ctx, wanted)
	if err != nil {
		return err
	}
	k.set(func() { k.lacking = lacking })
	if !slices.Equal(before, lacking) {
		k.log.InfoContext(ctx, "a new secret key waits until all servers know it", "key", wanted, "lacking", lacking)
	}
	return nil
}

func (k *secretKeys) knows(id seal.KeyID) bool {
	return slices.ContainsFunc(k.list, func(known secretkey.Key) bool { return known.ID == id })
}

// reseal encrypts the values of earlier keys again, whenever there are such keys. One server at a time does it.
func (k *secretKeys) reseal(ctx context.Context) error {
	for postern.Sleep(ctx, resealEvery) == nil {
		due, err := k.isDue(ctx)
		if err == nil && due {
			err = k.resealAll(ctx)
		}
		if err != nil && ctx.Err() == nil {
			k.log.WarnContext(ctx, "values are encrypted again later", "error", err)
		}
	}
	return nil
}

// isDue tells whether a key is retiring and no server encrypts with it any more.
func (k *secretKeys) isDue(ctx context.Context) (bool, error) {
	k.mu.Lock()
	needed := secretkey.Needed(k.list)
	k.mu.Unlock()
	if len(needed) < 2 || needed[0] != k.box.Sealing() {
		return false, nil
	}
	return k.table.Agreed(ctx, needed[0])
}

// resealAll goes through all values until a pass finds nothing to do.
func (k *secretKeys) resealAll(ctx context.Context) error {
	sealing := k.box.Sealing()
	k.log.InfoContext(ctx, "values of earlier secret keys are encrypted again", "key", sealing)
	for {
		pass := k.table.NewResealing(k.box)
		if err := k.pass(ctx, pass); err != nil {
			return err
		}
		if pass.Changed > 0 {
			continue
		}
		if pass.Broken > 0 {
			k.log.ErrorContext(ctx, "some values are opened by no secret key, so the earlier keys stay needed; "+
				"see docs/operations.md", "values", pass.Broken)
			return postern.Sleep(ctx, time.Minute)
		}
		k.log.InfoContext(ctx, "no value needs an earlier secret key any more", "key", sealing)
		return k.table.Retire(ctx, sealing)
	}
}

func (k *secretKeys) pass(ctx context.Context, pass *secretkey.Resealing) error {
	reported := time.Now()
	for {
		began := time.Now()
		changed, more, err := pass.Step(ctx)
		if err != nil || !more {
			return err
		}
		if k.count != nil {
			k.count.Add(float64(changed))
		}
		if time.Since(reported) > resealReport {
			reported = time.Now()
			k.log.InfoContext(ctx, "values are being encrypted again", "so_far", pass.Changed)
		}
		rest := time.Since(began)
		if changed > 0 {
			rest *= resealRest
		}
		if err := postern.Sleep(ctx, rest); err != nil {
			return err
		}
	}
}

// measure registers the metrics.
func (k *secretKeys) measure(r prometheus.Registerer) {
	f := promauto.With(r)
	k.count = f.NewCounter(prometheus.CounterOpts{
		Name: "postern_resealed_values_total", Help: "Values that this server has encrypted again with a new secret key.",
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "postern_secret_keys_retiring",
		Help: "Secret keys that were replaced and that values may still be encrypted with. Of the whole database.",
	}, func() float64 {
		k.mu.Lock()
		defer k.mu.Unlock()
		return float64(max(len(secretkey.Needed(k.list))-1, 0))
	})
}

// checkFile reports a key file with which the server could not start again.
func (k *secretKeys) checkFile() error {
	file, err := seal.LoadKeys(k.path)
	if health.IsNoFiles(err) {
		return nil // the check of the files reports it
	}
	if err != nil {
		return &health.Failure{Reason: "secret-key-unreadable",
			Detail: fmt.Sprintf("The server could not start again: %v. "+
				"Restore the file, readable only by the server.", err)}
	}
	k.mu.Lock()
	needed := secretkey.Needed(k.list)
	k.mu.Unlock()
	if missing := missingIn(file, needed); len(missing) > 0 {
		return &health.Failure{Reason: "secret-key-changed", Detail: fmt.Sprintf("The file %s lacks the secret key %s, "+
			"with which values in the database are encrypted. Restore the file.", k.path, joined(missing))}
	}
	return nil
}

// SecretKey is what operators see of a secret key.
type SecretKey struct {
	ID       seal.KeyID      `json:"id"`
	State    secretkey.State `json:"state"`             // "waiting" until all servers know it
	InFile   bool            `json:"inFile"`            // it is in the key file of the server
	Since    postern.Time    `json:"since,omitzero"`    // when it began to encrypt
	Resealed int64           `json:"resealed"`          // values that were encrypted again with it
	Lacking  []string        `json:"lacking,omitempty"` // servers that do not know it yet
}

// keyWaits is the state of a key that has not encrypted yet.
const keyWaits secretkey.State = "waiting"

// SecretKeys are the secret keys of a server, and the path of its key file.
type SecretKeys struct {
	File string      `json:"file"`
	Keys []SecretKey `json:"keys"`
}

// show returns what is known, the newest key first.
func (k *secretKeys) show() SecretKeys {
	k.mu.Lock()
	defer k.mu.Unlock()
	path, err := filepath.Abs(k.path)
	if err != nil {
		path = k.path
	}
	s := SecretKeys{File: path}
	for _, id := range k.file.IDs() {
		if !k.knows(id) {
			s.Keys = append(s.Keys, SecretKey{ID: id, State: keyWaits, InFile: true, Lacking: k.lacking})
		}
	}
	for _, known := range k.list {
		s.Keys = append(s.Keys, SecretKey{
			ID: known.ID, State: known.State, InFile: k.file.Has(known.ID), Since: known.Since, Resealed: known.Resealed,
		})
	}
	return s
}

// unneeded returns the keys of the file that are retired, after a look whether that is true: a server that hung may
// have encrypted with one later. With lost, it does not look.
func (k *secretKeys) unneeded(ctx context.Context, lost bool) (ids []seal.KeyID, err error) {
	if err := k.refresh(ctx); err != nil {
		return nil, err
	}
	for _, one := range k.show().Keys {
		if !one.InFile || one.State == secretkey.Encrypts || one.State == keyWaits || one.State == secretkey.Retiring && !lost {
			continue
		}
		if !lost {
			n, err := k.table.Count(ctx, k.box, one.ID)
			if err != nil {
				return nil, err
			}
			if n > 0 {
				return nil, errors.Join(k.table.Revive(ctx, one.ID), fmt.Errorf(
					"%d values are still encrypted with the secret key %s; the server encrypts them again", n, one.ID))
			}
		}
		ids = append(ids, one.ID)
	}
	if lost && len(ids) > 0 {
		return ids, k.table.Retire(ctx, k.box.Sealing())
	}
	return ids, nil
}
