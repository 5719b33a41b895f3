package testkit_test

import (
	"context"
	"flag"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"postern/internal/app"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/transfer"
	"postern/internal/testkit"
)

var backups = flag.Int("backups", 1, "how many backups TestBackupsUnderLoad makes on each database")

// accepted is a message and when its response arrived.
type accepted struct {
	id postern.MessageID
	at time.Time
}

// sender sends one message after the other until its context ends. It has its own workspace, because one
// alone may not make as many requests.
type sender struct {
	client *testkit.Client
	device postern.Device

	mu   sync.Mutex
	list []accepted
}

func (s *sender) run(ctx context.Context) {
	for ctx.Err() == nil {
		m := send(s.client, s.device, reader, "under load")
		s.mu.Lock()
		s.list = append(s.list, accepted{m.ID, time.Now()})
		s.mu.Unlock()
	}
}

func (s *sender) sent() []accepted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// A backup that is made under load has everything that was accepted before its moment, and what it has of each
// sender's messages, which are sent one after the other, has no gap: it is the state of one moment.
func TestBackupsUnderLoad(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(*testing.T) string{"SQLite": noURL, "PostgreSQL": newURL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := testkit.StartOn(t, url(t))
			ctx, stop := context.WithCancel(t.Context())
			var group sync.WaitGroup
			senders := make([]sender, 8)
			for i := range senders {
				c := k.Workspace("enterprise")
				senders[i].client, senders[i].device = c, c.Link(phone)
			}
			for i := range senders {
				group.Go(func() { senders[i].run(ctx) })
			}
			begun := time.Now()
			for n := range *backups {
				before := len(senders[0].sent())
				testkit.Eventually(t, "more messages are accepted", func() (bool, any) {
					n := len(senders[0].sent())
					return n > before+10, n
				})
				dir := filepath.Join(t.TempDir(), strconv.Itoa(n))
				m, err := app.Backup(t.Context(), k.Config.Data, app.BackupOptions{Media: k.Config.MediaURL}, dir)
				if err != nil {
					t.Error(err)
					break
				}
				checkBackup(t, dir, m.Moment, senders)
			}
			stop()
			group.Wait()
			total := 0
			for i := range senders {
				total += len(senders[i].sent())
			}
			t.Logf("%d backups while %d messages were accepted, %.0f/s", *backups, total,
				float64(total)/time.Since(begun).Seconds())
		})
	}
}

// checkBackup compares the messages of a backup with those that were accepted.
func checkBackup(t *testing.T, dir string, moment time.Time, senders []sender) {
	t.Helper()
	err := transfer.Open(t.Context(), dir, func(s *store.Store) error {
		for i := range senders {
			gap := false
			for _, m := range senders[i].sent() {
				_, err := s.Messages.Get(t.Context(), senders[i].client.Workspace, m.id)
				switch has := err == nil; {
				case !has && m.at.Before(moment):
					t.Errorf("the message %s was accepted %s before the moment, and is not in the backup", m.id,
						moment.Sub(m.at))
				case has && gap:
					t.Errorf("the message %s is in the backup, and one before it is not", m.id)
				default:
					gap = gap || !has
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
