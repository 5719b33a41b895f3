package vendorsim

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"

	"go.mau.fi/whatsmeow/appstate"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waServerSync"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

const (
	// maxPatches is how many patches of a collection one answer has.
	maxPatches = 50
	// snapshotAfter is the version from which on a client that asks for a snapshot gets one. Before,
	// it gets all patches.
	snapshotAfter = 20

	kindStateSync = "server_sync"
	patchTag      = "patch"
)

// The codes with which the vendor refuses a patch.
const (
	codeConflict = 409 // it is not about the newest version
	codeBadPatch = 400
)

// The faults of the app state. Both wait for an event.
const (
	// FaultStateDamaged damages the newest patch, or the snapshot, in the next answer to a companion
	// that fetches the app state. Its argument is the MAC that is wrong then: 0 that of all values,
	// 1 that of the patch, 2 that of a value, 3 that of an index, and 4 a value that is too short to
	// have one. The default is 0.
	FaultStateDamaged Fault = "state-damaged"
	// FaultStateConflict lets the phone change a setting right before the next patch of a companion,
	// so that the patch is refused.
	FaultStateConflict Fault = "state-conflict"
)

const damages = 5 // arguments of FaultStateDamaged

// stateAction returns what a fault of the app state does to an account.
func (faults) stateAction(f Fault, kind, arg string) (func(*account), error) {
	damage, err := strconv.Atoi(orZero(arg))
	damaged := Fault(kind) == FaultStateDamaged && err == nil && damage < damages
	if !damaged && f != FaultStateConflict {
		return nil, fmt.Errorf("%w: %q", ErrUnknownFault, f)
	}
	return func(a *account) { a.arm(f) }, nil
}

