package live

import (
	"context"
	"strings"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// People implements [network.People].
type People struct{ Enter }

var _ network.People = People{}

// Blocked returns whom the account has blocked.
func (p People) Blocked(ctx context.Context) ([]postern.BlockedContact, error) {
	list, err := ask(ctx, p.Enter, func(ctx context.Context, cli *whatsmeow.Client) ([]postern.BlockedContact, error) {
		found, err := cli.GetBlocklist(ctx)
		if err != nil {
			return nil, err
		}
		list := make([]postern.BlockedContact, 0, len(found.JIDs))
		for _, jid := range found.JIDs {
			who, err := known(ctx, cli, jid)
			if err != nil {
				return nil, err
			}
			if one := blocked(who); one.ChatID != "" { // what is neither a number nor a LID is nobody
				list = append(list, one)
			}
		}
		return list, nil
	})
	return list, ofProfile(err)
}

func blocked(p postern.Participant) postern.BlockedContact {
	b := postern.BlockedContact{PhoneNumber: p.PhoneNumber, LID: p.LID}
	if b.ChatID = string(p.PhoneNumber); b.ChatID == "" {
		b.ChatID = string(p.LID)
	}
	return b
}

// SetBlocked blocks the person of a chat, or ends that.
func (p People) SetBlocked(ctx context.Context, chat string, blocked bool) error {
	_, err := ask(ctx, p.Enter, func(ctx context.Context, cli *whatsmeow.Client) (struct{}, error) {
		who, err := personOf(ctx, cli, chat)
		if err != nil {
			return struct{}{}, err
		}
		action := events.BlocklistChangeActionUnblock
		if blocked {
			action = events.BlocklistChangeActionBlock
		}
		_, err = cli.UpdateBlocklist(ctx, who, action)
		return struct{}{}, err
	})
	return ofProfile(err)
}

// personOf returns the person of a direct chat, by the LID if the key store has it. Otherwise it asks the network.
func personOf(ctx context.Context, cli *whatsmeow.Client, chat string) (types.JID, error) {
	who, err := chatAddress(ctx, cli, chat)
	if err != nil || who.Server == types.HiddenUserServer {
		return who, err
	}
	found, err := cli.IsOnWhatsApp(ctx, []string{strings.TrimPrefix(chat, "+")})
	if err != nil {
		return who, err
	}
	if len(found) == 0 || !found[0].IsIn {
		return who, &network.GroupRefused{Why: network.ErrNotOnNetwork}
	}
	return found[0].JID, nil
}

// Picture returns the picture of the person of a chat, unless it is the one that is known.
func (p People) Picture(ctx context.Context, chat, known string) (id string, jpeg []byte, err error) {
	of, err := ask(ctx, p.Enter, func(ctx context.Context, cli *whatsmeow.Client) (types.JID, error) {
		return chatAddress(ctx, cli, chat)
	})
	if err != nil {
		return "", nil, err
	}
	id, jpeg, err = readPicture(ctx, p.Enter, known, func(*whatsmeow.Client) types.JID { return of })
	return id, jpeg, ofProfile(err)
}
