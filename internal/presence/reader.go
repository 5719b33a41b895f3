package presence

import (
	"slices"

	"postern/internal/postern"
)

// Reader gets what others show to one device. Its updates wait until they are taken; a newer one replaces an older one
// about the same, and of too many the oldest are left out.
type Reader struct {
	board  *Board
	device postern.DeviceID
	chats  []string
	c      chan struct{}

	waiting []Update          // guarded by board.mu
	told    *postern.Watching // guarded by board.mu; the newest that the reader was told or will be
}

// Follow begins to read what others show to a device, and whether the people of some direct chats are online.
func (b *Board) Follow(id postern.DeviceID, chats []string) *Reader {
	r := &Reader{board: b, device: id, chats: chats, c: make(chan struct{}, 1)}
	b.mu.Lock()
	d := b.of(id)
	d.readers = append(d.readers, r)
	if d.watching != nil {
		r.add(Update{Watching: d.watching})
	}
	for _, chat := range chats {
		if u, ok := d.seen[chat]; ok {
			r.add(u)
		}
	}
	b.mu.Unlock()
	b.announce(id)
	b.change(id)
	return r
}

// Close ends the reading.
func (r *Reader) Close() {
	b := r.board
	b.mu.Lock()
	b.waiting -= len(r.waiting)
	r.waiting = nil
	d := b.devices[r.device]
	d.readers = slices.DeleteFunc(d.readers, func(other *Reader) bool { return other == r })
	b.tidy(r.device, d)
	b.mu.Unlock()
	b.announce(r.device)
	b.change(r.device)
}

// C is readable while there is something to take.
func (r *Reader) C() <-chan struct{} { return r.c }

// Take returns the updates that wait, the oldest first.
func (r *Reader) Take() []Update {
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	list := r.waiting
	r.board.waiting -= len(list)
	r.waiting = nil
	return list
}

// Say puts an update in that only this reader gets.
func (r *Reader) Say(u Update) {
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	r.add(u)
}

// add puts an update in if the reader wants it. The caller holds board.mu.
func (r *Reader) add(u Update) {
	switch {
	case u.Presence != nil && !slices.Contains(r.chats, u.Presence.ChatID):
		return
	case u.Watching != nil && !r.isNews(&u):
		return
	}
	r.drop(u)
	if r.board.waiting >= maxAllWait {
		return
	}
	r.waiting = append(r.waiting, u)
	r.board.waiting++
	select {
	case r.c <- struct{}{}:
	default:
	}
}

// isNews reports whether the reader was told something else last. It leaves out the chats of other readers, and adds those
// that are too many.
func (r *Reader) isNews(u *Update) bool {
	w := &postern.Watching{Watching: u.Watching.Watching, NotWatched: []string{}}
	asked := r.board.of(r.device).chats()
	for _, chat := range r.chats {
		if slices.Contains(u.Watching.NotWatched, chat) || !slices.Contains(asked, chat) {
			w.NotWatched = append(w.NotWatched, chat)
		}
	}
	if r.told != nil && r.told.Watching == w.Watching && slices.Equal(r.told.NotWatched, w.NotWatched) {
		return false
	}
	r.told, u.Watching = w, w
	return true
}

// drop leaves out what u replaces, or the oldest update if too many wait. The caller holds board.mu.
func (r *Reader) drop(u Update) {
	i := slices.IndexFunc(r.waiting, u.replaces)
	if i < 0 && (len(r.waiting) >= maxWaiting || r.board.waiting >= maxAllWait && len(r.waiting) > 0) {
		i = 0
	}
	if i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
		r.board.waiting--
	}
}
