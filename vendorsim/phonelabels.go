package vendorsim

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/proto/waServerSync"
	"go.mau.fi/whatsmeow/types"
)

// PhoneLabel is a label on the phone of an account.
type PhoneLabel struct {
	ID    string   `json:"id"`
	Name  string   `json:"name"`
	Color int32    `json:"color"`
	Chats []string `json:"chats"` // that have it: numbers, or "group:" and the id of a group

	Predefined int32 `json:"predefined,omitempty"` // which of the apps' own labels it is; 0 for none
}

// PhoneLabels are the labels of each account on its phone. They are part of the account's app state. A phone keeps them
// and changes them whether or not a companion is linked.
type PhoneLabels struct{ v *core }

// PhoneLabels returns the labels of the accounts on their phones.
func (v *core) PhoneLabels() PhoneLabels { return PhoneLabels{v} }

// List returns the labels on the phone of an account, by id.
func (p PhoneLabels) List(account string) ([]PhoneLabel, error) {
	n, err := p.v.devices.phoneNumber(account)
	if err != nil {
		return nil, err
	}
	s := p.v.stateOf(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]PhoneLabel, 0, len(s.labels))
	for _, id := range slices.Sorted(maps.Keys(s.labels)) {
		l := s.labels[id]
		for on := range s.labeled {
			if on.label == id {
				l.Chats = append(l.Chats, chatAt(on.address))
			}
		}
		slices.Sort(l.Chats)
		list = append(list, l)
	}
	return list, nil
}

// Save makes a label on the phone of an account, or changes it.
func (p PhoneLabels) Save(ctx context.Context, account, id, name string, color int32) error {
	return p.Write(ctx, account, appstate.BuildLabelEdit(id, name, color, false).Mutations...)
}

// Delete deletes a label on the phone of an account. What the label was on stays in the app state.
func (p PhoneLabels) Delete(ctx context.Context, account, id string) error {
	return p.Write(ctx, account, appstate.BuildLabelEdit(id, "", 0, true).Mutations...)
}

// Put puts a label on a chat on the phone of an account, or takes it off.
func (p PhoneLabels) Put(ctx context.Context, account, chat, id string, on bool) error {
	to, err := chatAddress(chat)
	if err != nil {
		return err
	}
	return p.Write(ctx, account, appstate.BuildLabelChat(to, id, on).Mutations...)
}

// PutNamed is Put for the label with a name. If there is none, the phone makes it.
func (p PhoneLabels) PutNamed(ctx context.Context, account, chat, name string, on bool) error {
	list, err := p.List(account)
	if err != nil {
		return err
	}
	next := 1
	for _, l := range list {
		if l.Name == name {
			return p.Put(ctx, account, chat, l.ID, on)
		}
		if n, err := strconv.Atoi(l.ID); err == nil {
			next = max(next, n+1)
		}
	}
	id := strconv.Itoa(next)
	if err := p.Save(ctx, account, id, name, 0); err != nil {
		return err
	}
	return p.Put(ctx, account, chat, id, on)
}

// Remove removes a label of an account, as if nobody had ever made it, or takes it off a chat in this way.
func (p PhoneLabels) Remove(ctx context.Context, account, id, chat string) error {
	n, err := p.v.devices.phoneNumber(account)
	if err != nil {
		return err
	}
	info := appstate.BuildLabelEdit(id, "", 0, true)
	if chat != "" {
		to, err := chatAddress(chat)
		if err != nil {
			return err
		}
		info = appstate.BuildLabelChat(to, id, false)
	}
	if err := p.v.states.remove(ctx, n, info.Type, info.Mutations[0]); err != nil {
		return err
	}
	return p.v.flush()
}

// Write writes anything in the collection of the labels of an account, as one patch. A client must bear it.
func (p PhoneLabels) Write(ctx context.Context, account string, list ...appstate.MutationInfo) error {
	n, err := p.v.devices.phoneNumber(account)
	if err != nil {
		return err
	}
	info := appstate.PatchInfo{Type: appstate.WAPatchRegular, Mutations: list}
	if err := p.v.states.change(ctx, n, info); err != nil {
		return err
	}
	return p.v.flush()
}

// labelOn is a label on the chat with an address.
type labelOn struct{ label, address string }

// setLabels keeps what a patch says of labels. The caller holds s.mu.
func (s *appState) setLabels(mutations []appstate.Mutation) {
	for _, m := range mutations {
		set := m.Operation == waServerSync.SyncdMutation_SET
		switch {
		case len(m.Index) == 2 && m.Index[0] == appstate.IndexLabelEdit:
			a := m.Action.GetLabelEditAction()
			if !set || a.GetDeleted() {
				s.forgetLabel(m.Index[1])
			} else {
				s.labels[m.Index[1]] = PhoneLabel{
					ID: m.Index[1], Name: a.GetName(), Color: a.GetColor(), Predefined: a.GetPredefinedID(),
				}
			}
		case len(m.Index) == 3 && m.Index[0] == appstate.IndexLabelAssociationChat:
			on := labelOn{m.Index[1], m.Index[2]}
			if _, err := types.ParseJID(on.address); err != nil {
				continue
			}
			if delete(s.labeled, on); set && m.Action.GetLabelAssociationAction().GetLabeled() {
				s.labeled[on] = true
			}
		}
	}
}

// forgetLabel takes a label off all chats. The caller holds s.mu.
func (s *appState) forgetLabel(id string) {
	delete(s.labels, id)
	maps.DeleteFunc(s.labeled, func(on labelOn, _ bool) bool { return on.label == id })
}
