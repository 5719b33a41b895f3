package testkit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"postern/internal/app"
	"postern/internal/backup"
	"postern/internal/config"
	"postern/internal/db"
	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/testkit"
)

const fileContents = "the contents of a file"

// backedUp is a server with a device, messages in both directions and a file, whose backup was made while
// it ran, and which has sent and received since.
type backedUp struct {
	t      *testing.T
	kit    *testkit.Kit
	client *testkit.Client
	device postern.Device
	file   postern.Media
	before map[string][]json.RawMessage // see everything
	later  postern.Message              // is not in the backup
	dir    string
}

func backUp(t *testing.T, databaseURL string) *backedUp {
	t.Helper()
	b := &backedUp{t: t, kit: testkit.StartOn(t, databaseURL), dir: filepath.Join(t.TempDir(), "backup")}
	if databaseURL != "" {
		b.kit.Stop()
		b.kit.Shared = true
		b.kit.Boot()
		awaitReport(t, b.kit, "") // it has marked the storage of files
	}
	b.client = b.kit.Workspace("growth")
	b.device = b.client.Link(phone)
	b.client.Upload("a.txt", strings.NewReader(fileContents), &b.file)
	b.converse("before the backup")
	b.before = everything(b.client)
	m, err := app.Backup(t.Context(), b.kit.Config.Data, app.BackupOptions{Media: b.kit.Config.MediaURL, Release: "test"}, b.dir)
	if err != nil {
		t.Fatal(err)
	}
	if !m.Media.Included || m.Media.Files != 1 || m.Media.Bytes != int64(len(fileContents)) {
		t.Errorf("the backup has the files %+v", m.Media)
	}
	if keys, err := seal.LoadKeys(b.kit.Config.KeyFile()); err != nil || len(m.SecretKeys) != 1 ||
		m.SecretKeys[0] != string(keys.IDs()[0]) {
		t.Errorf("the backup needs the secret keys %q, error %v", m.SecretKeys, err)
	}
	for range 3 { // the ratchets go on
		b.later = b.converse("after the backup")
	}
	return b
}

// converse lets the device send a text, which is read, and receive one.
func (b *backedUp) converse(text string) postern.Message {
	b.t.Helper()
	m := b.client.AwaitMessage(send(b.client, b.device, reader, text).ID, postern.Read)
	before := b.received(text)
	if _, err := b.kit.Vendor.Send(b.t.Context(), phone, reader, "answer to: "+text); err != nil {
		b.t.Fatal(err)
	}
	testkit.Eventually(b.t, "the answer is received", func() (bool, any) {
		n := b.received(text)
		return n == before+1, n
	})
	return m
}

// received counts the answers to a text that the API shows.
func (b *backedUp) received(text string) (n int) {
	b.t.Helper()
	var list struct{ Data []postern.Message }
	b.client.Call("GET", "/v1/messages?limit=100&direction=inbound", nil, 200, &list)
	for _, m := range list.Data {
		if m.Content.Text == "answer to: "+text {
			n++
		}
	}
	return n
}

// place returns a new place to restore to. It has the secret key of the server.
func (b *backedUp) place(databaseURL string) config.Data {
	b.t.Helper()
	key, err := os.ReadFile(b.kit.Config.KeyFile())
	data := config.Data{Dir: b.t.TempDir(), DatabaseURL: seal.Secret(databaseURL)}
	data.SecretKeyFile = filepath.Join(data.Dir, "secret.key")
	if err := errors.Join(err, os.WriteFile(data.SecretKeyFile, key, 0o600)); err != nil {
		b.t.Fatal(err)
	}
	return data
}

// restore restores the backup.
func (b *backedUp) restore(to config.Data) seal.Secret {
	b.t.Helper()
	media := seal.Secret("file://" + filepath.Join(to.Dir, "media"))
	if _, err := app.Restore(b.t.Context(), to, media, b.dir); err != nil {
		b.t.Fatal(err)
	}
	return media
}

// A backup is made while the server runs, and restored to either database. The restored server shows what was
// there before, and nothing of what came after; its device connects without a scan, and messages arrive in
// both directions although the ratchets of both ends differ.
func TestBackupIsRestored(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name     string
		from, to func(*testing.T) string
	}{
		{"SQLite", noURL, noURL},
		{"PostgreSQL", newURL, newURL},
		{"PostgreSQL to SQLite", newURL, noURL},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			b := backUp(t, way.from(t))
			b.kit.Stop()
			url := way.to(t)
			b.kit.Shared = url != ""
			b.kit.Config.Data = b.place(url)
			b.kit.Config.MediaURL = b.restore(b.kit.Config.Data)
			b.kit.Boot()
			b.client.Await(b.device.ID, postern.Connected)
			awaitReport(t, b.kit, "")
			after := everything(b.client)
			for path, list := range b.before {
				if !isWithin(list, after[path]) {
					t.Errorf("%s showed\n%s\nand shows\n%s", path, list, after[path])
				}
			}
			b.client.Call("GET", "/v1/messages/"+string(b.later.ID), nil, 404, nil)
			if got := b.client.Download(b.file.ID); !bytes.Equal(got, []byte(fileContents)) {
				t.Errorf("the file has %q", got)
			}
			first := b.converse("after the restore")
			for _, e := range b.kit.Vendor.Ledger(0, 0) {
				if e.NetworkID == first.NetworkID && e.Copies != 1 {
					t.Errorf("the recipient's phone could read only the copy number %d", e.Copies)
				}
			}
		})
	}
}

