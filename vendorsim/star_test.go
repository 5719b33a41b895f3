package vendorsim_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/appstate"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waServerSync"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"
)

// star changes the star of a message in the chat with bob.
func (c *client) star(id string, fromMe, starred bool) {
	c.t.Helper()
	chat := c.lidOf(bob)
	send := func() error {
		return c.wa.SendAppState(c.t.Context(), appstate.BuildStar(chat, chat, id, fromMe, starred))
	}
	err := send()
	if errors.Is(err, whatsmeow.ErrAppStateUpdate) {
		// whatsmeow repeats a patch that comes after another one by itself. But it may be told of the other
		// one at the same time, and then forgets the version that it has just learned.
		err = send()
	}
	if err != nil {
		c.t.Fatalf("star: %v", err)
	}
}

// starred waits for the star of a message.
func (c *client) starred(id string, on bool) *events.Star {
	c.t.Helper()
	return await(c, fmt.Sprintf("star of %s: %v", id, on), func(e *events.Star) bool {
		return e.MessageID == id && e.Action.GetStarred() == on
	})
}

func TestMessagesAreStarred(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	a.synced()
	mine, theirs := a.send(bob, "mine"), write(t, v, bob, "theirs")
	a.message("theirs")

	if err := v.Star(t.Context(), alice, theirs, true); err != nil {
		t.Fatal(err)
	}
	e := a.starred(theirs, true)
	if e.ChatJID != a.lidOf(bob) || e.IsFromMe || !e.SenderJID.IsEmpty() || e.Timestamp.IsZero() {
		t.Errorf("star is %+v", e)
	}
	a.star(mine, true, true)
	if list := v.Ledger(0, 0); list[len(list)-1].Type != vendorsim.TypeStar || list[len(list)-1].Target != mine ||
		list[len(list)-1].Body != "1" || list[len(list)-1].Peer != bob {
		t.Errorf("the ledger ends in %+v", list[len(list)-1])
	}
	if !shown(t, v, alice, mine).Starred || shown(t, v, bob, mine).Starred {
		t.Error("alice's phone does not show the star, or bob's does")
	}
	a.star(theirs, false, false)
	if shown(t, v, alice, theirs).Starred {
		t.Error("alice's phone shows the star that was taken away")
	}
	a.star(mine, false, false) // of a message of bob with this id, which does not exist
	a.star("nothing", true, true)
	if !shown(t, v, alice, mine).Starred {
		t.Error("a star of another message changed this one")
	}
	if err := v.Star(t.Context(), alice, "nothing", true); !errors.Is(err, vendorsim.ErrUnknownMessage) {
		t.Errorf("star of nothing: %v, want %v", err, vendorsim.ErrUnknownMessage)
	}
}

// Every companion learns what another one or the phone has starred, also while it was offline, and
// may be behind when it sends a change of its own.
func TestCompanionsShareTheirStars(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a, b := link(t, v, alice), link(t, v, alice)
	a.synced()
	b.synced()
	id := a.send(bob, "remember")
	a.star(id, true, true)
	b.starred(id, true)
	b.wa.Disconnect()
	a.star(id, true, false)
	b.connect()
	b.starred(id, false)

	fault(t, v, alice, vendorsim.FaultStateConflict)
	a.star(id, true, true)
	b.starred(id, true)
	if !shown(t, v, alice, id).Starred {
		t.Error("a patch that came after another one is lost")
	}
}

// A companion that is linked later gets everything at once, in patches or as a file.
func TestStarsAreReadFromTheBeginning(t *testing.T) {
	t.Parallel()
	for _, stars := range []int{3, 25} {
		v := openVendor(t, "")
		a := link(t, v, alice)
		a.synced()
		for range stars {
			a.star(a.send(bob, "remember"), true, true)
		}
		b := newClient(t, v, newContainer(t).NewDevice())
		b.wa.EmitAppStateEventsOnFullSync = true
		b.link(v, alice)
		for _, m := range v.Shown(alice) {
			if e := b.starred(m.ID, true); !e.FromFullSync {
				t.Errorf("star is %+v, want one from the beginning", e)
			}
		}
	}
}

// A companion that was away for long gets the patches in several answers.
func TestManyPatchesComeInParts(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	a.synced()
	id := a.send(bob, "remember")
	a.wa.Disconnect()
	for i := range 121 {
		if err := v.Star(t.Context(), alice, id, i%2 == 0); err != nil {
			t.Fatal(err)
		}
	}
	a.connect()
	for i := range 121 {
		a.starred(id, i%2 == 0)
	}
}

func TestStarsSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := openVendor(t, dir)
	a := link(t, v, alice)
	a.synced()
	id := a.send(bob, "remember")
	a.star(id, true, true)
	a.wa.Disconnect()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	v = openVendor(t, dir)
	if !shown(t, v, alice, id).Starred {
		t.Error("the star is gone")
	}
	again := newClient(t, v, a.device)
	again.number = alice
	again.connect()
	again.star(id, true, false)
	if shown(t, v, alice, id).Starred {
		t.Error("the phone still shows the star")
	}
}

