package vendorsim

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// statusInvalid is the vendor's refusal of a post whose node does not fit its content.
const statusInvalid = 479

// post is a message of a channel on its way to those who follow it.
type post struct {
	id      string
	by      number // who wrote it, which nobody is told
	content Content
	plain   []byte // the network's form
	stanza  stanza
	at      time.Time
	edited  time.Time // zero for a new post
}

// ofChannel completes a message to a channel, whose content is not encrypted.
func (m outbound) ofChannel(n *waBinary.Node) (outbound, error) {
	plain, ok := n.GetOptionalChildByTag("plaintext")
	if _, sealed := n.GetOptionalChildByTag("enc"); !ok || sealed {
		return m, fmt.Errorf("%w: a post without plaintext", errBadMessage)
	}
	m.channel, m.plain, m.edit = m.chat.User, plain, attr(n, "edit")
	m.handle = attr(n, "media_id")
	return m, nil
}

// take handles a post of a companion.
func (v channels) take(ctx context.Context, c *conn, n *waBinary.Node, m outbound) {
	account := c.companion.account.number
	msg, status := v.checked(account, m)
	if status != 0 {
		v.log.InfoContext(ctx, "post refused", "account", account, "network_id", m.id, "status", status)
		c.ack(n, waBinary.Attrs{"error": status})
		return
	}
	v.mu.Lock()
	ch := v.channelsByID[m.channel]
	p := post{
		id: m.id, by: account, content: contentOf(msg, m.kind), plain: content(m.plain), stanza: stanzaOf(msg), at: now(),
	}
	if v.records.entry(account, Outbound, m.id) != nil {
		v.mu.Unlock()
		v.records.countCopy(account, m.id)
	} else {
		v.records.enter(Entry{
			Account: account.String(), Channel: ch.ID, Direction: Outbound, NetworkID: m.id, Content: p.content,
		})
		v.distribute(ch, p)
		v.mu.Unlock()
	}
	m.answer = waBinary.Attrs{"server_id": ch.Last}
	v.messages.ackMessage(c, n, m)
}

// checked returns the content of a post, or the status with which the vendor refuses it.
func (v channels) checked(account number, m outbound) (*waE2E.Message, int) {
	v.mu.Lock()
	ch := v.channelsByID[m.channel]
	admin := ch != nil && ch.isAdmin(account)
	v.mu.Unlock()
	msg := &waE2E.Message{}
	switch {
	case ch == nil:
		return nil, http.StatusNotFound
	case !admin:
		return nil, http.StatusForbidden
	case m.edit != "" || proto.Unmarshal(content(m.plain), msg) != nil:
		return nil, http.StatusBadRequest // edits by companions are not simulated
	case !m.fits(msg):
		return nil, statusInvalid
	}
	return msg, 0
}

// fits reports whether the node of a post says of its content what that is. A file is not encrypted, and named by the
// handle of its upload.
func (m outbound) fits(msg *waE2E.Message) bool {
	s := stanzaOf(msg)
	if m.kind != s.kind || attr(&m.plain, "mediatype") != s.mediaType || s.pollType != "" {
		return false
	}
	inner, _ := unwrapped(msg)
	c, isFile := mediaOf(inner)
	if !isFile {
		return m.handle == ""
	}
	return m.handle == handleOf(c.Media.Path) && len(c.Media.Key) == 0 && len(c.Media.EncSHA256) == 0
}

// write distributes what the phone of an administrator posts.
func (v channels) write(id string, from number, c Content) (string, error) {
	c, err := v.compose(from, c)
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	ch, err := v.administered(id, from)
	if err != nil {
		v.mu.Unlock()
		return "", err
	}
	p := post{id: newMessageID(), by: from, content: c, plain: c.Raw, stanza: stanzaOf(c.message()), at: now()}
	v.distribute(ch, p)
	v.mu.Unlock()
	return p.id, v.flush()
}

// compose returns content as a phone posts it, with its network form. Its file is stored for a number.
func (v channels) compose(n number, c Content) (Content, error) {
	if c.Raw != nil {
		return c, proto.Unmarshal(c.Raw, &waE2E.Message{})
	}
	if c.Type == "" {
		c.Type = TypeText
	}
	if err := c.check(); err != nil {
		return c, err
	}
	if isAction(c.Type) || c.Type == TypePoll {
		return c, fmt.Errorf("%w: %q in a channel", ErrUnknownType, c.Type)
	}
	if c.Media != nil {
		m := *c.Media
		if m.Path == "" {
			stored, err := v.mediaHost.putPlain(n, c.Type, bytes.NewReader(m.Data))
			if err != nil {
				return c, err
			}
			m.Path, m.Class, m.Size, m.SHA256, m.Data = stored.Path, stored.Class, stored.Size, stored.SHA256, nil
		}
		m.MimeType = cmp.Or(m.MimeType, mimeOf(c.Type))
		c.Media = &m
	}
	return c.written(c.wire(nil))
}

