package vendorsim

import "fmt"

// record adds an entry to the ledger. The caller holds v.mu.
func (v records) record(e Entry) *Entry {
	e.N, e.Copies, e.ArrivedAt = v.ledger.last+1, 1, now()
	v.ledger.add(&e)
	v.saveEntry(&e)
	for len(v.ledger.entries) > v.ledger.limit {
		old := v.ledger.entries[0]
		v.ledger.entries = v.ledger.entries[1:]
		delete(v.ledger.index, old.key())
		v.remove(ledgerKey(old.N))
	}
	return &e
}

// entry finds a message in the ledger. The caller holds v.mu.
func (v records) entry(account number, d Direction, id string) *Entry {
	return v.ledger.index[entryKey{account, d, id}]
}

// saveEntry writes an entry to the journal. The caller holds v.mu.
func (v records) saveEntry(e *Entry) {
	v.put(ledgerKey(e.N), e)
	v.notify()
}

func ledgerKey(n int64) string { return fmt.Sprintf("ledger/%016d", n) }

// copyState is whether an earlier copy of a message has arrived.
type copyState int

const (
	copyNew        copyState = iota
	copyUnreadable           // one has arrived, but the recipient's phone could not decrypt it
	copyReadable
)

// known returns the state in the ledger of a message that a companion sent.
func (v records) known(account number, id string) copyState {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := v.entry(account, Outbound, id); {
	case e == nil:
		return copyNew
	case e.Type == TypeUnreadable:
		return copyUnreadable
	default:
		return copyReadable
	}
}

// disturbed records that a fault has damaged an inbound message, or has sent it out of its turn. The caller holds v.mu.
func (v records) disturbed(account number, id string) {
	if e := v.entry(account, Inbound, id); e != nil && !e.Disturbed {
		e.Disturbed = true
		v.saveEntry(e)
	}
}

// askedFor records that a companion asks for another copy of an inbound message.
func (v records) askedFor(account number, id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.entry(account, Inbound, id); e != nil && e.AskedAt == nil {
		e.AskedAt = stamp()
		v.saveEntry(e)
	}
}

// countCopy counts another copy of a message that a companion sent.
func (v records) countCopy(account number, id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.entry(account, Outbound, id); e != nil {
		e.Copies++
		v.saveEntry(e)
	}
}

// bookOutbound adds a message of a companion to the ledger, shows it on the phones of both ends and,
// if the recipient is a linked account, adds it to the ledger a second time as inbound. It returns
// false if the ledger already has the message.
func (v records) bookOutbound(e Entry) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	booked, fresh := v.enter(e)
	if !fresh || e.Type == TypeUnreadable {
		return fresh
	}
	from, to := number(e.Account[1:]), number(e.Peer[1:])
	s := Shown{ID: e.NetworkID, From: e.Account, To: e.Peer, Content: e.Content, At: booked.ArrivedAt}
	v.show(from, s)
	if from == to {
		return true
	}
	v.show(to, s)
	if _, err := v.devices.linkedAccount(to); err == nil {
		v.record(Entry{
			Account: e.Peer, Peer: e.Account, Direction: Inbound, NetworkID: e.NetworkID, Content: e.Content,
		})
	}
	return true
}

// bookInGroup shows a message on the phones of a group's members, and adds it to the ledger of those others that are
// linked accounts. The caller holds v.mu.
func (v records) bookInGroup(g *group, s Shown) {
	for _, n := range g.saved.Members {
		v.show(n, g.shownTo(n, s))
		if _, err := v.devices.linkedAccount(n); err == nil && n.String() != s.From {
			v.record(Entry{
				Account: n.String(), Peer: s.From, Group: s.Group, Direction: Inbound, NetworkID: s.ID, Content: s.Content,
			})
		}
	}
}

// enter adds an entry, or completes one whose earlier copy could not be decrypted. fresh is true if
// it did either. The caller holds v.mu.
func (v records) enter(e Entry) (entry *Entry, fresh bool) {
	old := v.ledger.index[e.key()]
	if old == nil {
		return v.record(e), true
	}
	old.Copies++
	fresh = old.Type == TypeUnreadable
	if fresh {
		old.Content = e.Content
	}
	v.saveEntry(old)
	return old, fresh
}

// book shows a text on the phones of both ends. If the recipient is a linked account, book also adds
// the text to the ledger. The caller holds v.mu.
func (v records) book(t text) {
	if _, err := v.devices.linkedAccount(t.To); err == nil && t.From != t.To {
		v.record(Entry{
			Account: t.To.String(), Peer: t.From.String(), Direction: Inbound,
			NetworkID: t.ID, Content: t.Content,
		})
	}
	m := Shown{ID: t.ID, From: t.From.String(), To: t.To.String(), Content: t.Content, At: t.At}
	v.show(t.From, m)
	if t.To != t.From {
		v.show(t.To, m)
	}
}
