package vendorsim

import "time"

const (
	// defaultLedger is how many of the newest entries are kept unless Options say otherwise.
	defaultLedger = 1 << 20
)

// Direction is the direction of a message, as seen from the linked account.
type Direction string

// The two directions.
const (
	Outbound Direction = "outbound" // a linked companion sent it
	Inbound  Direction = "inbound"  // it was sent to the linked account
)

// The types of messages that the simulator distinguishes. Others have whatsmeow's name for them
// ("reaction", "poll", "media").
const (
	TypeText = "text"
	// TypeUnreadable marks a message that the recipient's phone could not decrypt; it has asked for
	// another copy.
	TypeUnreadable = "unreadable"
)

// Entry is one message that passed through the vendor. Times are UTC, to the millisecond.
type Entry struct {
	N         int64     `json:"n"`                 // position in the ledger, from 1
	Account   string    `json:"account"`           // the linked number
	Peer      string    `json:"peer"`              // the number at the other end; "" for a message to a group or a channel
	Group     string    `json:"group,omitempty"`   // id of the group to which it was sent, or StatusID; "" in a direct chat
	Channel   string    `json:"channel,omitempty"` // id of the channel in which it was posted
	Direction Direction `json:"direction"`         // outbound or inbound
	NetworkID string    `json:"networkId"`         // the sender's id for the message
	Content             // as the recipient's simulated phone decrypted it
	ArrivedAt time.Time `json:"arrivedAt"`
	// AckedAt is when the vendor acknowledged an outbound message, or when the first companion
	// acknowledged an inbound one.
	AckedAt     *time.Time `json:"ackedAt"`
	DeliveredAt *time.Time `json:"deliveredAt"`        // outbound: when the recipient confirmed delivery
	ReadAt      *time.Time `json:"readAt"`             // when the recipient, at either end, read it
	PlayedAt    *time.Time `json:"playedAt,omitempty"` // when the recipient, at either end, played it
	Copies      int        `json:"copies"`             // how many times it arrived: 1 and one per resend
	// Refused is the code with which a companion refused an inbound message, 0 for none.
	Refused int `json:"refused,omitempty"`
	// AskedAt is when a companion first asked for another copy of an inbound message, because it could not decrypt it.
	AskedAt *time.Time `json:"askedAt,omitempty"`
	// Disturbed is true for an inbound message that a fault has damaged or sent out of its turn.
	Disturbed bool `json:"disturbed,omitempty"`
	// Missing are the members of the group whose phones could not decrypt an outbound message yet.
	Missing []string `json:"missing,omitempty"`
	// Strangers are those for whom an outbound message to the group was encrypted although they are not members.
	Strangers []string `json:"strangers,omitempty"`
}

type entryKey struct {
	account   number
	direction Direction
	id        string
}

// ledger holds the entries, oldest first, numbered without gaps.
type ledger struct {
	limit   int // entries that are kept
	entries []*Entry
	index   map[entryKey]*Entry
	last    int64
}

func (e *Entry) key() entryKey {
	return entryKey{number(e.Account[1:]), e.Direction, e.NetworkID}
}

func (l *ledger) add(e *Entry) {
	if l.index == nil {
		l.index = make(map[entryKey]*Entry)
	}
	l.last = e.N
	l.entries = append(l.entries, e)
	l.index[e.key()] = e
}

// after returns copies of at most limit entries with a greater position.
func (l *ledger) after(n int64, limit int) []Entry {
	if len(l.entries) == 0 || n >= l.last {
		return []Entry{}
	}
	skip := max(n-l.entries[0].N+1, 0)
	rest := l.entries[skip:]
	if limit > 0 && limit < len(rest) {
		rest = rest[:limit]
	}
	out := make([]Entry, len(rest))
	for i, e := range rest {
		out[i] = *e
	}
	return out
}

// Ledger returns at most limit entries with a position greater than after, oldest first; a limit of
// 0 or less means all. See [Options] for how many are kept.
func (v *Vendor) Ledger(after int64, limit int) []Entry {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.ledger.after(after, limit)
}

// now returns the current time in the precision of the ledger.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

func stamp() *time.Time {
	t := now()
	return &t
}