// Upload stores a file for posts of a phone, as [Vendor.Upload] does it for messages. Files of posts are not encrypted.
func (c Channels) Upload(from, contentType string, r io.Reader) (Media, error) {
	n, err := knownNumber(from)
	if err != nil {
		return Media{}, err
	}
	return c.v.mediaHost.putPlain(n, contentType, r)
}

// putPlain stores a file as it is.
func (v mediaHost) putPlain(n number, contentType string, r io.Reader) (Media, error) {
	m := Media{Class: classOf(contentType)}
	if m.Class == "" {
		return m, fmt.Errorf("%w: %q has no file", ErrUnknownType, contentType)
	}
	d, err := v.blobs.create()
	if err != nil {
		return m, fmt.Errorf("upload: %w", err)
	}
	if m.Size, err = io.Copy(d, r); err != nil {
		d.discard()
		return m, fmt.Errorf("upload: %w", err)
	}
	m.SHA256 = d.sum()
	one, err := d.keep(n)
	if err != nil {
		return m, fmt.Errorf("upload: %w", err)
	}
	m.Path = one.path()
	return m, nil
}

// handleOf returns the handle of the upload of a file, by which a post names it.
func handleOf(path string) string { return "handle-" + blobID(path) }

// edit distributes a new text of a post.
func (v channels) edit(id string, from number, networkID, body string) error {
	c, err := Content{Type: TypeText, Body: body}.written(&waE2E.Message{Conversation: &body})
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	ch, err := v.administered(id, from)
	if err != nil {
		return err
	}
	shown := v.records.shown(from, networkID)
	if shown == nil || shown.Channel != id {
		return fmt.Errorf("%w: %s in the channel %s", ErrUnknownMessage, networkID, id)
	}
	plain := c.Raw
	c.Type, c.Target = TypeEdit, networkID
	v.distribute(ch, post{
		id: networkID, by: from, content: c, plain: plain, stanza: stanza{kind: TypeText, edit: "3"}, at: shown.At,
		edited: now(),
	})
	return nil
}

// administered returns a channel in which a number may post. The caller holds v.mu.
func (v channels) administered(id string, n number) (*channel, error) {
	ch, err := v.find(id)
	if err == nil && !ch.isAdmin(n) {
		err = fmt.Errorf("%w: %s in the channel %s", ErrNotAllowed, n, id)
	}
	return ch, err
}

// distribute shows a post on the phones of all who follow the channel, and queues it for their companions, among them
// the one that wrote it. The caller holds v.mu.
func (v channels) distribute(ch *channel, p post) {
	if p.edited.IsZero() {
		ch.Last++
	}
	v.save(ch)
	raw := encodeNode(p.node(ch))
	for _, list := range [][]number{ch.Admins, ch.Followers} {
		for _, n := range list {
			v.reach(ch, n, p, raw)
		}
	}
}

// reach gives a post to the phone and the companions of a number. Only administrators see who wrote it. The caller
// holds v.mu.
func (v channels) reach(ch *channel, n number, p post, raw []byte) {
	shown := Shown{ID: p.id, Channel: ch.ID, Content: p.content, At: p.at}
	if ch.isAdmin(n) {
		shown.From = p.by.String()
	}
	v.records.show(n, shown)
	companions := v.devices.companionsOf(n)
	if len(companions) > 0 && n != p.by {
		v.records.record(Entry{
			Account: n.String(), Channel: ch.ID, Direction: Inbound, NetworkID: p.id, Content: p.content,
		})
	}
	for _, cp := range companions {
		v.queues.deliver(cp, &delivery{Class: classMessage, ID: p.id, Node: raw})
	}
}

// node returns a post as companions get it.
func (p post) node(ch *channel) waBinary.Node {
	attrs := waBinary.Attrs{"from": ch.jid(), "id": p.id, "t": p.at.Unix()}
	if p.edited.IsZero() {
		attrs["server_id"] = ch.Last
	}
	plain := waBinary.Node{Tag: "plaintext", Content: p.plain, Attrs: waBinary.Attrs{}}
	children := p.stanza.mark(attrs, plain)
	if !p.edited.IsZero() {
		children = append(children, waBinary.Node{Tag: "meta", Attrs: waBinary.Attrs{
			"msg_edit_t": p.edited.UnixMilli(), "original_msg_t": p.at.Unix(),
		}})
	}
	return waBinary.Node{Tag: "message", Attrs: attrs, Content: children}
}

// isChannel reports whether a node is for a channel.
func isChannel(n *waBinary.Node) bool {
	to, _ := attrJID(n, "to")
	return to.Server == types.NewsletterServer
}

// read records that an account has read posts. Nobody is told.
func (v channels) read(account number, ids []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range ids {
		if e := v.records.entry(account, Inbound, id); e != nil && e.Channel != "" {
			e.read(Read)
			v.records.saveEntry(e)
		}
	}
}
