package vendorsim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/proto/waServerSync"
	"go.mau.fi/whatsmeow/proto/waSyncAction"
	"go.mau.fi/whatsmeow/store"
	waLog "go.mau.fi/whatsmeow/util/log"
	"google.golang.org/protobuf/proto"
)

// The app state of an account is what its phone and its companions share: settings and stars, in
// collections. Each change is a patch, encrypted and authenticated with a key that the phone shares
// with the companions. The vendor numbers the patches of a collection and hands them out.

// errBadPatch is returned for a patch with a wrong MAC, or one that cannot be decrypted.
var errBadPatch = errors.New("malformed patch")

// macBytes is how many bytes at the end of a value are its MAC.
const macBytes = 32

// appState is the app state of one account, as the vendor stores it and as its phone reads it.
type appState struct {
	mu          sync.Mutex // guards the fields below; taken before core.mu
	proc        *appstate.Processor
	collections map[appstate.WAPatchName]*collection
	chats       map[string]ChatSettings // by their addresses
	labels      map[string]PhoneLabel   // by id, without their chats
	labeled     map[labelOn]bool
}

// collection is a part of the app state that has its own versions.
type collection struct {
	name     appstate.WAPatchName
	state    appstate.HashState
	patches  []*waServerSync.SyncdPatch           // the patch of version v is at v-1
	records  map[string]*waServerSync.SyncdRecord // what the patches have set, by index
	snapshot *snapshot
}

// stateOf returns the app state of a number.
func (v *core) stateOf(n number) *appState {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.shared[n]; s != nil {
		return s
	}
	s := &appState{
		collections: make(map[appstate.WAPatchName]*collection), chats: make(map[string]ChatSettings),
		labels: make(map[string]PhoneLabel), labeled: make(map[labelOn]bool),
	}
	for _, name := range appstate.AllPatchNames {
		s.collections[name] = &collection{name: name, records: make(map[string]*waServerSync.SyncdRecord)}
	}
	shelf := stateStore{NoopStore: new(store.NoopStore), v: v, n: n, of: s}
	s.proc = appstate.NewProcessor(&store.Device{AppStateKeys: shelf, AppState: shelf}, waLog.Noop)
	v.shared[n] = s
	return s
}

// stateStore is the part of whatsmeow's store that patches need. It is called with the lock of the
// app state held.
type stateStore struct {
	*store.NoopStore
	v  *core
	n  number
	of *appState
}

// GetAppStateSyncKey implements whatsmeow's AppStateSyncKeyStore.
func (s stateStore) GetAppStateSyncKey(_ context.Context, id []byte) (*store.AppStateSyncKey, error) {
	if string(id) != stateKeyID {
		return nil, nil //nolint:nilnil // the interface requires nil for a missing key
	}
	data, err := s.v.stateKey(s.n)
	return &store.AppStateSyncKey{Data: data, Timestamp: stateKeyTime}, err
}

// GetAppStateMutationMAC implements whatsmeow's AppStateStore.
func (s stateStore) GetAppStateMutationMAC(_ context.Context, name string, index []byte) ([]byte, error) {
	record := s.of.collections[appstate.WAPatchName(name)].records[string(index)]
	if record == nil {
		return nil, nil
	}
	return macOf(record), nil
}

func macOf(r *waServerSync.SyncdRecord) []byte {
	value := r.GetValue().GetBlob()
	return value[len(value)-macBytes:]
}

// apply checks a patch and makes it the next version of a collection. It returns what the patch
// changes. The caller holds s.mu.
func (s *appState) apply(ctx context.Context, c *collection, patch *waServerSync.SyncdPatch) (
	mutations []appstate.Mutation, err error,
) {
	defer func() {
		if r := recover(); r != nil { // whatsmeow trusts the lengths of what it decrypts
			mutations, err = nil, fmt.Errorf("%w: %v", errBadPatch, r)
		}
	}()
	if len(patch.GetMutations()) == 0 {
		return nil, fmt.Errorf("%w: it changes nothing", errBadPatch)
	}
	patch.Version = &waServerSync.SyncdVersion{Version: new(c.state.Version + 1)}
	list := &appstate.PatchList{Name: c.name, Patches: []*waServerSync.SyncdPatch{patch}}
	mutations, next, err := s.proc.DecodePatches(ctx, list, c.state, true)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadPatch, err)
	}
	for _, m := range patch.GetMutations() {
		index := string(m.GetRecord().GetIndex().GetBlob())
		if m.GetOperation() == waServerSync.SyncdMutation_REMOVE {
			delete(c.records, index)
		} else {
			c.records[index] = m.GetRecord()
		}
	}
	c.state, c.patches = next, append(c.patches, patch)
	s.setChats(mutations)
	s.setLabels(mutations)
	return mutations, nil
}

