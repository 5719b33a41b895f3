package testkit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"postern/internal/app"
	"postern/internal/config"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store/migrated"
	"postern/internal/store/secretkey"
	"postern/internal/testkit"
)

// commands runs do as a command beside the server.
func commands(t *testing.T, k *testkit.Kit, do func(c *app.Commands) error) {
	t.Helper()
	c, err := app.OpenCommands(t.Context(), k.Config.Data)
	if err != nil {
		t.Fatal(err)
	}
	if err := do(c); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// rotate puts a new key in the key file.
func rotate(t *testing.T, k *testkit.Kit) (id seal.KeyID) {
	t.Helper()
	commands(t, k, func(c *app.Commands) (err error) {
		id, _, err = c.RotateSecretKey(t.Context())
		return err
	})
	return id
}

// awaitKeys waits until the states of the keys, the newest first, are some.
func awaitKeys(t *testing.T, k *testkit.Kit, want ...secretkey.State) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprint("secret keys: ", want), func() (bool, any) {
		var got []secretkey.State
		s, err := app.ServerStatus(t.Context(), k.Config.Data)
		for _, key := range s.SecretKeys {
			got = append(got, key.State)
		}
		return err == nil && slices.Equal(got, want), fmt.Sprint(got, err)
	})
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The secret key is rotated while devices send and receive and webhooks are signed. Afterwards the server works
// with the new key alone, and refuses to start without it.
func TestSecretKeyIsRotatedUnderLoad(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"sqlite": "", "postgres": migrated.URL(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := testkit.StartOn(t, url)
			c := k.Workspace("growth")
			hooks := c.Receive(string(postern.MessageSent))
			devices := []postern.Device{c.Link(phone), c.Link("+15550004321")}
			path := k.Config.KeyFile()
			before := read(t, path)
			converse := func(text string) {
				for _, d := range devices {
					c.AwaitMessage(send(c, d, reader, text).ID, postern.Read)
				}
			}
			sent := 0
			done := make(chan struct{})
			var load sync.WaitGroup
			load.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						converse("under load")
						sent += len(devices)
					}
				}
			})
			rotate(t, k)
			awaitKeys(t, k, secretkey.Encrypts, secretkey.Retired)
			close(done)
			load.Wait()
			hooks.AwaitCount(postern.MessageSent, sent)
			commands(t, k, func(c *app.Commands) error {
				_, ids, err := c.PruneSecretKeys(t.Context(), false)
				if len(ids) != 1 {
					t.Errorf("removed %v", ids)
				}
				return err
			})
			awaitReport(t, k, "")
			after := read(t, path)
			if bytes.Contains(after, bytes.TrimSpace(before)) {
				t.Error("the old key is still in the file")
			}
			k.Stop()
			write(t, path, before)
			if err := k.TryBoot(); err == nil || !strings.Contains(err.Error(), "lacks the secret key") {
				t.Errorf("with the old key alone, the server says %v", err)
			}
			write(t, path, after)
			k.Boot()
			for _, d := range devices {
				c.Await(d.ID, postern.Connected)
			}
			converse("with the new key alone")
			hooks.AwaitCount(postern.MessageSent, sent+len(devices))
		})
	}
}

// A rotation that a stop of the server interrupts goes on when it starts again, from wherever it was.
func TestRotationGoesOnAfterAStop(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := c.Link(phone)
	k.Stop()
	first := rotate(t, k) // no server runs
	k.Boot()
	awaitKeys(t, k, secretkey.Encrypts, secretkey.Retired)
	c.Await(d.ID, postern.Connected)
	if second := rotate(t, k); second == first {
		t.Error("the key did not change")
	}
	k.Stop() // at whatever point it is
	k.Boot()
	awaitKeys(t, k, secretkey.Encrypts, secretkey.Retired, secretkey.Retired)
	c.Await(d.ID, postern.Connected)
	c.AwaitMessage(send(c, d, reader, "after both").ID, postern.Read)
}

// Several servers encrypt with a new key only when all of them know it. A server whose file lacks it is named,
// and cannot start any more once the others encrypt with it.
func TestServersRotateTogether(t *testing.T) {
	t.Parallel()
	first := testkit.StartOn(t, migrated.URL(t))
	first.Stop()
	first.Shared = true
	first.Boot()
	file := filepath.Join(t.TempDir(), "secret.key")
	old := read(t, first.Config.KeyFile())
	write(t, file, old)
	second := first.Another(func(c *config.Server) { c.SecretKeyFile = file })
	c := first.Workspace("growth")
	d := linkMoving(t, c, phone)
	rotate(t, first)
	testkit.Eventually(t, "the server that lacks the key", func() (bool, any) {
		s, err := app.ServerStatus(t.Context(), first.Config.Data)
		return err == nil && len(s.SecretKeys) == 2 && s.SecretKeys[0].State == "waiting" &&
			len(s.SecretKeys[0].Lacking) == 1, s.SecretKeys
	})
	write(t, file, read(t, first.Config.KeyFile()))
	awaitKeys(t, second, secretkey.Encrypts, secretkey.Retired)
	for _, at := range []*testkit.Client{c, c.At(second)} {
		at.Await(d.ID, postern.Connected)
		at.AwaitMessage(queue(at, d, "with the new key").ID, postern.Read)
	}
	second.Stop()
	write(t, file, old)
	if err := second.TryBoot(); err == nil || !strings.Contains(err.Error(), "lacks the secret key") {
		t.Errorf("with the old key alone, the server says %v", err)
	}
}