func noURL(*testing.T) string    { return "" }
func newURL(t *testing.T) string { t.Helper(); return dbtest.URL(t) }

// A backup in which any bit is flipped, or from which a file is missing, is refused, and leaves nothing.
func TestDamagedBackupIsRefused(t *testing.T) {
	t.Parallel()
	b := backUp(t, "")
	files, err := filepath.Glob(filepath.Join(b.dir, "*"))
	media, err2 := filepath.Glob(filepath.Join(b.dir, "media/ws_*/*/*"))
	if files = append(files, media...); errors.Join(err, err2) != nil || len(media) != 1 {
		t.Fatalf("the files are %v", files)
	}
	to := b.place("")
	for _, name := range files {
		whole, err := os.ReadFile(name)
		if err != nil {
			continue // the directory of the media
		}
		for _, damage := range []func(){
			func() { flip(t, name, whole, len(whole)/2) },
			func() { flip(t, name, whole, len(whole)-2) },
			func() { _ = os.Remove(name) },
		} {
			damage()
			if _, err := app.Restore(t.Context(), to, "", b.dir); err == nil {
				t.Errorf("a backup with a damaged %s is restored", name)
			}
			if err := os.WriteFile(name, whole, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	extra := filepath.Join(b.dir, "media", "extra")
	flip(t, extra, []byte("ab"), 0)
	if _, err := app.Restore(t.Context(), to, "", b.dir); err == nil {
		t.Error("a backup with one more file is restored")
	}
	if left, err := os.ReadDir(to.Dir); err != nil || len(left) != 1 {
		t.Errorf("the directory has %v, %v", left, err)
	}
	if err := os.Remove(extra); err != nil {
		t.Fatal(err)
	}
	refused := func(want string) {
		t.Helper()
		if _, err := app.Restore(t.Context(), to, "", b.dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	interrupted := filepath.Join(to.Dir, "restore.partial")
	if err := os.Mkdir(interrupted, 0o700); err != nil {
		t.Fatal(err)
	}
	refused("remove " + interrupted)
	lock, err := db.LockDir(to.Dir)
	if err != nil {
		t.Fatal(err)
	}
	refused("is in use by process")
	if err := errors.Join(lock.Release(), os.Remove(interrupted)); err != nil {
		t.Fatal(err)
	}
	b.restore(to)
	refused("is not empty")
	if _, err := backup.Verify(t.Context(), b.dir); err != nil {
		t.Error(err)
	}
}

// A backup lacks no file unnoticed: the operator has to say that files are lost. Making it creates nothing in
// the data directory.
func TestBackupWithoutFilesIsRefused(t *testing.T) {
	t.Parallel()
	b := backUp(t, "")
	stored := filepath.Join(b.kit.Config.Dir, "media")
	if err := os.Rename(stored, stored+".away"); err != nil {
		t.Fatal(err)
	}
	o, dir := app.BackupOptions{}, filepath.Join(t.TempDir(), "backup")+"/"
	_, err := app.Backup(t.Context(), b.kit.Config.Data, o, dir)
	if err == nil || !strings.Contains(err.Error(), "lacks 1 files") {
		t.Errorf("a backup without its files: %v", err)
	}
	if _, err := os.Stat(stored); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of the files: %v", err)
	}
	o.AllowLost = true
	m, err := app.Backup(t.Context(), b.kit.Config.Data, o, dir)
	if err != nil || m.Media.Lost != 1 || m.Media.Files != 0 {
		t.Errorf("a backup that may lack files: %+v, %v", m.Media, err)
	}
}

// flip writes a file with one bit flipped.
func flip(t *testing.T, name string, whole []byte, at int) {
	t.Helper()
	damaged := bytes.Clone(whole)
	damaged[at] ^= 1
	if err := os.WriteFile(name, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
}

// If a restored server and the one that was backed up run at the same time, the device of one of them is in conflict.
func TestTwoServersWithOneDeviceAreNoticed(t *testing.T) {
	t.Parallel()
	b := backUp(t, "")
	to := b.place("")
	media := b.restore(to)
	other := b.kit.Another(func(c *config.Server) { c.Data, c.MediaURL = to, media })
	there := b.client.At(other)
	testkit.Eventually(t, "one of the two is in conflict", func() (bool, any) {
		here, restored := b.client.Device(b.device.ID).Status, there.Device(b.device.ID).Status
		return here == postern.Conflict || restored == postern.Conflict, []postern.Status{here, restored}
	})
}