// StateQueries returns how often the companions of a number have fetched the app state, or a part of
// it, since the Vendor was opened.
func (v *Vendor) StateQueries(num string) int {
	n, err := parseNumber(num)
	if err != nil {
		return 0
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if a := v.accounts[n]; a != nil {
		return a.stateQueries
	}
	return 0
}

// snapshot is all of a collection in a file.
type snapshot struct {
	version uint64
	file    Media
}

// sync answers a companion that fetches the app state or sends patches.
func (v states) sync(ctx context.Context, c *conn, n *waBinary.Node) {
	query := n.GetChildByTag("sync")
	var out []waBinary.Node
	for _, wanted := range query.GetChildrenByTag("collection") {
		out = append(out, v.answer(ctx, c.companion, &wanted))
	}
	c.replyDurably(n, waBinary.Node{Tag: "sync", Content: out})
}

func (v states) answer(ctx context.Context, cp *companion, n *waBinary.Node) waBinary.Node {
	v.interfere(ctx, cp, n)
	s := v.stateOf(cp.account.number)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collections[appstate.WAPatchName(attr(n, "name"))]
	if c == nil {
		return refusedState(attr(n, "name"), 404, "item-not-found")
	}
	version, _ := strconv.ParseUint(attr(n, "version"), 10, 64) // 0 for none
	patch, sends := n.GetOptionalChildByTag(patchTag)
	switch {
	case !sends:
		return v.fetched(cp, c, version, attr(n, "return_snapshot") == "true")
	case version != c.state.Version:
		out := refusedState(string(c.name), codeConflict, "conflict")
		out.Content = append(out.GetChildren(), c.since(version, out.Attrs, nil))
		return out
	}
	if err := v.take(ctx, cp.account.number, s, c, content(patch), cp); err != nil {
		v.log.InfoContext(ctx, "patch refused", "account", cp.account.number, "error", err)
		return refusedState(string(c.name), codeBadPatch, "bad-request")
	}
	return c.node()
}

// interfere lets the phone change a setting before a patch of a companion, if that fault is armed.
func (v states) interfere(ctx context.Context, cp *companion, n *waBinary.Node) {
	if _, sends := n.GetOptionalChildByTag(patchTag); !sends || !v.faults.fault(cp, FaultStateConflict) {
		return
	}
	if err := v.change(ctx, cp.account.number, otherSetting(appstate.WAPatchName(attr(n, "name")))); err != nil {
		v.log.WarnContext(ctx, "state conflict", "account", cp.account.number, "error", err)
	}
}

func refusedState(name string, code int, text string) waBinary.Node {
	return waBinary.Node{
		Tag: "collection", Attrs: waBinary.Attrs{"name": name, "type": "error"},
		Content: []waBinary.Node{{Tag: "error", Attrs: waBinary.Attrs{"code": code, "text": text}}},
	}
}

func (c *collection) node() waBinary.Node {
	return waBinary.Node{Tag: "collection", Attrs: waBinary.Attrs{"name": string(c.name), "version": c.state.Version}}
}

// fetched returns the patches after a version, or a snapshot.
func (v states) fetched(cp *companion, c *collection, version uint64, whole bool) waBinary.Node {
	v.mu.Lock()
	cp.account.stateQueries++
	damage, damaged := v.faults.takeCode(cp.account, FaultStateDamaged, 0)
	v.notify()
	v.mu.Unlock()
	var harm func(*waServerSync.SyncdPatch)
	if damaged {
		harm = func(p *waServerSync.SyncdPatch) { harmPatch(p, damage) }
	}
	out := c.node()
	if whole && c.state.Version > snapshotAfter {
		if file, err := v.snapshotOf(cp.account.number, c, harm); err == nil {
			out.Content = []waBinary.Node{{Tag: "snapshot", Content: file}}
			return out
		}
	}
	out.Content = []waBinary.Node{c.since(version, out.Attrs, harm)}
	return out
}

// since returns the patches after a version. If there are too many for one answer, it says so in the
// attributes of the collection. harm, unless it is nil, damages the newest.
func (c *collection) since(version uint64, attrs waBinary.Attrs, harm func(*waServerSync.SyncdPatch)) waBinary.Node {
	patches, more := c.after(version)
	if more {
		attrs["has_more_patches"] = true
	}
	nodes := make([]waBinary.Node, len(patches))
	for i, p := range patches {
		if harm != nil && i == len(patches)-1 {
			p, _ = proto.Clone(p).(*waServerSync.SyncdPatch) // a clone has the type of its original
			harm(p)
		}
		raw, _ := proto.Marshal(p) // it was decoded, so it can be encoded
		nodes[i] = waBinary.Node{Tag: patchTag, Content: raw}
	}
	return waBinary.Node{Tag: "patches", Content: nodes}
}

// harmPatch damages a patch; see FaultStateDamaged.
func harmPatch(p *waServerSync.SyncdPatch, damage int) {
	record := p.GetMutations()[0].GetRecord()
	value := record.GetValue().GetBlob()
	switch damage {
	case 0:
		p.SnapshotMAC[0] ^= 1
	case 1:
		p.PatchMAC[0] ^= 1
	case 2:
		value[0] ^= 1 // the value is another, so its MAC is wrong
	case 3:
		record.Index.Blob[0] ^= 1
	default:
		record.Value.Blob = value[:macBytes/2]
	}
}

// snapshotOf returns where the snapshot of a collection is. The vendor cannot make one, because it
// has no key: its MAC is that of the newest patch.
func (v states) snapshotOf(n number, c *collection, harm func(*waServerSync.SyncdPatch)) ([]byte, error) {
	newest := c.patches[len(c.patches)-1]
	whole := &waServerSync.SyncdSnapshot{
		Version: newest.GetVersion(), Records: c.sorted(), KeyID: newest.GetKeyID(),
		Mac: slices.Clone(newest.GetSnapshotMAC()),
	}
	if harm != nil {
		whole.Mac[0] ^= 1
	}
	if c.snapshot == nil || c.snapshot.version != c.state.Version || harm != nil {
		file, err := v.storeSnapshot(n, whole)
		if err != nil {
			return nil, err
		}
		if harm != nil {
			return file.reference()
		}
		c.snapshot = &snapshot{version: c.state.Version, file: file}
	}
	return c.snapshot.file.reference()
}

func (v states) storeSnapshot(n number, whole *waServerSync.SyncdSnapshot) (Media, error) {
	raw, err := proto.Marshal(whole)
	if err != nil {
		return Media{}, err
	}
	d, err := v.blobs.create()
	if err != nil {
		return Media{}, err
	}
	m, err := encryptFile(d, bytes.NewReader(raw), classState)
	if err != nil {
		d.discard()
		return Media{}, err
	}
	one, err := d.keep(n)
	if err != nil {
		return Media{}, err
	}
	m.Path = one.path()
	return m, nil
}

// reference returns what the vendor says about a file of the app state.
func (m Media) reference() ([]byte, error) {
	return proto.Marshal(&waServerSync.ExternalBlobReference{
		MediaKey: m.Key, DirectPath: &m.Path, FileSizeBytes: new(uint64(m.Size)), //nolint:gosec // at most maxBlob
		FileSHA256: m.SHA256, FileEncSHA256: m.EncSHA256,
	})
}

// tell notifies the companions of a number, except one, of the version of a collection. A companion
// before its first login needs no notice. The caller holds v.mu.
func (v states) tell(n number, c *collection, except *companion) {
	for _, cp := range v.devices.companionsOf(n) {
		if cp != except && cp.saved.Welcomed {
			v.queues.deliverNotice(cp, kindStateSync, types.ServerJID, c.node())
		}
	}
}
