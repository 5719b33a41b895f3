package webhook

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
)

func ordered(e *postern.Endpoint) { e.Ordered = true }

// say records a message in a chat.
func (w *world) say(chat, text string) {
	w.t.Helper()
	o := w.inbound(text)
	o.Message.ChatID = chat
	w.must(w.db.Messages.RecordInbound(w.t.Context(), o))
}

// reader is a receiver that notes what it took, by chat, and how many POSTs were
// open at once.
type reader struct {
	mu       sync.Mutex
	took     map[string][]string
	at       map[string]time.Time
	open     map[string]int // by chat
	together int            // chats with an open POST, at most
	refuses  func(text string) bool
}

func newReader(refuses func(string) bool) *reader {
	return &reader{took: map[string][]string{}, at: map[string]time.Time{}, open: map[string]int{}, refuses: refuses}
}

// post is told of a message with the text "chat: n".
func (r *reader) post(_ context.Context, _, _ string, _ http.Header, body []byte) (egress.Answer, error) {
	_, text, _ := strings.Cut(string(body), `"body":"`)
	text, _, _ = strings.Cut(text, `"`)
	chat, _, _ := strings.Cut(text, ":")
	r.mu.Lock()
	r.open[chat]++
	twice := r.open[chat] > 1
	r.together = max(r.together, len(r.open))
	r.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[chat]--; r.open[chat] == 0 {
		delete(r.open, chat)
	}
	if twice {
		r.took[chat] = append(r.took[chat], "two at once")
	}
	if r.refuses(text) {
		return egress.Answer{Status: 500}, failure("status")
	}
	r.took[chat] = append(r.took[chat], text)
	r.at[text] = time.Now()
	return egress.Answer{Status: 200}, nil
}

func TestOrderedKeepsEachChatInOrderAndChatsApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", ordered)
		rng := rand.New(rand.NewPCG(1, 2))
		refused := map[string]int{}             // a third time would come after the ten minutes
		r := newReader(func(text string) bool { // under the reader's lock
			if refused[text] == 2 || rng.IntN(4) > 0 {
				return false
			}
			refused[text]++
			return true
		})
		d := w.dispatcher(Options{})
		d.post = r.post
		w.start(d)
		want := map[string][]string{}
		for n := range 20 {
			for c := range 6 {
				chat := fmt.Sprintf("+1555000%d", c)
				text := fmt.Sprintf("%s: %d", chat, n)
				w.say(chat, text)
				want[chat] = append(want[chat], text)
			}
			if n == 10 { // what is in flight comes to its end
				w.stop()
				d = w.dispatcher(Options{})
				d.post = r.post
				w.start(d)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		w.awaitSucceeded(e, 120)
		r.mu.Lock()
		defer r.mu.Unlock()
		for chat, list := range want {
			if !slices.Equal(r.took[chat], list) {
				t.Errorf("%s was told\n%q\nwant\n%q", chat, r.took[chat], list)
			}
		}
		if r.together < 4 {
			t.Errorf("at most %d chats were told at once, want about 6", r.together)
		}
		w.stop()
	})
}

func TestOrderedWaitsTenMinutesAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", ordered)
		r := newReader(func(text string) bool { return text == "a: 1" })
		d := w.dispatcher(Options{})
		d.post = r.post
		w.start(d)
		began := time.Now()
		for _, text := range []string{"a: 1", "a: 2", "a: 3", "b: 1"} {
			w.say(text[:1], text)
		}
		time.Sleep(9 * time.Minute)
		w.stop() // another process takes up the wait
		d = w.dispatcher(Options{})
		d.post = r.post
		w.start(d)
		time.Sleep(time.Hour)
		synctest.Wait()
		w.awaitSucceeded(e, 3)
		for text, want := range map[string]time.Duration{
			"b: 1": 0, "a: 2": 10 * time.Minute,
			"a: 3": 10 * time.Minute,
		} {
			if got := r.at[text].Sub(began); got < want || got > want+time.Second {
				t.Errorf("%s was taken after %s, want %s", text, got, want)
			}
		}
		w.stop()
	})
}

func TestOrderedTurnedOffHoldsNothingBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", ordered)
		var mu sync.Mutex
		n := 0
		d := w.dispatcher(Options{})
		d.jitter = func() float64 { return .5 }
		d.post = func(context.Context, string, string, http.Header, []byte) (egress.Answer, error) {
			mu.Lock()
			defer mu.Unlock()
			if n++; n == 1 {
				return egress.Answer{Status: 500}, failure("status")
			}
			return egress.Answer{Status: 200}, nil
		}
		w.start(d)
		w.say("a", "a: 1")
		time.Sleep(100 * time.Millisecond)
		w.say("a", "a: 2") // waits for the retry of the first
		time.Sleep(time.Second)
		_, err := w.db.Endpoints.Change(t.Context(), e.WorkspaceID, e.ID, nil,
			func(e *postern.Endpoint) error { e.Ordered = false; return nil })
		w.must(err)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		w.wantAllDelivered(e)
		w.stop()
	})
}

// What is old and delivered again has lost its place in the chat.
func TestReplayHoldsUpNothingNewOfItsChat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", ordered)
		r := newReader(nil)
		r.refuses = func(text string) bool {
			return len(text) > 5 && text[:5] == "a: ol" && r.took["a"] != nil && len(r.took["a"]) >= 10
		}
		d := w.dispatcher(Options{})
		d.post = r.post
		w.start(d)
		for range 10 {
			w.say("a", "a: old")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		w.awaitSucceeded(e, 10)
		end, err := w.db.Events.End(t.Context(), e.WorkspaceID)
		w.must(err)
		w.must(w.db.Replays.Create(t.Context(), postern.Replay{
			ID: postern.NewReplayID(), WorkspaceID: e.WorkspaceID,
			EndpointID: e.ID, Status: postern.ReplayRunning, Last: end, CreatedAt: now(),
		},
			nil))
		time.Sleep(time.Second)
		began := time.Now()
		w.say("a", "a: new")
		time.Sleep(10 * time.Hour)
		synctest.Wait()
		if took := r.at["a: new"].Sub(began); took > time.Second {
			t.Errorf("the new event came after %v", took)
		}
		w.stop()
	})
}