// change lets the phone of a number change the app state.
func (v states) change(ctx context.Context, n number, info appstate.PatchInfo) error {
	s := v.stateOf(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collections[info.Type]
	raw, err := s.proc.EncodePatch(ctx, []byte(stateKeyID), c.state, info)
	if err != nil {
		return fmt.Errorf("change the app state: %w", err)
	}
	if err := v.take(ctx, n, s, c, raw, nil); err != nil {
		return fmt.Errorf("change the app state: %w", err)
	}
	return nil
}

// take applies an encoded patch, shows on the phone what it changes, and tells the companions, except
// the one that made it. The caller holds s.mu.
func (v states) take(ctx context.Context, n number, s *appState, c *collection, raw []byte, by *companion) error {
	patch := new(waServerSync.SyncdPatch)
	if err := proto.Unmarshal(raw, patch); err != nil {
		return fmt.Errorf("%w: %w", errBadPatch, err)
	}
	mutations, err := s.apply(ctx, c, patch)
	if err != nil {
		return err
	}
	numbered, err := proto.Marshal(patch)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.putRaw(patchKey(n, c), numbered)
	v.show(n, mutations)
	if by != nil {
		v.book(n, mutations)
	}
	v.tell(n, c, by)
	v.notify()
	return nil
}

// patchKey names the newest patch of a collection in the journal.
func patchKey(n number, c *collection) string {
	return fmt.Sprintf("state/%s/%s/%016d", string(n), c.name, c.state.Version)
}

func (v restorer) restorePatch(name []string, raw []byte) error {
	if len(name) < 3 {
		return fmt.Errorf("name of %d parts", len(name))
	}
	patch := new(waServerSync.SyncdPatch)
	if err := proto.Unmarshal(raw, patch); err != nil {
		return err
	}
	s := v.stateOf(number(name[0]))
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collections[appstate.WAPatchName(name[1])]
	if version, err := strconv.ParseUint(name[2], 10, 64); err != nil || c == nil || version != c.state.Version+1 {
		return fmt.Errorf("version %q: %w", name[2], cmp.Or(err, errBadPatch))
	}
	_, err := s.apply(context.Background(), c, patch)
	return err
}

// after returns at most maxPatches patches of later versions, and whether there are more.
func (c *collection) after(version uint64) (patches []*waServerSync.SyncdPatch, more bool) {
	rest := c.patches[min(version, uint64(len(c.patches))):]
	return rest[:min(len(rest), maxPatches)], len(rest) > maxPatches
}

// sorted returns the records of a snapshot, in the order of their indexes.
func (c *collection) sorted() []*waServerSync.SyncdRecord {
	list := make([]*waServerSync.SyncdRecord, 0, len(c.records))
	for _, r := range c.records {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *waServerSync.SyncdRecord) int {
		return slices.Compare(a.GetIndex().GetBlob(), b.GetIndex().GetBlob())
	})
	return list
}

// firstSetting is what a phone has in its app state before a companion is linked.
func firstSetting() appstate.PatchInfo {
	return appstate.PatchInfo{Type: appstate.WAPatchRegularHigh, Mutations: []appstate.MutationInfo{{
		Index: []string{appstate.IndexStatusPrivacy}, Version: 7,
		Value: &waSyncAction.SyncActionValue{StatusPrivacy: &waSyncAction.StatusPrivacyAction{
			Mode: waSyncAction.StatusPrivacyAction_CONTACTS.Enum(),
		}},
	}}}
}
