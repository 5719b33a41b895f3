package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/internal/postern"
	"postern/internal/seal"
)

// slowly is a server that answers after four minutes.
func slowly(ctx context.Context, _ string) (io.ReadCloser, error) {
	select {
	case <-time.After(4 * time.Minute):
		return io.NopCloser(strings.NewReader("slow file")), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

const neighbour = "+15557770000" // another chat

func (w *world) upload() postern.Media {
	w.t.Helper()
	made, err := w.g.Media.Upload(w.t.Context(), w.caller, strings.NewReader("hello"), "a.txt", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return made.Value
}

// sendFile sends a document to the customer.
func (w *world) sendFile(d postern.Device, file gateway.NewMedia, at postern.Time) postern.MessageID {
	w.t.Helper()
	file.Filename = "a.txt"
	made, err := w.g.Messages.Send(w.t.Context(), w.caller, gateway.NewMessage{
		DeviceID: d.ID, To: customer, Content: postern.Content{Kind: postern.KindDocument}, Media: &file, SendAt: at,
		WhenDisconnected: "queue",
	}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return made.Value.ID
}

func atURL() gateway.NewMedia { return gateway.NewMedia{URL: "https://example.com/x"} }

// received returns the file of a message from the customer.
func (w *world) received(d postern.Device, networkID string) postern.Media {
	w.t.Helper()
	m, ok, err := w.db.Messages.InChat(w.t.Context(), d.ID, customer, networkID)
	if err != nil || !ok || m.Content.Media == nil {
		w.t.Fatalf("the message is %+v, %v, %v", m, ok, err)
	}
	return *m.Content.Media
}

// A file that was received can be sent on while it is still being fetched.
func TestPendingFileIsSentOnWhenItIsThere(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		w.fault(networktest.FaultMediaSilent)
		id, err := w.net.Attach(t.Context(), account, customer, []byte("hello"))
		if err != nil {
			t.Fatal(err)
		}
		w.fault(networktest.FaultMediaExpired)
		w.settle(0)
		out := w.sendFile(d, gateway.NewMedia{ID: w.received(d, id).ID}, 0)
		w.settle(5 * time.Hour)
		if file := w.received(d, id); file.Status != postern.MediaReady {
			t.Errorf("the file is %+v", file)
		}
		w.wantMessage(out, postern.Delivered)
	})
}

// The messages behind one that waits for its file go on when that one is canceled, or when its
// file is deleted.
func TestChatGoesOnWithoutItsFile(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		canceled, behind := w.sendFile(d, atURL(), 0), w.send(d, customer)
		w.settle(time.Second)
		w.wantMessage(behind, postern.Queued)
		if _, err := w.g.Actions.Cancel(t.Context(), w.caller, canceled); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		w.wantMessage(behind, postern.Delivered)

		deleted, behind := w.sendFile(d, atURL(), 0), w.send(d, customer)
		w.settle(time.Second)
		m := w.wantMessage(deleted, postern.Queued)
		if err := w.g.Media.Delete(t.Context(), w.caller, m.Content.Media.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		if m := w.wantMessage(deleted, postern.Failed); m.Error.Code != postern.MediaUnusable {
			t.Errorf("the message failed with %+v", m.Error)
		}
		w.wantMessage(behind, postern.Delivered)
	})
}

// The file of a message that could not be decrypted at first is fetched.
func TestFileOfAMessageDecryptedLaterIsFetched(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		set := w.engine.settingsOf(new(w.device(d.ID)))
		defer set.close()
		h := &host{e: w.engine, d: w.device(d.ID), settings: set}
		for _, u := range []network.Update{
			network.Undecryptable{
				NetworkID: "N1", Sender: customer, ChatID: customer, From: customer, Why: postern.DecryptionFailed, At: time.Now(),
			},
			network.Inbound{
				NetworkID: "N1", Sender: customer, ChatID: customer, From: customer, At: time.Now(),
				File: w.net.Store(account, []byte("hello")),
				Content: postern.Content{
					Kind: postern.KindDocument, Media: &postern.Media{Filename: "a.txt", Status: postern.MediaPending},
				},
			},
		} {
			if err := h.Update(t.Context(), u); err != nil {
				t.Fatal(err)
			}
		}
		w.settle(time.Second)
		if file := w.received(d, "N1"); file.Status != postern.MediaReady {
			t.Errorf("the file is %+v", file)
		}
	})
}

