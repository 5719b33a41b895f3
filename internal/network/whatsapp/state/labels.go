package state

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"

	"postern/internal/network/whatsapp/content"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/proto/waServerSync"
	"go.mau.fi/whatsmeow/proto/waSyncAction"
	"google.golang.org/protobuf/proto"
)

// Labels has the labels of the account, and the chats that have them. Like the address book, it is not read by whatsmeow.
const Labels = appstate.WAPatchRegular

// LabelPatch returns the network's form of a label.
func LabelPatch(l postern.LabelEdit) appstate.PatchInfo {
	//nolint:gosec // a color is below [postern.LabelColors]
	info := appstate.BuildLabelEdit(l.ID, l.Name, int32(l.Color), l.Deleted)
	raw, err := base64.StdEncoding.DecodeString(l.Rest)
	if rest := new(waSyncAction.LabelEditAction); err == nil && proto.Unmarshal(raw, rest) == nil {
		proto.Merge(info.Mutations[0].Value.LabelEditAction, rest)
	}
	return info
}

// maxRest is how many bytes are kept of what the network says of a label besides its name and color.
const maxRest = 100

// labels reads the labels: what is new, or all of them. The chats are the network's addresses.
func (s *State) labels(
	ctx context.Context, version uint64, hash [128]byte, whole bool,
) (changes postern.LabelChanges, err error) {
	r := labelReader{edits: map[string]change[postern.LabelEdit]{}, chats: map[postern.ChatLabel]change[bool]{}}
	changes.Whole = whole || version == 0
	err = s.each(ctx, Labels, appstate.HashState{Version: version, Hash: hash}, changes.Whole, r.add)
	for _, c := range inOrder(r.edits) {
		changes.Labels = append(changes.Labels, c.to)
	}
	for _, c := range inOrder(r.chats) {
		changes.Chats = append(changes.Chats, postern.ChatLabel{ChatID: c.chat, LabelID: c.label, On: c.to})
	}
	return changes, err
}

// change is the last change of something.
type change[T any] struct {
	at          int64 // when it was made, by the clock of who has made it
	n           int   // its place among those that were read
	label, chat string
	to          T
}

// inOrder returns changes in the order in which they were made: a snapshot has no order, and two addresses can be those of
// one chat.
func inOrder[K comparable, T any](all map[K]change[T]) []change[T] {
	list := make([]change[T], 0, len(all))
	for _, c := range all {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b change[T]) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n)) })
	return list
}

// labelReader collects what changes say of labels.
type labelReader struct {
	edits map[string]change[postern.LabelEdit]
	chats map[postern.ChatLabel]change[bool] // by an address and a label
	n     int
}

// maxSeenLabels is how many labels one reading may name, those that were deleted included.
const maxSeenLabels = 10_000

// add notes a change. What is not about a label is ignored.
func (r *labelReader) add(m appstate.Mutation) {
	if len(m.Index) < 2 || !postern.IsLabelID(m.Index[1]) {
		return
	}
	r.n++
	id, at, set := m.Index[1], m.Action.GetTimestamp(), m.Operation == waServerSync.SyncdMutation_SET
	switch {
	case m.Index[0] == appstate.IndexLabelEdit:
		if _, known := r.edits[id]; known || len(r.edits) < maxSeenLabels {
			r.edits[id] = change[postern.LabelEdit]{at: at, n: r.n, label: id, to: labelOf(id, m.Action.GetLabelEditAction(), set)}
		}
	case m.Index[0] == appstate.IndexLabelAssociationChat && len(m.Index) == 3 && len(m.Index[2]) <= maxAddress:
		key := postern.ChatLabel{ChatID: m.Index[2], LabelID: id}
		if _, known := r.chats[key]; known || len(r.chats) < postern.MaxChatLabels {
			on := set && m.Action.GetLabelAssociationAction().GetLabeled()
			r.chats[key] = change[bool]{at: at, n: r.n, label: id, chat: m.Index[2], to: on}
		}
	}
}

// maxAddress is how long the address of a chat can be.
const maxAddress = 100

// labelOf returns what a change says of a label. Lists that apps make, such as that of unread chats, are not labels.
func labelOf(id string, a *waSyncAction.LabelEditAction, set bool) postern.LabelEdit {
	l := postern.LabelEdit{Label: postern.Label{ID: id}, Deleted: true}
	name, _ := content.Cut(content.Name(" "+a.GetName()), postern.MaxLabelName) // "-" is a name here
	switch a.GetType() {
	case waSyncAction.LabelEditAction_NONE, waSyncAction.LabelEditAction_PREDEFINED, waSyncAction.LabelEditAction_CUSTOM:
	default:
		return l
	}
	if !set || a.GetDeleted() || name == "" {
		return l
	}
	l.Name, l.Deleted, l.Rest = name, false, restOf(a)
	if c := a.GetColor(); c >= 0 && c < postern.LabelColors {
		l.Color = int(c)
	}
	return l
}

// restOf returns what is neither the name nor the color of a label, and has to stay when these change.
func restOf(a *waSyncAction.LabelEditAction) string {
	rest := &waSyncAction.LabelEditAction{
		PredefinedID: a.PredefinedID, OrderIndex: a.OrderIndex, IsActive: a.IsActive, Type: a.Type,
		IsImmutable: a.IsImmutable, MuteEndTimeMS: a.MuteEndTimeMS,
	}
	raw, err := proto.Marshal(rest)
	if err != nil || len(raw) > maxRest {
		return ""
	}
	return base64.StdEncoding.EncodeToString(raw)
}
