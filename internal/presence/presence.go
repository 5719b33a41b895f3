// Package presence hands what others show at the moment, who types and who is online, from the sessions of devices to
// those who read it. A reader and the session may be on different servers. Nothing of it is stored: a reader who is slow
// gets the newest updates, and one who comes later misses what was before.
package presence

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/seal"
)

// topic is that of the news that the servers tell each other.
const topic db.Topic = "presence"

const (
	// MaxChats is how many people one reader may ask about.
	MaxChats = 50

	maxWanted    = 100    // people whom the readers of a device on one server ask about
	maxElsewhere = 20_000 // devices that other servers read
	maxWaiting   = 64     // updates that wait for one reader
	maxAllWait   = 20_000 // updates that wait for all readers

	beat     = 10 * time.Second // between two words of a server that it still reads
	patience = 3 * beat         // with a server, or a session, that says nothing
)

// Update is what is shown at the moment. One of its members is set.
type Update struct {
	Typing   *postern.ShownTyping   `json:"typing,omitempty"`
	Presence *postern.ShownPresence `json:"presence,omitempty"`
	Watching *postern.Watching      `json:"watching,omitempty"`
}

// replaces reports whether an older update is worth nothing beside u.
func (u Update) replaces(old Update) bool {
	switch {
	case u.Typing != nil && old.Typing != nil:
		a, b := u.Typing, old.Typing
		return a.ChatID == b.ChatID && a.From == b.From && a.FromLID == b.FromLID
	case u.Presence != nil && old.Presence != nil:
		return u.Presence.ChatID == old.Presence.ChatID
	}
	return u.Watching != nil && old.Watching != nil
}

// Board is where sessions put what others show, and readers find it.
type Board struct {
	db  *db.DB
	box *seal.Box

	mu      sync.Mutex // guards the fields below, and the readers
	devices map[postern.DeviceID]*device
	waiting int // updates, of all readers

	watch   sync.RWMutex // held while changed is called
	changed func(postern.DeviceID)
}

// device is one that somebody reads.
type device struct {
	readers   []*Reader
	elsewhere map[string]interest // by server
	seen      map[string]Update   // the newest presences of the people whom somebody asks about, by chat
	watching  *postern.Watching   // what its session said last
	saidAt    time.Time           // when
}

// interest is what another server reads.
type interest struct {
	chats []string
	until time.Time
}

// New returns a Board of a server on a database.
func New(engine *db.DB, box *seal.Box) *Board {
	b := &Board{db: engine, box: box, devices: map[postern.DeviceID]*device{}, changed: func(postern.DeviceID) {}}
	engine.Hear(topic, b.hear)
	return b
}

// Watch has do called when it has changed what is read of a device, and now and then, until it is called again. It must
// return at once.
func (b *Board) Watch(do func(postern.DeviceID)) {
	b.watch.Lock()
	defer b.watch.Unlock()
	b.changed = do
}

func (b *Board) change(id postern.DeviceID) {
	b.watch.RLock()
	defer b.watch.RUnlock()
	b.changed(id)
}

// Run tells other servers what is read here, and forgets those that say nothing, until ctx is done.
func (b *Board) Run(ctx context.Context) error {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.beat(time.Now())
		case <-ctx.Done():
			return nil
		}
	}
}

// beat is one round of Run.
func (b *Board) beat(now time.Time) {
	for _, id := range b.expire(now) {
		b.announce(id)
		b.change(id)
	}
}

// expire forgets servers that say nothing, and tells readers of sessions that say nothing. It returns all devices that
// somebody reads or has read.
func (b *Board) expire(now time.Time) (ids []postern.DeviceID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, d := range b.devices {
		ids = append(ids, id)
		for server, i := range d.elsewhere {
			if now.After(i.until) {
				delete(d.elsewhere, server)
			}
		}
		if d.watching != nil && d.watching.Watching && now.Sub(d.saidAt) > patience {
			b.share(d, Update{Watching: &postern.Watching{NotWatched: []string{}}}, now)
		}
		b.tidy(id, d)
	}
	return ids
}

// Wanted is what is read of a device.
type Wanted struct {
	Read  bool
	Chats []string // of the people who are asked about
}

// Wanted returns what is read of a device, here and on other servers.
func (b *Board) Wanted(id postern.DeviceID) (w Wanted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.devices[id]
	if d == nil {
		return w
	}
	w.Read, w.Chats = true, d.chats()
	for _, i := range d.elsewhere {
		w.Chats = append(w.Chats, i.chats...)
	}
	slices.Sort(w.Chats)
	w.Chats = slices.Compact(w.Chats)
	return w
}

