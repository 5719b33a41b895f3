package vendorsim_test

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"testing"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow/types/events"
)

func TestRestartKeepsEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := openVendor(t, dir)
	container := newContainer(t)
	c := newClient(t, v, container.NewDevice())
	c.link(v, alice)
	c.send(bob, "out before")
	write(t, v, bob, "in before")
	c.message("in before")
	until(t, v, "it is acknowledged", func() bool { return v.Ledger(1, 0)[0].AckedAt != nil })
	c.wa.Disconnect()
	until(t, v, "alice is offline", func() bool { return !v.Accounts()[0].Online })
	write(t, v, bob, "queued")
	ledger, shown, accounts := v.Ledger(0, 0), v.Shown(bob), v.Accounts()
	accounts[0].Logins = 0 // they are counted from the start
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}

	v = openVendor(t, dir)
	if got := v.Shown(bob); !reflect.DeepEqual(got, shown) {
		t.Errorf("bob's phone shows %+v, want %+v", got, shown)
	}
	if got := v.Accounts(); !slices.Equal(got, accounts) {
		t.Errorf("accounts are %+v, want %+v", got, accounts)
	}
	if got := v.Ledger(0, 0); len(got) != len(ledger) || got[2].Body != "queued" ||
		!got[0].ArrivedAt.Equal(ledger[0].ArrivedAt) {
		t.Errorf("ledger is %+v, want %+v", got, ledger)
	}
	again := newClient(t, v, c.device)
	again.connect()
	again.message("queued")
	if n := count[*events.Message](again); n != 0 {
		t.Errorf("%d messages came again", n)
	}
	again.send(bob, "out after")
	write(t, v, bob, "in after")
	again.message("in after")
	if got, want := bodies(v, bob), []string{"out before", "out after"}; !slices.Equal(got, want) {
		t.Errorf("bob's phone shows %q, want %q", got, want)
	}
	if n := count[*events.UndecryptableMessage](again); n != 0 {
		t.Errorf("%d messages were undecryptable", n)
	}
}

func TestWhatWasAcknowledgedIsOnTheDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := openVendor(t, dir)
	c := link(t, v, alice)
	id := c.send(bob, "safe")

	// What another process finds when this one is killed now.
	killed := t.TempDir()
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	after := openVendor(t, killed)
	if e := entry(t, after, id); e.Body != "safe" || e.Copies != 1 {
		t.Errorf("entry is %+v", e)
	}
	if got := bodies(after, bob); !slices.Equal(got, []string{"safe"}) {
		t.Errorf("bob's phone shows %q", got)
	}
	if got := after.Accounts(); len(got) != 1 || !got[0].Linked {
		t.Errorf("accounts are %+v", got)
	}
}

func TestDirectoryBelongsToItsKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := openVendor(t, dir)
	root := v.RootKey()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := vendorsim.Open(vendorsim.Options{Dir: dir, Keys: vendorsim.NewKeys()}); !errors.Is(err,
		vendorsim.ErrOtherKeys) {
		t.Errorf("Open with other keys = %v, want %v", err, vendorsim.ErrOtherKeys)
	}
	own, err := vendorsim.Open(vendorsim.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if own.RootKey() != root {
		t.Error("root key changed")
	}
	if err := own.Close(); err != nil {
		t.Error(err)
	}
}

func TestLedgerIsPaged(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	link(t, v, alice)
	for _, body := range []string{"a", "b", "c", "d"} {
		write(t, v, bob, body)
	}
	for _, tt := range []struct {
		after int64
		limit int
		want  string
	}{{0, 0, "abcd"}, {0, 2, "ab"}, {2, 2, "cd"}, {3, 10, "d"}, {4, 1, ""}, {-5, 1, "a"}, {99, 1, ""}} {
		got := ""
		for _, e := range v.Ledger(tt.after, tt.limit) {
			got += e.Body
		}
		if got != tt.want {
			t.Errorf("Ledger(%d, %d) = %q, want %q", tt.after, tt.limit, got, tt.want)
		}
	}
}
