package gateway

import (
	"context"
	"strconv"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store/contacts"
)

// The requests about people that the live session of a device carries out.
const (
	CheckNumbers = "contact.check"
	ShowTyping   = "chat.typing"
	RejectCall   = "call.reject"
)

// ContactInput is what these requests need.
type ContactInput struct {
	Numbers []string       `json:"numbers,omitempty"`
	ChatID  string         `json:"chatId,omitempty"`
	Typing  postern.Typing `json:"typing,omitempty"`
	CallID  string         `json:"callId,omitempty"`
}

// Check tells which numbers are on the network, in their order. What was asked within a day is not asked again. The
// others count towards the device's pace for new chats.
func (g Contacts) Check(
	ctx context.Context, c access.Caller, id postern.DeviceID, numbers []string,
) ([]postern.CheckedNumber, error) {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return nil, err
	}
	if _, err := g.devices().get(ctx, c, id); err != nil {
		return nil, err
	}
	asked := make([]string, len(numbers))
	for i, text := range numbers {
		n, err := postern.ParsePhone(text)
		if err != nil {
			return nil, postern.Invalid("/phoneNumbers/"+strconv.Itoa(i), "%v", err)
		}
		asked[i] = n
	}
	known, err := g.contacts().Checked(ctx, c.Workspace(), asked, g.time().Add(-checksKept))
	if err != nil {
		return nil, err
	}
	if err := g.checkUnknown(ctx, c, id, asked, known); err != nil {
		return nil, err
	}
	list := make([]postern.CheckedNumber, len(asked))
	for i, n := range asked {
		list[i] = known[n]
	}
	return list, nil
}

// checkUnknown asks about the numbers that are not known, and adds the answers.
func (g Contacts) checkUnknown(
	ctx context.Context, c access.Caller, id postern.DeviceID, asked []string, known map[string]postern.CheckedNumber,
) error {
	var in ContactInput
	for _, n := range asked {
		if _, ok := known[n]; !ok {
			in.Numbers = append(in.Numbers, n)
			known[n] = postern.CheckedNumber{PhoneNumber: n} // one may be named twice
		}
	}
	if len(in.Numbers) == 0 {
		return nil
	}
	answer, err := askOnce[[]postern.CheckedNumber](ctx, g.core, c, id, nil, CheckNumbers,
		func() (ContactInput, error) { return in, nil })
	if err != nil {
		return err
	}
	for _, n := range answer.Value {
		known[n.PhoneNumber] = n
	}
	g.contacts().Remember(c.Workspace(), answer.Value, g.time())
	return nil
}

func (g *core) contacts() contacts.Table { return contacts.Of(g.db) }

// Type shows in a chat that the account types or records, or no longer does.
func (g Contacts) Type(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string, t postern.Typing,
) error {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return err
	}
	_, err := askOnce[struct{}](ctx, g.core, c, id, nil, ShowTyping, func() (ContactInput, error) {
		to, err := postern.ParseChat(chat)
		if err != nil || !postern.IsDirect(to) && !postern.IsGroup(to) {
			return ContactInput{}, postern.Errorf(postern.NotFound, "there is no such chat")
		}
		return ContactInput{ChatID: to, Typing: t}, nil
	})
	return err
}

// Reject rejects a call that rings.
func (g Contacts) Reject(ctx context.Context, c access.Caller, id postern.DeviceID, callID string) error {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return err
	}
	_, err := askOnce[struct{}](ctx, g.core, c, id, nil, RejectCall, func() (ContactInput, error) {
		return ContactInput{CallID: callID}, nil
	})
	return err
}

// ForgetChecks removes what was found out about numbers too long ago.
func (g Sessions) ForgetChecks(ctx context.Context) error {
	_, err := g.contacts().Remove(ctx, g.time().Add(-checksKept))
	return err
}
