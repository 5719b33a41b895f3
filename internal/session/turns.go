package session

import (
	"slices"

	"postern/internal/postern"
	"postern/internal/store"
)

// turns share the sending of a device among the lanes of its queue: the lane whose turn is
// next is the one that has been sent least, in proportion to its share. A lane with messages
// always gets its turn, however many wait in the others. Used by the sending goroutine only.
type turns struct{ sent [postern.Lanes]int } // strides

// allChats stands for chats of all kinds, for a device without a pace.
const allChats store.ChatKind = ""

func newTurns() map[store.ChatKind]*turns {
	return map[store.ChatKind]*turns{allChats: {}, store.Answering: {}, store.Known: {}, store.Fresh: {}}
}

// order returns up to limit waiting messages in the order in which they are to be sent: those
// of a lane, and so those of a chat, stay in their order.
func (t *turns) order(w store.Waiting, limit int) (list []store.QueuedMessage) {
	t.catchUp(w)
	plan := *t
	for len(list) < limit {
		lane := plan.next(w)
		if lane < 0 {
			break
		}
		list = append(list, w[lane][0])
		w[lane] = w[lane][1:]
		plan.charge(lane)
	}
	return list
}

// next returns the lane whose turn it is, of those that have messages.
func (t *turns) next(w store.Waiting) (next postern.Lane) {
	next = -1
	for lane := range postern.Lanes {
		if len(w[lane]) > 0 && (next < 0 || t.sent[lane] < t.sent[next]) {
			next = lane
		}
	}
	return next
}

// charge counts a message of a lane.
func (t *turns) charge(lane postern.Lane) { t.sent[lane] += lane.Stride() }

// catchUp keeps lanes without messages from saving up turns.
func (t *turns) catchUp(w store.Waiting) {
	first := t.next(w)
	for lane := range postern.Lanes {
		if first >= 0 && len(w[lane]) == 0 {
			t.sent[lane] = max(t.sent[lane], t.sent[first])
		}
	}
}

// urge makes the sender look at its queue again after the message that it is sending, unless
// it is already sending messages with high priority.
func (e *Engine) urge(id postern.DeviceID) {
	e.mu.Lock()
	l := e.live[id]
	e.mu.Unlock()
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.urgent = true
}

// wasUrged reports whether messages of the high lane have come that are not in a list.
func (l *liveSession) wasUrged(list []store.QueuedMessage) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.urgent && !slices.ContainsFunc(list, func(m store.QueuedMessage) bool { return m.Lane == postern.HighLane })
}

// look forgets that the sender was urged, before it looks at the queue.
func (l *liveSession) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.urgent = false
}