// A phone that did not share its key is asked for it, and answers when it wants to.
func TestPhonesMayWithholdTheirKeys(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	if err := v.WithholdStateKeys(alice); err != nil {
		t.Fatal(err)
	}
	a := link(t, v, alice)
	chat, id := jid(bob), a.send(bob, "remember")
	patch := appstate.BuildStar(chat, chat, id, true, true)
	if err := a.wa.SendAppState(t.Context(), patch); err == nil {
		t.Error("a client without a key can star")
	}
	if err := v.Star(t.Context(), alice, id, true); err != nil {
		t.Fatal(err)
	}
	err := a.wa.FetchAppState(t.Context(), appstate.WAPatchRegularHigh, false, false)
	if !errors.Is(err, appstate.ErrKeyNotFound) {
		t.Errorf("the app state is read without its key: %v", err)
	}
	if err := v.ShareStateKeys(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	a.synced()
	a.star(id, true, false)
	if shown(t, v, alice, id).Starred {
		t.Error("the star was not taken away")
	}
}

// damagedPatches are changes that a careless client could make to a patch.
func damagedPatches() map[string]func(*waServerSync.SyncdPatch) {
	record := func(p *waServerSync.SyncdPatch) *waServerSync.SyncdRecord { return p.GetMutations()[0].GetRecord() }
	return map[string]func(*waServerSync.SyncdPatch){
		"MAC of all values": func(p *waServerSync.SyncdPatch) { p.SnapshotMAC[3] ^= 1 },
		"MAC of the patch":  func(p *waServerSync.SyncdPatch) { p.PatchMAC[3] ^= 1 },
		"value":             func(p *waServerSync.SyncdPatch) { record(p).Value.Blob[3] ^= 1 },
		"index":             func(p *waServerSync.SyncdPatch) { record(p).Index.Blob[3] ^= 1 },
		"too short":         func(p *waServerSync.SyncdPatch) { record(p).Value.Blob = []byte{1} },
		"key":               func(p *waServerSync.SyncdPatch) { p.KeyID.ID = []byte("other") },
		"nothing":           func(p *waServerSync.SyncdPatch) { p.Mutations = nil },
	}
}

func TestWrongPatchesAreRefused(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	a.synced()
	id := a.send(bob, "remember")
	for name, damage := range damagedPatches() {
		if code := a.sendPatch(id, damage); code != "400" {
			t.Errorf("a patch with a wrong %s is answered with %q, want 400", name, code)
		}
	}
	if shown(t, v, alice, id).Starred {
		t.Error("a refused patch has an effect")
	}
	if code := a.sendPatch(id, func(*waServerSync.SyncdPatch) {}); code != "" {
		t.Errorf("a right patch is refused with %s", code)
	}
	if !shown(t, v, alice, id).Starred {
		t.Error("a right patch has no effect")
	}
}

// sendPatch sends a patch that stars a message, after a change, and returns the code of the refusal.
func (c *client) sendPatch(id string, damage func(*waServerSync.SyncdPatch)) (code string) {
	c.t.Helper()
	ctx, name := c.t.Context(), appstate.WAPatchRegularHigh
	version, hash, err := c.device.AppState.GetAppStateVersion(ctx, string(name))
	key, keyErr := c.device.AppStateKeys.GetLatestAppStateSyncKeyID(ctx)
	proc := appstate.NewProcessor(c.device, c.wa.Log)
	chat := c.lidOf(bob)
	raw, encErr := proc.EncodePatch(ctx, key, appstate.HashState{Version: version, Hash: hash},
		appstate.BuildStar(chat, chat, id, true, true))
	patch := new(waServerSync.SyncdPatch)
	if err := errors.Join(err, keyErr, encErr, proto.Unmarshal(raw, patch)); err != nil {
		c.t.Fatal(err)
	}
	damage(patch)
	return c.pushPatch(ctx, string(name), version, mustMarshal(c.t, patch))
}

func (c *client) pushPatch(ctx context.Context, name string, version uint64, raw []byte) (code string) {
	c.t.Helper()
	internals := c.wa.DangerousInternals() //nolint:staticcheck // whatsmeow sends only right patches
	answer, err := internals.SendIQ(ctx, whatsmeow.DangerousInfoQuery{
		Namespace: "w:sync:app:state", Type: "set", To: types.ServerJID,
		Content: []waBinary.Node{{Tag: "sync", Content: []waBinary.Node{{
			Tag: "collection", Attrs: waBinary.Attrs{"name": name, "version": version, "return_snapshot": false},
			Content: []waBinary.Node{{Tag: "patch", Content: raw}},
		}}}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	refusal := answer.GetChildByTag("sync", "collection", "error")
	return refusal.AttrGetter().OptionalString("code")
}

// The vendor can hand out patches that are wrong; a client notices.
func TestDamagedPatchesAreNoticed(t *testing.T) {
	t.Parallel()
	for damage, want := range []error{
		appstate.ErrMismatchingLTHash, appstate.ErrMismatchingPatchMAC, appstate.ErrMismatchingContentMAC,
		appstate.ErrMismatchingIndexMAC,
	} {
		v := openVendor(t, "")
		a := link(t, v, alice)
		a.synced()
		id := a.send(bob, "remember")
		before := v.StateQueries(alice)
		fault(t, v, alice, vendorsim.Fault(fmt.Sprintf("%s:%d", vendorsim.FaultStateDamaged, damage)))
		if err := v.Star(t.Context(), alice, id, true); err != nil {
			t.Fatal(err)
		}
		e := await[*events.AppStateSyncError](a, "an error", nil)
		if !errors.Is(e.Error, want) {
			t.Errorf("damage %d gives %v, want %v", damage, e.Error, want)
		}
		if n := v.StateQueries(alice) - before; n != 1 {
			t.Errorf("%d fetches, want 1", n)
		}
	}
}