// chats returns about whom readers here ask; those who came first have precedence.
func (d *device) chats() (list []string) {
	for _, r := range d.readers {
		for _, chat := range r.chats {
			if len(list) < maxWanted && !slices.Contains(list, chat) {
				list = append(list, chat)
			}
		}
	}
	return list
}

// Publish hands an update of a device's session to those who read it. It never waits.
func (b *Board) Publish(id postern.DeviceID, u Update) {
	b.mu.Lock()
	d := b.devices[id]
	if d == nil {
		b.mu.Unlock()
		return
	}
	b.share(d, u, time.Now())
	away := len(d.elsewhere) > 0
	b.mu.Unlock()
	if away {
		b.tell(letter{Device: id, Update: &u})
	}
}

// share hands an update to the readers here. The caller holds b.mu.
func (b *Board) share(d *device, u Update, now time.Time) {
	switch {
	case u.Watching != nil:
		d.watching, d.saidAt = u.Watching, now
		if !u.Watching.Watching {
			clear(d.seen)
		}
	case u.Presence != nil && d.asks(u.Presence.ChatID):
		before := d.seen[u.Presence.ChatID]
		d.seen[u.Presence.ChatID] = u
		if before.Presence != nil && *before.Presence == *u.Presence {
			return // told once more, for another server
		}
	}
	for _, r := range d.readers {
		r.add(u)
	}
}

// asks reports whether somebody asks about the person of a chat.
func (d *device) asks(chat string) bool {
	if slices.ContainsFunc(d.readers, func(r *Reader) bool { return slices.Contains(r.chats, chat) }) {
		return true
	}
	for _, i := range d.elsewhere {
		if slices.Contains(i.chats, chat) {
			return true
		}
	}
	return false
}

// of returns a device, which is new if nobody reads it. The caller holds b.mu.
func (b *Board) of(id postern.DeviceID) *device {
	d := b.devices[id]
	if d == nil {
		d = &device{elsewhere: map[string]interest{}, seen: map[string]Update{}}
		b.devices[id] = d
	}
	return d
}

// tidy forgets a device that nobody reads, and people about whom nobody asks. The caller holds b.mu.
func (b *Board) tidy(id postern.DeviceID, d *device) {
	if len(d.readers)+len(d.elsewhere) == 0 {
		delete(b.devices, id)
	}
	for chat := range d.seen {
		if !d.asks(chat) {
			delete(d.seen, chat)
		}
	}
}

// letter is what one server tells the others: what it reads of a device, or what the device's session reports.
type letter struct {
	Device postern.DeviceID `json:"device"`
	Reads  bool             `json:"reads,omitempty"`
	Chats  []string         `json:"chats,omitempty"`
	Update *Update          `json:"update,omitempty"`
}

func (b *Board) tell(l letter) {
	text, err := json.Marshal(l)
	if err != nil {
		return // it contains nothing that cannot be encoded
	}
	b.db.Tell(db.News{Topic: topic, ID: string(l.Device), Text: b.box.Seal(text, postern.PresencePlace(l.Device))})
}

// announce tells the other servers what is read here of a device.
func (b *Board) announce(id postern.DeviceID) {
	b.mu.Lock()
	l := letter{Device: id}
	if d := b.devices[id]; d != nil {
		l.Reads, l.Chats = len(d.readers) > 0, d.chats()
	}
	b.mu.Unlock()
	b.tell(l)
}

// hear takes what another server tells.
func (b *Board) hear(n db.News) {
	id := postern.DeviceID(n.ID)
	text, err := b.box.Open(n.Text, postern.PresencePlace(id))
	var l letter
	if err != nil || json.Unmarshal(text, &l) != nil || l.Device != id {
		return // of a later release, or not of ours
	}
	if l.Update == nil {
		b.heard(n.From, l)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.devices[id]; d != nil {
		b.share(d, *l.Update, time.Now())
	}
}

// heard takes that another server reads a device, or no longer does.
func (b *Board) heard(server string, l letter) {
	for _, u := range b.note(server, l) {
		b.tell(letter{Device: l.Device, Update: &u})
	}
	b.change(l.Device)
}

// note records what another server reads of a device. It returns what is known of the people about whom that server has
// not asked before.
func (b *Board) note(server string, l letter) (known []Update) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.devices[l.Device] == nil && (!l.Reads || len(b.devices) >= maxElsewhere) {
		return nil
	}
	d := b.of(l.Device)
	defer b.tidy(l.Device, d)
	if !l.Reads {
		delete(d.elsewhere, server)
		return nil
	}
	before := d.elsewhere[server].chats
	d.elsewhere[server] = interest{l.Chats[:min(len(l.Chats), maxWanted)], time.Now().Add(patience)}
	for _, chat := range l.Chats {
		if u, ok := d.seen[chat]; ok && !slices.Contains(before, chat) {
			known = append(known, u)
		}
	}
	return known
}
