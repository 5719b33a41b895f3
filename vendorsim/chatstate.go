package vendorsim

import (
	"context"
	"strings"
	"time"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/proto/waSyncAction"
	"go.mau.fi/whatsmeow/types"
)

// ChatSettings is what an account has set for a chat. It is part of the account's app state.
type ChatSettings struct {
	Archived   bool      `json:"archived"`
	Muted      bool      `json:"muted"`
	MutedUntil time.Time `json:"mutedUntil"` // zero: for ever, if it is muted
	ReadUntil  time.Time `json:"readUntil"`  // when the last message was sent that the chat was marked as read with
}

// chatAddress is the address of a chat: with a number, or of the group with an id.
func chatAddress(chat string) (types.JID, error) {
	if id, group := strings.CutPrefix(chat, "group:"); group {
		return types.NewJID(id, types.GroupServer), nil
	}
	n, err := parseNumber(chat)
	if err != nil {
		return types.EmptyJID, err
	}
	return n.lid(), nil
}

// PhoneChats are the chats of accounts on their phones.
type PhoneChats struct{ v *Vendor }

// PhoneChats returns the chats of accounts on their phones.
func (v *Vendor) PhoneChats() PhoneChats { return PhoneChats{v} }

// Archive archives a chat on the phone of an account, or brings it back. The chat is a number, or "group:" and the
// id of a group.
func (p PhoneChats) Archive(ctx context.Context, account, chat string, archived bool) error {
	return p.set(ctx, account, chat, func(to types.JID) appstate.PatchInfo {
		return appstate.BuildArchive(to, archived, time.Time{}, nil)
	})
}

// Mute mutes a chat on the phone of an account for a time, or for ever if that is 0; or it ends that.
func (p PhoneChats) Mute(ctx context.Context, account, chat string, muted bool, d time.Duration) error {
	return p.set(ctx, account, chat, func(to types.JID) appstate.PatchInfo {
		return appstate.BuildMute(to, muted, d)
	})
}

// MarkRead marks a chat as read on the phone of an account, which sends no receipts. at is when its last message
// was sent.
func (p PhoneChats) MarkRead(ctx context.Context, account, chat string, at time.Time) error {
	return p.set(ctx, account, chat, func(to types.JID) appstate.PatchInfo {
		return appstate.BuildMarkChatAsRead(to, true, at, nil)
	})
}

func (p PhoneChats) set(
	ctx context.Context, account, chat string, build func(types.JID) appstate.PatchInfo,
) error {
	n, err := p.v.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	to, err := chatAddress(chat)
	if err != nil {
		return err
	}
	if err := p.v.states.change(ctx, n, build(to)); err != nil {
		return err
	}
	return p.v.flush()
}

// Settings returns what the phone of an account shows of a chat.
func (p PhoneChats) Settings(account, chat string) (ChatSettings, error) {
	n, err := p.v.devices.linkedNumber(account)
	if err != nil {
		return ChatSettings{}, err
	}
	to, err := chatAddress(chat)
	if err != nil {
		return ChatSettings{}, err
	}
	s := p.v.stateOf(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chats[to.String()], nil
}

// setChats keeps what a patch sets for chats. The caller holds s.mu.
func (s *appState) setChats(mutations []appstate.Mutation) {
	for _, m := range mutations {
		if len(m.Index) != 2 {
			continue
		}
		set := s.chats[m.Index[1]]
		switch m.Index[0] {
		case appstate.IndexArchive:
			set.Archived = m.Action.GetArchiveChatAction().GetArchived()
		case appstate.IndexMute:
			set.Muted, set.MutedUntil = m.Action.GetMuteAction().GetMuted(), time.Time{}
			if end := m.Action.GetMuteAction().GetMuteEndTimestamp(); set.Muted && end > 0 {
				set.MutedUntil = time.UnixMilli(end).UTC()
			}
		case appstate.IndexMarkChatAsRead:
			read := m.Action.GetMarkChatAsReadAction()
			set.ReadUntil = time.Unix(read.GetMessageRange().GetLastMessageTimestamp(), 0).UTC()
		default:
			continue
		}
		s.chats[m.Index[1]] = set
	}
}

// otherSetting is a change of a collection that concerns no chat.
func otherSetting(name appstate.WAPatchName) appstate.PatchInfo {
	switch name {
	case appstate.WAPatchRegular:
		return appstate.BuildLabelEdit("interfering", "Interfering", 1, true)
	case appstate.WAPatchRegularLow:
	default:
		return firstSetting()
	}
	return appstate.PatchInfo{Type: name, Mutations: []appstate.MutationInfo{{
		Index: []string{appstate.IndexSettingUnarchiveChats}, Version: 4,
		Value: &waSyncAction.SyncActionValue{
			UnarchiveChatsSetting: &waSyncAction.UnarchiveChatsSetting{UnarchiveChats: new(false)},
		},
	}}}
}
