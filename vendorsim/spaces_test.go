package vendorsim_test

import (
	"errors"
	"slices"
	"testing"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types/events"
)

func openSpaces(t *testing.T, dir string, owners map[string]string) *vendorsim.Spaces {
	t.Helper()
	s, err := vendorsim.OpenSpaces(vendorsim.Options{Dir: dir, Keys: testKeys}, owners)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func spaceOf(t *testing.T, s *vendorsim.Spaces, name string) *vendorsim.Vendor {
	t.Helper()
	v, err := s.Of(name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSameNumberInTwoSpacesIsTwoPhones(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSpaces(t, dir, nil)
	one, two := spaceOf(t, s, "ws_1"), spaceOf(t, s, "ws_2")
	a, b := link(t, one, alice), link(t, two, alice)
	a.send(bob, "from one")
	b.send(bob, "from two")
	write(t, one, bob, "to one")
	a.message("to one")
	for want, v := range map[string]*vendorsim.Vendor{"from one": one, "from two": two} {
		if got := bodies(v, bob); !slices.Equal(got, []string{want}) {
			t.Errorf("bob's phone shows %q, want %q", got, want)
		}
		if got := v.Accounts(); len(got) != 1 || got[0].Companions != 1 {
			t.Errorf("accounts = %+v, want one companion", got)
		}
	}
	if n := count[*events.Message](b); n != 0 {
		t.Errorf("the other account got %d messages", n)
	}
	for _, bad := range []string{"", "..", "a/b", "a.partial"} {
		if _, err := s.Of(bad); !errors.Is(err, vendorsim.ErrBadSpace) {
			t.Errorf("the space %q is answered %v", bad, err)
		}
	}
	a.wa.Disconnect()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Of("ws_1"); !errors.Is(err, vendorsim.ErrClosed) {
		t.Errorf("a space after Close: %v", err)
	}

	one = spaceOf(t, openSpaces(t, dir, nil), "ws_1")
	again := newClient(t, one, a.device)
	again.connect()
	again.send(bob, "from one again")
	if got, want := bodies(one, bob), []string{"from one", "from one again"}; !slices.Equal(got, want) {
		t.Errorf("bob's phone shows %q, want %q", got, want)
	}
}

// TestDirectoryOfOneNetworkIsDivided opens the state of one network, on which alice and carol
// belonged to different owners, as two spaces.
func TestDirectoryOfOneNetworkIsDivided(t *testing.T) {
	t.Parallel()
	const carol = "+15550003333"
	dir := t.TempDir()
	v := openVendor(t, dir)
	a, c := link(t, v, alice), link(t, v, carol)
	a.send(bob, "alice to bob")
	c.send(bob, "carol to bob")
	c.send(alice, "carol to alice")
	picture := a.uploaded([]byte("picture"))
	a.message("carol to alice")
	a.wa.Disconnect()
	c.wa.Disconnect()
	until(t, v, "both are offline", func() bool {
		return !slices.ContainsFunc(v.Accounts(), func(a vendorsim.Account) bool { return a.Online })
	})
	write(t, v, bob, "queued")
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}

	owners := map[string]string{alice: "ws_1", carol: "ws_2"}
	if err := openSpaces(t, dir, map[string]string{"+15559999999": "ws_3"}).Close(); err != nil { // another database
		t.Fatal(err)
	}
	for range 2 { // the second time, everything is divided
		s := openSpaces(t, dir, owners)
		one, two := spaceOf(t, s, "ws_1"), spaceOf(t, s, "ws_2")
		for number, v := range map[string]*vendorsim.Vendor{alice: one, carol: two} {
			if got := v.Accounts(); len(got) != 1 || got[0].Number != number || got[0].Companions != 1 {
				t.Errorf("accounts = %+v, want %s alone", got, number)
			}
			for _, m := range slices.Concat(v.Shown(alice), v.Shown(bob), v.Shown(carol)) {
				if m.From != number && m.To != number {
					t.Errorf("the space of %s shows %+v", number, m)
				}
			}
			for _, e := range v.Ledger(0, 0) {
				if e.Account != number {
					t.Errorf("the ledger of %s has %+v", number, e)
				}
			}
		}
		if got := one.Shown(alice); len(got) != 2 { // to bob, and queued
			t.Errorf("alice's phone shows %+v, want what alice and bob wrote", got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}

	one := spaceOf(t, openSpaces(t, dir, owners), "ws_1")
	again := newClient(t, one, a.device)
	again.connect()
	again.message("queued")
	if got, err := again.wa.Download(t.Context(), picture); err != nil || string(got) != "picture" {
		t.Errorf("downloaded %q, %v", got, err)
	}
	again.send(bob, "afterwards")
	if got, want := bodies(one, bob), []string{"alice to bob", "afterwards"}; !slices.Equal(got, want) {
		t.Errorf("bob's phone shows %q, want %q", got, want)
	}
	if n := count[*events.UndecryptableMessage](again); n != 0 {
		t.Errorf("%d messages were undecryptable", n)
	}
}

func TestMediaBelongToTheirSpace(t *testing.T) {
	t.Parallel()
	s := openSpaces(t, "", nil)
	one, two := link(t, spaceOf(t, s, "ws_1"), alice), link(t, spaceOf(t, s, "ws_2"), alice)
	msg := one.uploaded([]byte("mine"))
	if got, err := one.wa.Download(t.Context(), msg); err != nil || string(got) != "mine" {
		t.Errorf("downloaded %q, %v", got, err)
	}
	if _, err := two.wa.Download(t.Context(), msg); !errors.Is(err, whatsmeow.ErrMediaDownloadFailedWith404) {
		t.Errorf("download in another space: %v, want 404", err)
	}
}
