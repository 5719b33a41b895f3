package history

import (
	"context"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// tokenChunk is how many tokens are stored at a time.
const tokenChunk = 500

// Keep stores what the account needs to write to people: which numbers and hidden addresses are one person, the tokens
// that people have granted to it, the salt of its own tokens, and the names of people.
func (p *Part) Keep(ctx context.Context, d *store.Device) error {
	if err := d.LIDs.PutManyLIDMappings(ctx, p.People); err != nil {
		return err
	}
	if err := p.keepTokens(ctx, d); err != nil {
		return err
	}
	if p.Salt != nil {
		if err := d.NCTSalt.PutNCTSalt(ctx, p.Salt); err != nil {
			return err
		}
	}
	for jid, name := range p.Names {
		if _, _, err := d.Contacts.PutPushName(ctx, jid, name); err != nil {
			return err
		}
	}
	return nil
}

func (p *Part) keepTokens(ctx context.Context, d *store.Device) error {
	now := time.Now()
	var tokens []store.PrivacyToken
	for i, c := range p.Chats {
		if token, ok := c.token(now); ok {
			lid, err := d.LIDs.GetLIDForPN(ctx, token.User)
			if err != nil {
				return err
			}
			if !lid.IsEmpty() {
				token.User = lid
			}
			tokens = append(tokens, token)
		}
		if len(tokens) == tokenChunk || i == len(p.Chats)-1 && len(tokens) > 0 {
			if err := d.PrivacyTokens.PutPrivacyTokens(ctx, tokens...); err != nil {
				return err
			}
			tokens = nil
		}
	}
	return nil
}

// token returns the token of a chat with a person. One from the future would never be replaced.
func (c Chat) token(now time.Time) (t store.PrivacyToken, ok bool) {
	if len(c.Token) == 0 || c.JID.Server != types.DefaultUserServer && c.JID.Server != types.HiddenUserServer {
		return t, false
	}
	t = store.PrivacyToken{User: c.JID.ToNonAD(), Token: c.Token, Timestamp: unixTime(c.At, now)}
	if c.SentAt > 0 {
		t.SenderTimestamp = unixTime(c.SentAt, now)
	}
	return t, true
}

// TimerSet returns when the timer of the chat was set; the zero time if that is not known.
func (c Chat) TimerSet(now time.Time) time.Time {
	if c.SetAt == 0 {
		return time.Time{}
	}
	return unixTime(c.SetAt, now)
}

func unixTime(seconds uint64, now time.Time) time.Time {
	return Sane(time.Unix(int64(min(seconds, 1<<40)), 0), now) //nolint:gosec // compared
}
