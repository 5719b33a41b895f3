package store

import "sync"

// Topic is a kind of change that others wait for.
type Topic string

// The topics. The id is that of the noun in brackets.
const (
	DeviceChanged   Topic = "device"   // desired or status [device]
	LinkChanged     Topic = "link"     // code or outcome [device]
	OutboundQueued  Topic = "outbound" // a message waits to be sent [device]
	DeliveryDue     Topic = "delivery" // an event waits for its first attempt [endpoint]
	RetryDue        Topic = "retry"    // one was asked for, or queued by a replay [endpoint]
	EndpointChanged Topic = "endpoint" // created, activated, deleted [endpoint]
	ReplayChanged   Topic = "replay"   // made, or one of its deliveries ended [replay]
	EventLogged     Topic = "event"    // recorded [workspace]
	KeyChanged      Topic = "key"      // revoked, or the workspace's plan changed [workspace]
)

// Wake is one change that was committed.
type Wake struct {
	Topic Topic
	ID    string
}

// Listener gathers the ids that changed until they are taken. It never blocks
// the writer and holds each id once.
type Listener struct {
	hub *hub
	key Wake
	c   chan struct{}

	mu  sync.Mutex
	ids map[string]struct{}
}

// C is readable while there is something to take.
func (l *Listener) C() <-chan struct{} { return l.c }

// Take gives the ids that changed since the last call.
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
	mu        sync.RWMutex
	listeners map[Wake]map[*Listener]struct{} // by topic and id; id "" takes all
}

func newHub() *hub { return &hub{listeners: map[Wake]map[*Listener]struct{}{}} }

func (h *hub) publish(wakes []Wake) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, w := range wakes {
		// Who listens to all comes first: the keys remembered in memory are
		// forgotten before a stream looks whether its key still holds.
		for _, key := range [...]Wake{{w.Topic, ""}, w} {
			for l := range h.listeners[key] {
				l.add(w.ID)
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
