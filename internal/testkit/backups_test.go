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

var (
	backups   = flag.Int("backups", 1, "how many backups TestBackupsUnderLoad makes on each database")
	perDevice = flag.Int("per-device", 4, "how many of the 32 senders of TestBackupsUnderLoad share a device")
	offered   = flag.Int("offered", 550, "how many messages per second TestBackupsUnderLoad sends, if they are accepted as fast")
)

// accepted is a message and when its response arrived.
type accepted struct {
	id postern.MessageID
	at time.Time
}

// sendersAtOnce is how many send at once: one waits for the disk for each of its messages. Four share a workspace,
// because one workspace alone may not make as many requests.
const sendersAtOnce = 32

// sender sends one message after the other until its context ends, and not more than its part of -offered.
type sender struct {
	client *testkit.Client
	device postern.Device

	mu   sync.Mutex
	list []accepted
}

func (s *sender) run(ctx context.Context) {
	tick := time.NewTicker(time.Duration(sendersAtOnce) * time.Second / time.Duration(*offered))
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
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
			senders := make([]sender, sendersAtOnce)
			for i := range senders {
				if i%*perDevice > 0 {
					senders[i].client, senders[i].device = senders[i-1].client, senders[i-1].device
					continue
				}
				c := k.Workspace("enterprise")
				senders[i].client, senders[i].device = c, c.Link(phone)
			}
			for i := range senders {
				group.Go(func() { senders[i].run(ctx) })
			}
			taken, during := takeBackups(t, k, senders)
			stop()
			group.Wait()
			for _, b := range taken {
				checkBackup(t, b.dir, b.moment, senders)
			}
			t.Logf("%d backups, during which %.0f messages/s were accepted, and %d in all", len(taken), during,
				count(senders))
		})
	}
}

// taken is a backup and the moment whose state it has.
type taken struct {
	dir    string
	moment time.Time
}

// takeBackups takes -backups backups, and returns how many messages were accepted per second meanwhile. The backups are
// checked later, so that the check takes no processor time from the senders.
func takeBackups(t *testing.T, k *testkit.Kit, senders []sender) (list []taken, perSecond float64) {
	t.Helper()
	var accepted int
	var lasted time.Duration
	for n := range *backups {
		before := len(senders[0].sent())
		testkit.Eventually(t, "more messages are accepted", func() (bool, any) {
			n := len(senders[0].sent())
			return n > before+10, n
		})
		dir, first, begun := filepath.Join(t.TempDir(), strconv.Itoa(n)), count(senders), time.Now()
		m, err := app.Backup(t.Context(), k.Config.Data, app.BackupOptions{Media: k.Config.MediaURL}, dir)
		if err != nil {
			t.Error(err)
			break
		}
		accepted, lasted = accepted+count(senders)-first, lasted+time.Since(begun)
		list = append(list, taken{dir, m.Moment})
	}
	return list, float64(accepted) / lasted.Seconds()
}

func count(senders []sender) (n int) {
	for i := range senders {
		n += len(senders[i].sent())
	}
	return n
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
