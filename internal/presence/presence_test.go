package presence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"postern/internal/db"
	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/migrated"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

const dev = postern.DeviceID("dev_1")

func newBoard(t *testing.T) *Board {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: migrated.Dir(t, "")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	box, err := seal.NewBox(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return New(s.Engine(), box)
}

func typing(chat string) Update {
	return Update{Typing: &postern.ShownTyping{ChatID: chat, Typing: postern.TypingText}}
}

func online(chat string, at postern.Time) Update {
	return Update{Presence: &postern.ShownPresence{ChatID: chat, Available: true, At: at}}
}

func watching(notWatched ...string) Update {
	return Update{Watching: &postern.Watching{Watching: true, NotWatched: notWatched}}
}

// A slow reader gets the newest updates, one about each person and chat, and all readers together have a limit.
func TestSlowReaderGetsTheNewest(t *testing.T) {
	t.Parallel()
	b := newBoard(t)
	r := b.Follow(dev, []string{"+1"})
	for i := range 3 * maxWaiting {
		b.Publish(dev, typing(fmt.Sprint("+", i)))
		b.Publish(dev, typing("again"))
		b.Publish(dev, online("+2", 1)) // nobody asks
	}
	<-r.C()
	list := r.Take()
	if n := len(list); n != maxWaiting || list[n-1].Typing.ChatID != "again" ||
		list[n-2].Typing.ChatID != fmt.Sprint("+", 3*maxWaiting-1) {
		t.Fatalf("%d updates wait", n)
	}
	if b.waiting != 0 || len(r.Take()) != 0 {
		t.Errorf("%d updates wait after they were taken", b.waiting)
	}
	b.waiting = maxAllWait // of other readers
	b.Publish(dev, typing("one"))
	if len(r.Take()) != 0 {
		t.Error("more waits than may")
	}
	b.waiting = maxAllWait - 1
	b.Publish(dev, typing("one"))
	b.Publish(dev, typing("two"))
	if list := r.Take(); len(list) != 1 || list[0].Typing.ChatID != "two" {
		t.Errorf("%+v waits", list)
	}
	b.Publish(dev, typing("three"))
	r.Close()
	if b.waiting != maxAllWait-1 || len(b.devices) != 0 {
		t.Errorf("%d updates wait for nobody, %d devices are read", b.waiting, len(b.devices))
	}
}

// A new reader is told what is known of the people it asks about, and each reader only whom it has asked about in vain.
func TestReaderIsToldWhatIsKnown(t *testing.T) {
	t.Parallel()
	b := newBoard(t)
	b.Publish(dev, online("+1", 1)) // nobody reads
	first := b.Follow(dev, []string{"+1", "+3"})
	b.Publish(dev, watching("+3", "+4"))
	b.Publish(dev, online("+1", 1))
	b.Publish(dev, online("+1", 1)) // for another server
	second := b.Follow(dev, []string{"+1"})
	for name, r := range map[string]*Reader{"[+3]": first, "[]": second} {
		list := r.Take()
		if len(list) != 2 || list[0].Watching == nil || fmt.Sprint(list[0].Watching.NotWatched) != name ||
			list[1].Presence == nil {
			t.Fatalf("told %+v, without %s", list, name)
		}
	}
	b.Publish(dev, watching("+3"))
	b.Publish(dev, online("+1", 1))
	if list := append(first.Take(), second.Take()...); len(list) > 0 {
		t.Errorf("told again %+v", list)
	}
	b.expire(time.Now().Add(patience + time.Second)) // the session says nothing
	third := b.Follow(dev, []string{"+1"})
	for _, r := range []*Reader{first, second, third} {
		if list := r.Take(); len(list) != 1 || list[0].Watching == nil || list[0].Watching.Watching {
			t.Errorf("told %+v", list)
		}
	}
	var many []string
	for i := range maxWanted {
		many = append(many, fmt.Sprint("+9", i))
	}
	b.Follow(dev, many)
	fourth := b.Follow(dev, []string{"+5"})
	fourth.Take()
	b.Publish(dev, watching())
	if list := fourth.Take(); len(list) != 1 || !slices.Equal(list[0].Watching.NotWatched, []string{"+5"}) {
		t.Errorf("told %+v", list)
	}
}

// What another server reads counts until it says nothing for a while, and it is told what is known.
func TestOtherServersRead(t *testing.T) {
	t.Parallel()
	b := newBoard(t)
	var changed []postern.DeviceID
	b.Watch(func(id postern.DeviceID) { changed = append(changed, id) })
	hear := func(l letter) {
		t.Helper()
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		b.hear(db.News{
			ID: string(dev), From: "other", Text: b.box.Seal(text, postern.PresencePlace(dev)),
		})
	}
	hear(letter{Device: dev}) // it reads nothing
	hear(letter{Device: "dev_2", Reads: true})
	b.hear(db.News{ID: string(dev), Text: []byte("in the clear")})
	if w := b.Wanted(dev); w.Read || len(b.devices) > 0 {
		t.Fatalf("read %+v", w)
	}
	r := b.Follow(dev, []string{"+1", "+2"})
	hear(letter{Device: dev, Reads: true, Chats: []string{"+2", "+3"}})
	if w := b.Wanted(dev); !w.Read || !slices.Equal(w.Chats, []string{"+1", "+2", "+3"}) {
		t.Errorf("read %+v", w)
	}
	b.Publish(dev, online("+3", 1))
	if known := b.note("third", letter{Device: dev, Reads: true, Chats: []string{"+3"}}); len(known) != 1 {
		t.Errorf("the third server is told %+v", known)
	}
	u := typing("+1")
	hear(letter{Device: dev, Update: &u})
	if list := r.Take(); len(list) != 1 || list[0].Typing == nil {
		t.Errorf("told %+v", list)
	}
	r.Close()
	hear(letter{Device: dev})
	if w := b.Wanted(dev); !w.Read || !slices.Equal(w.Chats, []string{"+3"}) {
		t.Errorf("read %+v", w)
	}
	changed = nil
	b.beat(time.Now().Add(patience + time.Second))
	if w := b.Wanted(dev); w.Read || !slices.Equal(changed, []postern.DeviceID{dev}) {
		t.Errorf("read %+v, changed %v", w, changed)
	}
}
