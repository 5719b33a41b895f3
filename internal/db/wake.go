package db

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
)

// Wake-ups are handed over in memory. Those of other servers on a PostgreSQL database come
// through the courier.

// Topic is a kind of change that others wait for.
type Topic string

// Anything is the id of a wake-up after which anything of its topic may have changed, because
// notifications of another server may have been lost. Only listeners to all ids get it.
const Anything = "*"

// Wake announces one committed change.
type Wake struct {
	Topic Topic
	ID    string // of what changed
}

// News is something that the servers tell each other and that is never stored. Nobody is told twice, and who is not
// connected to the database has missed it.
type News struct {
	Topic Topic  `json:"topic"`
	ID    string `json:"id"`   // of what it is about
	Text  []byte `json:"text"` // at most [MaxNews] bytes
	From  string `json:"-"`    // the server that tells it
}

// Tell tells the other servers on the database something, as soon as possible and at most once. It never blocks: if
// more waits than [maxTold], the oldest is left out. A server that is alone tells nobody.
func (db *DB) Tell(n News) {
	if db.courier != nil && len(n.Text) <= MaxNews {
		db.courier.tell(n)
	}
}

// Hear has do called with what other servers tell about a topic. It is called from one goroutine and must not block.
func (db *DB) Hear(topic Topic, do func(News)) {
	db.hub.mu.Lock()
	defer db.hub.mu.Unlock()
	db.hub.hearers[topic] = append(db.hub.hearers[topic], do)
}

// Listener gathers the ids that changed until they are taken. It never blocks the
// writer and holds each id once.
type Listener struct {
	hub *hub
	key Wake
	c   chan struct{}

	mu  sync.Mutex
	ids map[string]struct{}
}

// C is readable while there is something to take.
func (l *Listener) C() <-chan struct{} { return l.c }

// Take returns the ids that changed since the last call.
func (l *Listener) Take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := make([]string, 0, len(l.ids))
	for id := range l.ids {
		ids = append(ids, id)
	}
	clear(l.ids)
	return ids
}

// Close ends the subscription.
func (l *Listener) Close() { l.hub.remove(l) }

func (l *Listener) add(id string) {
	l.mu.Lock()
	l.ids[id] = struct{}{}
	l.mu.Unlock()
	select {
	case l.c <- struct{}{}:
	default:
	}
}

// hub hands committed changes to the listeners of this process.
type hub struct {
	log       *slog.Logger
	mu        sync.RWMutex
	listeners map[Wake]map[*Listener]struct{} // by topic and id; id "" takes all
	caches    map[Topic][]func()              // see [DB.Invalidate]
	hearers   map[Topic][]func(News)          // see [DB.Hear]
}

func newHub(log *slog.Logger) *hub {
	return &hub{
		log: log, listeners: map[Wake]map[*Listener]struct{}{}, caches: map[Topic][]func(){},
		hearers: map[Topic][]func(News){},
	}
}

// Listen subscribes to a topic, for one id or, with "", for all of them.
func (db *DB) Listen(topic Topic, only string) *Listener { return db.hub.listen(topic, only) }

// Rouse wakes the listeners of this process to all ids of some topics with [Anything], although nothing has changed.
func (db *DB) Rouse(topics ...Topic) {
	wakes := make([]Wake, len(topics))
	for i, topic := range topics {
		wakes[i] = Wake{topic, Anything}
	}
	db.hub.publish(wakes)
}

// Invalidate has drop called after each commit that announced a change of a topic,
// before its callers get their outcome and before any listener is woken. It is called
// from the writer and must not block.
func (db *DB) Invalidate(topic Topic, drop func()) {
	db.hub.mu.Lock()
	defer db.hub.mu.Unlock()
	db.hub.caches[topic] = append(db.hub.caches[topic], drop)
}

// invalidate drops what caches hold, once for each topic of a commit.
func (h *hub) invalidate(wakes []Wake) {
	for topic, list := range h.caches {
		if !slices.ContainsFunc(wakes, func(w Wake) bool { return w.Topic == topic }) {
			continue
		}
		for _, drop := range list {
			_ = guarded(h.log, "a cache", func() error { drop(); return nil }) // it has logged its panic
		}
	}
}

// hear hands news to those who hear its topic.
func (h *hub) hear(n News) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, do := range h.hearers[n.Topic] {
		_ = guarded(h.log, "a hearer", func() error { do(n); return nil }) // it has logged its panic
	}
}

func (h *hub) publish(wakes []Wake) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	h.invalidate(wakes)
	for _, w := range wakes {
		// Listeners to all ids come first: cached keys are dropped before a stream
		// checks whether its key is still valid.
		for _, key := range [...]Wake{{w.Topic, ""}, w} {
			for l := range h.listeners[key] {
				l.add(w.ID)
			}
		}
	}
}

// publishAnything wakes all listeners: those to one id with that, the others with [Anything].
func (h *hub) publishAnything() {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, list := range h.caches {
		for _, drop := range list {
			_ = guarded(h.log, "a cache", func() error { drop(); return nil }) // it has logged its panic
		}
	}
	for _, all := range [...]bool{true, false} { // those to all ids come first, as in publish
		for key, list := range h.listeners {
			if all != (key.ID == "") {
				continue
			}
			for l := range list {
				l.add(cmp.Or(key.ID, Anything))
			}
		}
	}
}

func (h *hub) listen(topic Topic, only string) *Listener {
	l := &Listener{hub: h, key: Wake{topic, only}, c: make(chan struct{}, 1), ids: map[string]struct{}{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners[l.key] == nil {
		h.listeners[l.key] = map[*Listener]struct{}{}
	}
	h.listeners[l.key][l] = struct{}{}
	return l
}

func (h *hub) remove(l *Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners[l.key], l)
	if len(h.listeners[l.key]) == 0 {
		delete(h.listeners, l.key)
	}
}