// A scheduled message that is moved keeps its file.
func TestScheduledMessageKeepsItsFile(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		const day = 24 * time.Hour
		d, file := w.linked(), w.upload()
		out := w.sendFile(d, gateway.NewMedia{ID: file.ID}, w.db.Now().Add(day))
		at := w.db.Now().Add(61 * day)
		m, err := w.g.Actions.Edit(t.Context(), w.caller, out, gateway.MessageChange{SendAt: at})
		if err != nil {
			t.Fatal(err)
		}
		row, err := w.db.Media.Get(t.Context(), w.caller.Workspace(), file.ID)
		if err != nil || row.UsedAt != m.ExpiresAt || m.ExpiresAt < at {
			t.Errorf("the file is used until %v, and the message expires at %v, %v", row.UsedAt, m.ExpiresAt, err)
		}
	})
}

// A message whose outcome is unknown is repeated even if its file was deleted meanwhile.
func TestUnknownOutcomeIsRepeatedWithoutTheFile(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d, file := w.linked(), w.upload()
		if err := w.net.Answer(account, errors.New("no answer")); err != nil {
			t.Fatal(err)
		}
		out := w.sendFile(d, gateway.NewMedia{ID: file.ID}, 0)
		w.settle(time.Second)
		w.wantMessage(out, postern.Sending)
		if err := w.g.Media.Delete(t.Context(), w.caller, file.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Minute)
		w.wantMessage(out, postern.Delivered)
	})
}

// A file that the storage has lost ends its message, and not its chat.
func TestLostFileEndsItsMessageAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d, file := w.linked(), w.upload()
		path := filepath.Join(w.dir, "media", string(w.caller.Workspace()), file.SHA256[:2], file.SHA256)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		out, behind := w.sendFile(d, gateway.NewMedia{ID: file.ID}, 0), w.send(d, customer)
		w.settle(time.Second)
		w.wantMessage(out, postern.Failed)
		w.wantMessage(behind, postern.Delivered)
	})
}

// The files of a device are removed with it.
func TestFilesOfADeletedDeviceAreRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		id, err := w.net.Attach(t.Context(), account, customer, []byte("private"))
		if err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		file := w.received(d, id)
		if err := w.g.Devices.Delete(t.Context(), w.caller, d.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Hour)
		if _, _, err := w.g.Media.Open(t.Context(), w.caller, file.ID); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("a file of a deleted device: %v", err)
		}
	})
}

// A file at a URL is fetched again when its time has come, even while other files keep arriving.
func TestURLIsTriedAgainWhileFilesArrive(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d, failed := w.linked(), false
		w.settle(time.Second)
		w.engine.fetch = func(context.Context, string) (io.ReadCloser, error) {
			if !failed {
				failed = true
				return nil, errors.New("the server is busy")
			}
			return io.NopCloser(strings.NewReader("file")), nil
		}
		out := w.sendFile(d, atURL(), 0)
		for range 4 * fetchFirst / time.Second {
			if _, err := w.net.Attach(t.Context(), account, customer, []byte("another")); err != nil {
				t.Fatal(err)
			}
			w.settle(time.Second)
		}
		w.wantMessage(out, postern.Delivered)
	})
}

