package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/postern"
)

// allow changes how many MiB of files the workspace may store; -1 is the plan's limit.
func (w *world) allow(mib int) {
	w.t.Helper()
	_, err := w.g.Workspaces.ChangeLimits(
		w.t.Context(), access.Operator(), w.caller.Workspace(), postern.Limits{StorageMiB: &mib},
	)
	if err != nil {
		w.t.Fatal(err)
	}
}

// stored lists the contents in the storage.
func (w *world) stored() (list []string) {
	w.t.Helper()
	list, err := filepath.Glob(filepath.Join(w.dir, "media", string(w.caller.Workspace()), "*", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// declared lets a customer send a file and say how large it is.
func (w *world) declared(size int64) string {
	w.t.Helper()
	id, err := w.net.Inbound(account, network.Inbound{
		Sender: customer, ChatID: customer, From: customer, File: w.net.Store(account, []byte("hello")),
		Content: postern.Content{
			Kind: postern.KindDocument, Media: &postern.Media{Filename: "a.txt", Size: size, Status: postern.MediaPending},
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// A received file for which there is no room fails, its message does not, and a later request
// fetches it. One that its sender declares to be too large is not downloaded.
func TestReceivedFileWithoutRoomIsFetchedLater(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		o := &odd{}
		d := w.through(o)
		w.allow(0)
		undeclared, declared := w.declared(0), w.declared(5)
		w.settle(time.Second)
		for _, id := range []string{undeclared, declared} {
			file := w.received(d, id)
			if file.Status != postern.MediaFailed || !file.Recoverable || !strings.Contains(file.Detail, "no room") {
				t.Errorf("without room the file is %+v", file)
			}
		}
		if n := o.downloads.Load(); n != 1 {
			t.Errorf("%d files were downloaded, want 1", n)
		}
		if list := w.stored(); len(list) != 0 {
			t.Errorf("without room %v are stored", list)
		}
		w.allow(-1)
		for _, id := range []string{undeclared, declared} {
			if _, err := w.g.Media.Get(t.Context(), w.caller, w.received(d, id).ID); err != nil {
				t.Fatal(err)
			}
			w.settle(time.Second)
			if file := w.received(d, id); file.Status != postern.MediaReady {
				t.Errorf("with room the file is %+v", file)
			}
		}
	})
}

// While the storage of this server is away, received files wait, however long that takes.
func TestReceivedFileWaitsForTheStorage(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		files := filepath.Join(w.dir, "media")
		move := func(from, to string) {
			t.Helper()
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
		move(files, files+".away")
		if err := os.WriteFile(files, nil, 0o600); err != nil { // so that no directory takes its place
			t.Fatal(err)
		}
		id := w.declared(5)
		w.settle(6 * time.Hour)
		if file := w.received(d, id); file.Status != postern.MediaPending {
			t.Errorf("without a storage the file is %+v", file)
		}
		if err := os.Remove(files); err != nil {
			t.Fatal(err)
		}
		move(files+".away", files)
		w.settle(2 * time.Minute)
		if file := w.received(d, id); file.Status != postern.MediaReady {
			t.Errorf("with its storage the file is %+v", file)
		}
	})
}

// A file at a URL for which there is no room ends its message, or is refused at once.
func TestFileAtAURLWithoutRoomEndsItsMessage(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		out, behind := w.sendFile(d, atURL(), 0), w.send(d, customer)
		w.allow(0)
		w.settle(time.Hour)
		m := w.wantMessage(out, postern.Failed)
		if m.Error == nil || m.Error.Code != postern.MediaUnusable || !strings.Contains(m.Error.Detail, "no room") {
			t.Errorf("the message failed with %+v", m.Error)
		}
		w.wantMessage(behind, postern.Delivered)
		if list := w.stored(); len(list) != 0 {
			t.Errorf("without room %v are stored", list)
		}
		_, err := w.g.Messages.Send(t.Context(), w.caller, gateway.NewMessage{
			DeviceID: d.ID, To: customer, Content: postern.Content{Kind: postern.KindVoice},
			Media: &gateway.NewMedia{URL: "https://example.com/x"},
		}, nil)
		if postern.ReasonOf(err) != postern.ResourceLimit {
			t.Errorf("another one is answered with %v", err)
		}
	})
}

// A file that is removed while it is being fetched is not stored.
func TestFileThatIsRemovedMeanwhileIsNotStored(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		out := w.sendFile(d, atURL(), 0)
		w.settle(time.Second)
		m := w.wantMessage(out, postern.Queued)
		if err := w.g.Media.Delete(t.Context(), w.caller, m.Content.Media.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Hour)
		if list := w.stored(); len(list) != 0 {
			t.Errorf("%v are stored", list)
		}
		if strings.Contains(w.log.String(), "was not fetched") {
			t.Errorf("the log says %s", &w.log)
		}
	})
}

// A sweep removes the bytes of files that were removed with their device, and takes them off the
// count, also if the storage has lost them.
func TestSweepFreesTheRoomOfADevice(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.linked()
		for _, text := range []string{"private", "lost"} {
			if _, err := w.net.Attach(t.Context(), account, customer, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		w.settle(time.Second)
		used := func() int64 {
			u, err := w.db.Blobs.Storage(t.Context(), w.caller.Workspace())
			if err != nil {
				t.Fatal(err)
			}
			return u.Used
		}
		if used() != 11 || len(w.stored()) != 2 {
			t.Fatalf("%d bytes are counted, and %v are stored", used(), w.stored())
		}
		if err := os.Remove(w.stored()[0]); err != nil {
			t.Fatal(err)
		}
		if err := w.g.Devices.Delete(t.Context(), w.caller, d.ID); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Minute)
		if err := w.g.Maintenance.RemoveOld(t.Context(), gateway.Retention{
			Events: time.Hour, Messages: time.Hour, Media: time.Hour, Audit: time.Hour,
		}); err != nil {
			t.Fatal(err)
		}
		if list := w.stored(); used() != 0 || len(list) != 0 {
			t.Errorf("after a sweep %d bytes are counted, and %v are stored", used(), list)
		}
	})
}
