package history

import (
	"bufio"
	"cmp"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"postern/internal/network"

	"go.mau.fi/whatsmeow/proto/waHistorySync"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// What a part of the history has at most. What is beyond these numbers is left out; a part with more bytes is refused.
const (
	maxRatio    = 50        // decompressed bytes for each compressed one, beside freeBytes
	freeBytes   = 64 << 20  // decompressed
	maxSpool    = 512 << 20 // bytes of all messages
	maxMessage  = 1 << 20   // bytes of a message
	maxSmall    = 4 << 10   // bytes of a name, an address or a token
	maxMessages = 250_000
	maxPeople   = 50_000
)

var errTooLarge = errors.New("it is too large when it is decompressed")

// Part is what a part of the history contains.
type Part struct {
	Salt   []byte // of the tokens that the account makes; nil for none
	People []store.LIDMapping
	Names  map[types.JID]string
	Chats  []Chat

	spool io.ReaderAt
	index []place
}

// Chat is a conversation of the history.
type Chat struct {
	JID    types.JID
	Token  []byte // with which the account may write to the person; nil for none
	At     uint64 // when it was granted, in Unix seconds
	SentAt uint64 // when the account has granted its own
	Timer  uint32 // seconds after which messages disappear; 0 means never
	SetAt  uint64 // when the timer was set, in Unix seconds
}

// place is where a message is.
type place struct {
	offset int64
	size   int32
	chat   int32
	at     uint64
}

// Scan reads a compressed part of size bytes. The messages are written to spool, unless it is nil. It uses memory for what
// is not a message only, and some bytes for each message. An error that is not of r or spool is
// [network.ErrMediaUseless].
func Scan(r io.Reader, size int64, spool *os.File) (*Part, error) {
	z, err := zlib.NewReader(r)
	if err != nil {
		return nil, useless(err)
	}
	d := &decoder{r: bufio.NewReaderSize(&limited{z, freeBytes + maxRatio*size}, 64<<10)}
	s := &scan{Part: Part{Names: map[types.JID]string{}}, d: d, spool: spool}
	if err := d.fields(-1, s.field); err != nil {
		return nil, useless(err)
	}
	if spool != nil {
		s.Part.spool = spool
	}
	return &s.Part, nil
}

// useless marks an error of what the phone has sent.
func useless(err error) error {
	if _, local := errors.AsType[*os.PathError](err); local {
		return err
	}
	return fmt.Errorf("%w: %w", network.ErrMediaUseless, err)
}

// limited ends with an error after a number of bytes.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// scan is the reading of a part.
type scan struct {
	Part

	d       *decoder
	spool   *os.File
	written int64
}

// The fields of the messages that are read, by their numbers.
const (
	syncChats  = 2
	syncNames  = 7
	syncPeople = 15
	syncSalt   = 19

	chatID       = 1
	chatMessages = 2
	chatTimer    = 9
	chatTimerAt  = 10
	chatToken    = 21
	chatTokenAt  = 22
	chatSentAt   = 28

	wrappedMessage = 1
	messageTime    = 3
)

func (s *scan) field(f field) error {
	switch f.number {
	case syncChats:
		return s.chat(f)
	case syncNames:
		return decoded(s.d, f, s.name)
	case syncPeople:
		return decoded(s.d, f, s.person)
	case syncSalt:
		b, err := s.d.small(f)
		if len(b) > 0 {
			s.Salt = b
		}
		return err
	}
	return nil
}

// decoded passes a small message to take. A message that cannot be decoded is left out.
func decoded[T any, M interface {
	*T
	proto.Message
}](d *decoder, f field, take func(M)) error {
	b, err := d.small(f)
	m := M(new(T))
	if err == nil && b != nil && proto.Unmarshal(b, m) == nil {
		take(m)
	}
	return err
}

func (s *scan) name(n *waHistorySync.Pushname) {
	jid, err := types.ParseJID(n.GetID())
	if err == nil && n.GetPushname() != "" && len(s.Names) < maxPeople {
		s.Names[jid.ToNonAD()] = n.GetPushname()
	}
}

func (s *scan) person(m *waHistorySync.PhoneNumberToLIDMapping) {
	pn, err := types.ParseJID(m.GetPnJID())
	lid, bad := types.ParseJID(m.GetLidJID())
	if err == nil && bad == nil && len(s.People) < maxPeople {
		s.People = append(s.People, store.LIDMapping{LID: lid.ToNonAD(), PN: pn.ToNonAD()})
	}
}

func (s *scan) chat(f field) error {
	var c Chat
	number := int32(len(s.Chats)) //nolint:gosec // at most maxPeople
	first := len(s.index)
	err := s.d.nested(f, func(f field) error {
		switch f.number {
		case chatID:
			b, err := s.d.small(f)
			c.JID, _ = types.ParseJID(string(b)) // an empty one is left out
			return err
		case chatMessages:
			return s.d.nested(f, func(f field) error { return s.message(f, number) })
		case chatToken:
			b, err := s.d.small(f)
			c.Token = b
			return err
		case chatTokenAt:
			c.At = f.value
		case chatSentAt:
			c.SentAt = f.value
		case chatTimer:
			c.Timer = uint32(min(f.value, math.MaxUint32)) //nolint:gosec // compared
		case chatTimerAt:
			c.SetAt = f.value
		}
		return nil
	})
	if c.JID.IsEmpty() || len(s.Chats) >= maxPeople {
		s.index = s.index[:first]
		return err
	}
	s.Chats = append(s.Chats, c)
	return err
}

// message writes a message to the spool. One that is too large is left out.
func (s *scan) message(f field, chat int32) error {
	if f.number != wrappedMessage || f.end == 0 || s.spool == nil || f.size > maxMessage || len(s.index) >= maxMessages ||
		s.written+f.size > maxSpool {
		return nil
	}
	b, err := s.d.bytes(f)
	if err != nil {
		return err
	}
	if _, err := s.spool.Write(b); err != nil {
		return err
	}
	s.index = append(s.index, place{s.written, int32(len(b)), chat, timeOf(b)}) //nolint:gosec // at most maxMessage
	s.written += int64(len(b))
	return nil
}

// timeOf returns the time of an encoded message; 0 if it has none.
func timeOf(b []byte) uint64 {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return 0
		}
		b = b[n:]
		if number == messageTime && kind == protowire.VarintType {
			at, _ := protowire.ConsumeVarint(b)
			return at
		}
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return 0
		}
		b = b[n:]
	}
	return 0
}

// Each passes all messages to take, oldest first. Of the messages of one second, the last one in the part is the oldest:
// phones begin with the newest.
func (p *Part) Each(take func(chat types.JID, encoded []byte) error) error {
	order := make([]int32, len(p.index))
	for i := range order {
		order[i] = int32(i) //nolint:gosec // at most maxMessages
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.index[a].at, p.index[b].at), cmp.Compare(b, a))
	})
	for _, i := range order {
		at := p.index[i]
		b := make([]byte, at.size)
		if _, err := p.spool.ReadAt(b, at.offset); err != nil {
			return err
		}
		if err := take(p.Chats[at.chat].JID, b); err != nil {
			return err
		}
	}
	return nil
}
