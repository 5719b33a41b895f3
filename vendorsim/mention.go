package vendorsim

import (
	"strings"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// MentionAll stands for all members of a group in [Content].Mentions.
const MentionAll = "all"

// mention adds the people whom a message mentions. Phones know the people of a chat by one kind of address only, and
// show no mention of another.
func (c *Content) mention(info *waE2E.ContextInfo, server string) {
	c.Mentions = nil
	for _, text := range info.GetMentionedJID() {
		jid, err := types.ParseJID(text)
		n, ok := numberOf(jid)
		if err != nil || !ok || jid.Server != server {
			continue
		}
		c.Mentions = append(c.Mentions, n.String())
		c.Body = strings.ReplaceAll(c.Body, "@"+jid.User, "@"+string(n))
	}
	if info.GetNonJIDMentions() > 0 {
		c.Mentions = append(c.Mentions, MentionAll)
	}
}

// forGroup returns the network's form of content that a phone writes to a group, whose members have hidden addresses.
func (c Content) forGroup(author string) *waE2E.Message {
	info := c.context(author)
	for i, who := range info.GetMentionedJID() {
		jid, _ := types.ParseJID(who) // it was just written
		n, _ := numberOf(jid)
		info.MentionedJID[i] = n.lid().String()
		c.Body = strings.ReplaceAll(c.Body, "@"+jid.User, "@"+n.lid().User)
	}
	return c.wire(info)
}

// inGroup returns content that phones read in a group.
func (c Content) inGroup(msg *waE2E.Message) Content {
	inner, _ := unwrapped(msg)
	c.mention(contextOf(inner), types.HiddenUserServer)
	return c
}

// contextOf returns what a message says beside its content, or nil.
func contextOf(msg *waE2E.Message) (info *waE2E.ContextInfo) {
	msg.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, part protoreflect.Value) bool {
		if f.Kind() != protoreflect.MessageKind || f.IsList() {
			return true
		}
		with, ok := part.Message().Interface().(interface{ GetContextInfo() *waE2E.ContextInfo })
		if ok {
			info = with.GetContextInfo()
		}
		return !ok
	})
	return info
}