// A file whose source cannot be read is given up at once.
func TestUnreadableSourceIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		m := w.wantMessage(w.sendFile(w.linked(), atURL(), 0), postern.Queued)
		row, err := w.db.Media.Get(t.Context(), w.caller.Workspace(), m.Content.Media.ID)
		if err != nil {
			t.Fatal(err)
		}
		row.Source = []byte("sealed with another key")
		if err := w.engine.fetchOne(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		w.wantMessage(m.ID, postern.Failed)
	})
}

// A server that no longer takes files says so.
func TestServerWithoutStorageTakesNoFiles(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d, file := w.linked(), w.upload()
		box, err := seal.NewBox(bytes.Repeat([]byte{1}, seal.KeySize))
		if err != nil {
			t.Fatal(err)
		}
		g := gateway.New(gateway.Options{DB: w.db, Box: box, Log: w.engine.log})
		_, err = g.Messages.Send(t.Context(), w.caller, gateway.NewMessage{
			DeviceID: d.ID, To: customer, Content: postern.Content{Kind: postern.KindVoice},
			Media: &gateway.NewMedia{ID: file.ID}, WhenDisconnected: "queue",
		}, nil)
		if postern.ReasonOf(err) != postern.Unavailable {
			t.Errorf("the message is answered with %v", err)
		}
	})
}

// odd is a network that takes its time, loses answers and breaks off downloads.
type odd struct {
	network.Driver
	sends     sync.Map // *atomic.Int64 by network id
	asked     atomic.Int64
	downloads atomic.Int64
	wait      time.Duration
	loses     string // the chat to which no send has an answer
	broken    int64  // downloads that fail
}

type oddSession struct {
	network.Session
	of *odd
}

func (o *odd) Open(ctx context.Context, account string) (network.Session, error) {
	s, err := o.Driver.Open(ctx, account)
	return oddSession{s, o}, err
}

// sent counts the sends under a network id.
func (o *odd) sent(id string) *atomic.Int64 {
	n, _ := o.sends.LoadOrStore(id, new(atomic.Int64))
	return n.(*atomic.Int64)
}

func (s oddSession) Send(ctx context.Context, m network.Outbound) (time.Time, error) {
	s.of.sent(m.NetworkID).Add(1)
	time.Sleep(s.of.wait)
	if m.ChatID == s.of.loses {
		return time.Time{}, errors.New("no answer")
	}
	return s.Session.Send(ctx, m)
}

func (s oddSession) Download(ctx context.Context, ref network.Ref, dst *os.File) error {
	if s.of.downloads.Add(1) <= s.of.broken {
		return errors.New("broken off")
	}
	return s.Session.Download(ctx, ref, dst)
}

// RequestMedia returns after the phone has answered.
func (s oddSession) RequestMedia(ctx context.Context, m network.MediaRequest) error {
	s.of.asked.Add(1)
	err := s.Session.RequestMedia(ctx, m)
	time.Sleep(time.Millisecond)
	return err
}

// through boots the engine again with a network.
func (w *world) through(o *odd) postern.Device {
	w.t.Helper()
	o.Driver = w.net
	w.stop()
	w.driver = o
	w.boot()
	return w.linked()
}

// A message with an unknown outcome is repeated with growing pauses, also beside a file that its
// chat waits for.
func TestPauseOfRepetitionsIsKeptBesideAFile(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		o := &odd{loses: customer}
		d := w.through(o)
		id := w.send(d, customer)
		w.settle(time.Second)
		w.sendFile(d, atURL(), 0)
		for range 60 {
			w.settle(time.Second)
			w.send(d, neighbour)
		}
		if n := o.sent(w.wantMessage(id, postern.Sending).NetworkID).Load(); n > 4 {
			t.Errorf("%d attempts within a minute", n)
		}
	})
}

