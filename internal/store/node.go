package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
)

// Node is a server that shares the database with others.
type Node struct {
	ID   string
	Term int64  // see [Nodes.Join]
	Name string // for operators
}

// ErrLeaseLost means that the others have given a server up: what it owned may be theirs by now.
var ErrLeaseLost = errors.New("the lease of this server has ended")

// The times of leases are those of the database's clock.
const serverMillis = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`

// abandoned selects rows without an owner that is alive.
const abandoned = `NOT EXISTS (SELECT 1 FROM node n WHERE n.id = owner)`

// Join adds a server, or renews what an earlier process of it had: it owns the same as that, and
// what the earlier process still writes is refused, because the term is another. It is another also if the others have
// removed the server meanwhile, so terms follow the clock. From now on the fenced writes of this process need the lease.
func (s Nodes) Join(ctx context.Context, n Node, lease time.Duration) (Node, error) {
	err := s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		t.Wake(NodesChanged, "")
		return t.Row(`INSERT INTO node (id, term, name, started_at, lease_until)
			VALUES ($1, greatest(`+serverMillis+`, CAST($4 AS BIGINT) + 1), $2, `+serverMillis+`, `+serverMillis+` + $3)
			ON CONFLICT (id) DO UPDATE SET term = greatest(node.term + 1, excluded.term), name = excluded.name, leaving = 0,
			started_at = excluded.started_at, lease_until = excluded.lease_until RETURNING term`,
			[]any{n.ID, n.Name, lease.Milliseconds(), n.Term}, &n.Term)
	}))
	if err == nil {
		s.node.Store(&n)
	}
	return n, err
}

// Self returns this server; ok is false if it shares the database with no other.
func (s Nodes) Self() (n Node, ok bool) {
	if p := s.node.Load(); p != nil {
		return *p, true
	}
	return n, false
}

// fence refuses the writes of a server that the others have given up.
func (c *core) fence(t *db.Tx) error {
	n := c.node.Load()
	if n == nil {
		return nil // it shares the database with no other
	}
	err := t.Row(`SELECT term FROM node WHERE id = $1 AND term = $2`, []any{n.ID, n.Term}, new(int64))
	if errors.Is(err, sql.ErrNoRows) {
		return ErrLeaseLost
	}
	return err
}

// NodeStanding is what a server knows of itself and the others.
type NodeStanding struct {
	Leads bool // of those that do not stop, it has been there longest, and does what only one server may do
	Nodes int  // servers that do not stop
	All   int  // devices that are to be connected
	Mine  int  // those of them that it owns
	Free  int  // those that nobody owns
}

// Renew renews the lease of a server and gives up the servers whose lease is over. It returns
// [ErrLeaseLost] to a server that was itself given up.
//
// A server whose own lease is over gives up no other: after an outage of the database, the leases of
// all are over, and those who are alive renew theirs within moments.
func (s Nodes) Renew(ctx context.Context, n Node, lease time.Duration) (st NodeStanding, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		var inTime bool
		err := t.Row(`SELECT lease_until >= `+serverMillis+` FROM node WHERE id = $1 AND term = $2`,
			[]any{n.ID, n.Term}, &inTime)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrLeaseLost
		}
		if err != nil {
			return err
		}
		if err := t.Exec(`UPDATE node SET lease_until = `+serverMillis+` + $2 WHERE id = $1`, n.ID,
			lease.Milliseconds()); err != nil {
			return err
		}
		if inTime {
			if err := giveUpOthers(t); err != nil {
				return err
			}
		}
		st, err = readStanding(t, n.ID)
		return err
	}))
	return st, err
}

// giveUpOthers removes the servers whose lease is over.
func giveUpOthers(t *db.Tx) error {
	gone, err := t.Changed(`DELETE FROM node WHERE lease_until < ` + serverMillis)
	if gone > 0 {
		t.Wake(NodesChanged, "")
	}
	return err
}

func readStanding(t *db.Tx, id string) (st NodeStanding, err error) {
	var first string
	err = t.Row(`SELECT count(*), coalesce((SELECT id FROM node WHERE leaving = 0 ORDER BY started_at, id LIMIT 1), '')
		FROM node WHERE leaving = 0`, nil, &st.Nodes, &first)
	if err != nil {
		return st, err
	}
	st.Leads = first == id
	return st, t.Row(`SELECT count(*), count(*) FILTER (WHERE owner = $1), count(*) FILTER (WHERE `+abandoned+`)
		FROM device WHERE desired <> 'idle'`, []any{id}, &st.All, &st.Mine, &st.Free)
}

// Claim is a device that a server has taken.
type Claim struct {
	Device postern.DeviceID
	Status postern.Status
	Lost   bool // its owner was given up
}

// ClaimDevices makes a server the owner of up to limit devices that nobody owns and that are to be
// connected.
func (s Nodes) ClaimDevices(ctx context.Context, n Node, limit int) ([]Claim, error) {
	return s.claimDevices(ctx, n, `desired <> 'idle' ORDER BY id LIMIT $2 + 0`, limit)
}

// Unowned returns those of some devices that nobody owns.
func (s Nodes) Unowned(ctx context.Context, ids []postern.DeviceID) (free []postern.DeviceID, err error) {
	return s.list(ctx, `SELECT id FROM device WHERE id IN `+s.db.InList(1)+` AND `+abandoned, asJSON(ids))
}

// ClaimWanted makes a server the owner of those of some devices that nobody owns and that are not just
// to be connected: for those, see ClaimDevices.
func (s Nodes) ClaimWanted(ctx context.Context, n Node, ids []postern.DeviceID) ([]Claim, error) {
	return s.claimDevices(ctx, n, `desired <> 'connect' AND id IN `+s.db.InList(2), asJSON(ids))
}

func (s Nodes) claimDevices(ctx context.Context, n Node, which string, arg any) (list []Claim, err error) {
	err = s.db.Do(ctx, db.Fenced(db.Func(func(t *db.Tx) error {
		list = nil
		err := t.Rows(`SELECT id, status, owner <> '' FROM device WHERE `+abandoned+` AND CAST($1 AS TEXT) <> '' AND `+which,
			[]any{n.ID, arg}, func(r *sql.Rows) error {
				var c Claim
				err := r.Scan(&c.Device, &c.Status, &c.Lost)
				list = append(list, c)
				return err
			})
		if err != nil || len(list) == 0 {
			return err
		}
		ids := make([]postern.DeviceID, len(list))
		for i, c := range list {
			ids[i] = c.Device
		}
		return changeDevice(t, `UPDATE device SET owner = $1, epoch = epoch + 1 WHERE id IN `+t.InList(2), n.ID, asJSON(ids))
	})))
	return list, err
}

// ClaimEndpoints makes a server the owner of those of the endpoints that nobody owns, and returns
// all of them that it owns now.
func (s Nodes) ClaimEndpoints(
	ctx context.Context, n Node, ids []postern.EndpointID,
) (mine []postern.EndpointID, err error) {
	err = s.db.Do(ctx, db.Fenced(db.Func(func(t *db.Tx) error {
		mine = nil
		return t.Rows(`UPDATE endpoint SET owner = $1 WHERE id IN `+t.InList(2)+` AND (owner = $1 OR `+abandoned+`)
			RETURNING id`, []any{n.ID, asJSON(ids)}, func(r *sql.Rows) error {
			var id postern.EndpointID
			err := r.Scan(&id)
			mine = append(mine, id)
			return err
		})
	})))
	return mine, err
}

// Devices returns the devices that a server owns. It does not tell whether their last owner was given up.
func (s Nodes) Devices(ctx context.Context, n Node) (list []Claim, err error) {
	err = s.db.Rows(ctx, `SELECT id, status FROM device WHERE owner = $1`, []any{n.ID}, func(r *sql.Rows) error {
		var c Claim
		err := r.Scan(&c.Device, &c.Status)
		list = append(list, c)
		return err
	})
	return list, err
}

// Movable returns the devices of a server that another one may take: those that are to be connected.
func (s Nodes) Movable(ctx context.Context, n Node) (ids []postern.DeviceID, err error) {
	return s.list(ctx, `SELECT id FROM device WHERE owner = $1 AND desired = 'connect' ORDER BY id`, n.ID)
}

func (s Nodes) list(ctx context.Context, query string, arg any) (ids []postern.DeviceID, err error) {
	err = s.db.Rows(ctx, query, []any{arg}, func(r *sql.Rows) error {
		var id postern.DeviceID
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// Release gives up devices, so that others take them.
func (s Nodes) Release(ctx context.Context, n Node, ids ...postern.DeviceID) error {
	return s.db.Do(ctx, db.Fenced(db.Func(func(t *db.Tx) error {
		t.Wake(NodesChanged, "")
		return changeDevice(t, `UPDATE device SET owner = '' WHERE owner = $1 AND id IN `+t.InList(2), n.ID, asJSON(ids))
	})))
}

// Leave notes that a server stops: the others share out its devices, which it still owns until it
// releases them.
func (s Nodes) Leave(ctx context.Context, n Node) error {
	return s.db.Do(ctx, db.Fenced(db.Func(func(t *db.Tx) error {
		t.Wake(NodesChanged, "")
		return t.Exec(`UPDATE node SET leaving = 1 WHERE id = $1`, n.ID)
	})))
}

// Quit removes a server, whose devices and endpoints others take at once.
func (s Nodes) Quit(ctx context.Context, n Node) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		left, err := t.Changed(`DELETE FROM node WHERE id = $1 AND term = $2`, n.ID, n.Term)
		if err != nil || left == 0 { // another process has what this one owned
			return err
		}
		t.Wake(NodesChanged, "")
		return errors.Join(changeDevice(t, `UPDATE device SET owner = '' WHERE owner = $1`, n.ID),
			t.Exec(`UPDATE endpoint SET owner = '' WHERE owner = $1`, n.ID))
	}))
}
