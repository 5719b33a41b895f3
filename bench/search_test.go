package bench

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/store"
)

const searchMessages = 1_000_000

// search measures the time of a page of a search by words in a workspace with a million
// messages, on both engines: a word of every message, one of a thousand and one of three
// messages, and words of which the last is a beginning.
func search(t *testing.T) (list []figure) {
	for _, engine := range engines(t) {
		db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), URL: engine.url(t)})
		if err != nil {
			t.Fatal(err)
		}
		ws := conversations(t, db)
		for _, query := range []string{"hello", "thousand7", "rare", "hello thousand7", "hello thou"} {
			f := figure{
				name: "search for " + query + " on " + engine.name, unit: "ms",
				extra: fmt.Sprintf("%d messages (goal 50 ms)", searchMessages),
			}
			for range rounds {
				began := time.Now()
				_, err := db.Messages.Search(t.Context(), ws, store.MessageSearch{Text: query}, store.MessagePlace{}, 50)
				if err != nil {
					t.Fatal(err)
				}
				f.ours = append(f.ours, float64(time.Since(began).Microseconds())/1000)
			}
			list = append(list, f)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// conversations fills a workspace with messages and writes their words.
func conversations(t *testing.T, db *store.Store) postern.WorkspaceID {
	ws := postern.Workspace{ID: postern.NewWorkspaceID(), Plan: "pro"}
	d := postern.Device{
		ID: postern.NewDeviceID(), WorkspaceID: ws.ID, Name: "a", Status: postern.Connected, Metadata: map[string]string{},
	}
	if err := db.Workspaces.Create(t.Context(), ws); err != nil {
		t.Fatal(err)
	}
	if err := db.Devices.Create(t.Context(), d, nil); err != nil {
		t.Fatal(err)
	}
	const callers = 64
	var work sync.WaitGroup
	for from := range callers {
		work.Go(func() {
			for i := from; i < searchMessages; i += callers {
				if err := db.Messages.RecordInbound(t.Context(), spoken(d, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	for more := true; more; {
		var err error
		if more, err = db.Messages.IndexWords(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return ws.ID
}

func spoken(d postern.Device, i int) store.RecordInbound {
	text := []string{"hello", fmt.Sprintf("thousand%d", i%1000), fmt.Sprintf("word%d", i)}
	if i%(searchMessages/3) == 1 {
		text = append(text, "rare")
	}
	now := postern.TimeOf(time.Now())
	return store.RecordInbound{Sender: "lid:1", Type: postern.MessageReceived, Now: now, Message: postern.Message{
		ID: postern.NewMessageID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Inbound,
		ChatID: chatOf(i), From: postern.Maybe(chatOf(i)), Content: postern.Text(strings.Join(text, " ")),
		Status: postern.Received, NetworkID: fmt.Sprint("3EB0", i), Source: postern.FromContact,
		Metadata: map[string]string{}, CreatedAt: now, SentAt: now,
	}}
}