// A chat whose file is there goes on while others are busy.
func TestFileIsNotStarvedByOtherChats(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.through(&odd{wait: time.Second})
		for range 5 {
			w.send(d, neighbour)
		}
		out, behind := w.sendFile(d, gateway.NewMedia{ID: w.upload().ID}, 0), w.send(d, customer)
		for range 60 {
			w.settle(time.Second - time.Millisecond)
			w.send(d, neighbour)
		}
		w.wantMessage(out, postern.Delivered)
		w.wantMessage(behind, postern.Delivered)
	})
}

// The phone's answer to a request for a file is not overwritten, however early it comes.
func TestEarlyAnswerOfThePhoneCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		o := &odd{}
		d := w.through(o)
		var ids []string
		for range 5 {
			ref := w.net.Store(account, []byte("hello"))
			w.fault(networktest.FaultMediaExpired)
			id, err := w.net.Inbound(account, network.Inbound{
				Sender: customer, ChatID: customer, From: customer, File: ref, Content: postern.Content{
					Kind: postern.KindDocument, Media: &postern.Media{Filename: "a.txt", Status: postern.MediaPending},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
			w.settle(time.Second)
		}
		w.settle(time.Minute)
		for _, id := range ids {
			if file := w.received(d, id); file.Status != postern.MediaReady {
				t.Errorf("the file is %+v", file)
			}
		}
	})
}

// Failures of the network do not count as requests to the phone.
func TestPhoneIsAskedAfterFailures(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		o := &odd{broken: 3}
		d := w.through(o)
		id, err := w.net.Attach(t.Context(), account, customer, []byte("hello"))
		if err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		w.fault(networktest.FaultMediaExpired)
		w.settle(time.Hour)
		if file := w.received(d, id); file.Status != postern.MediaReady || o.asked.Load() == 0 {
			t.Errorf("the phone was asked %d times, and the file is %+v", o.asked.Load(), file)
		}
	})
}

// A received file costs two commits: one with its message, and one that says that it is ready,
// with its event. Files that are ready at the same time may share one.
func TestReceivedFileCostsTwoCommits(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		for n := range 3 {
			before := w.commits()
			id, err := w.net.Attach(t.Context(), account, customer, []byte{byte(n)})
			if err != nil {
				t.Fatal(err)
			}
			w.settle(0)
			if got := w.received(d, id); got.Status != postern.MediaReady {
				t.Fatalf("the file is %+v", got)
			}
			if got := w.commits() - before; got != 2 {
				t.Errorf("a received file costs %d commits, want 2", got)
			}
		}
	})
}

// commits counts the commits in SQLite's journal (https://sqlite.org/fileformat2.html, 4.1): the
// last page of each one has the size of the database beside it. The journal starts over after more than a
// hundred commits.
func (w *world) commits() (n int) {
	w.t.Helper()
	const header, frame = 32, 24
	b, err := os.ReadFile(filepath.Join(w.dir, "postern.db-wal"))
	if err != nil || len(b) < header {
		w.t.Fatalf("%d bytes, %v", len(b), err)
	}
	page := int(binary.BigEndian.Uint32(b[8:]))
	for at := header; at+frame+page <= len(b); at += frame + page {
		current := bytes.Equal(b[at+8:at+16], b[16:24]) // and not of the journal before
		if current && binary.BigEndian.Uint32(b[at+4:]) != 0 {
			n++
		}
	}
	return n
}

// While the storage of files is down, a file at a URL waits. Its message does not fail, as if the URL were to blame.
func TestFileAtAURLWaitsForTheStorage(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		media, away := filepath.Join(w.dir, "media"), filepath.Join(w.dir, "away")
		if err := errors.Join(os.Rename(media, away), os.WriteFile(media, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		out := w.sendFile(d, atURL(), 0)
		w.settle(3 * time.Hour)
		w.wantMessage(out, postern.Queued)
		if err := errors.Join(os.Remove(media), os.Rename(away, media)); err != nil {
			t.Fatal(err)
		}
		w.settle(3 * time.Hour)
		w.wantMessage(out, postern.Delivered)
	})
}
