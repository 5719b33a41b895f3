package vendorsim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
)

// ErrUnknownAccount is returned for a number that no companion is linked to.
var ErrUnknownAccount = errors.New("no such linked account")

var (
	errUnknownCompanion = errors.New("no such companion")
	errNoDeviceLeft     = errors.New("account has no free device number")
)

const (
	// maxDevice is the greatest device number; addresses have one byte for it.
	maxDevice = 255
	// maxQueue is how many unacknowledged nodes are kept for a companion.
	maxQueue = 100_000
	// window is how many unacknowledged nodes a companion is sent at a time: whatsmeow keeps the
	// order of no more than 2048.
	window = 1500
)

// Account is a phone number that companions are or were linked to.
type Account struct {
	Number     string `json:"number"`
	LID        string `json:"lid"` // the address that hides the number
	Linked     bool   `json:"linked"`
	Online     bool   `json:"online"` // at least one companion is logged in
	Companions int    `json:"companions"`
	Queued     int    `json:"queued"`   // nodes that the companions have not acknowledged
	Logins     int    `json:"logins"`   // connections of companions since the start
	Replaced   int    `json:"replaced"` // those that were open when another one came
}

// account is a number with its companions. Its fields are guarded by core.mu.
type account struct {
	number     number
	saved      savedAccount
	companions []*companion // by device number
	armed      []Fault      // faults that wait for an event

	offlineUntil time.Time // logins are refused until then
	mediaStatus  int       // the answer to every download, 0 for the file
	groupsUntold bool      // its companions get no notices about groups
	stateQueries int       // by companions, since the start
	logins       int       // connections since the start
	replaced     int       // connections that were open when another one came
}

type savedAccount struct {
	LastDevice      uint16    `json:"lastDevice"`
	Banned          bool      `json:"banned"`
	RestrictedUntil time.Time `json:"restrictedUntil"`
	LimitedUntil    time.Time `json:"limitedUntil,omitzero"` // it may not start chats until then
}

func (v devices) saveAccount(a *account) {
	v.put("account/"+string(a.number), a.saved)
	v.notify()
}

// companion is a linked device, such as a whatsmeow client. Its fields are guarded by core.mu.
type companion struct {
	account      *account
	saved        savedCompanion
	prekeys      []*keys.PreKey // uploaded and not handed out yet
	conn         *conn          // nil while offline
	queue        []*delivery    // unacknowledged nodes, oldest first
	sent         int            // number of nodes of the queue that were sent on the current connection
	nextPosition int64
	parked       []*delivery // acknowledged as unreadable, until the companion asks again

	available  bool            // it is shown as online, on its current connection
	subscribed []number        // of whom it is told on its current connection whether they are online
	shown      []waBinary.Node // the newest of what it was told of others
}

type savedCompanion struct {
	Device   uint16   `json:"device"`
	Noise    [32]byte `json:"noise"`    // key of its connections
	Identity [32]byte `json:"identity"` // key of its messages
	RegID    uint32   `json:"regId"`
	SignedID uint32   `json:"signedId"` // its signed prekey
	Signed   [32]byte `json:"signed"`
	Sig      []byte   `json:"sig"`                // 64 bytes
	Welcomed bool     `json:"welcomed,omitempty"` // it has logged in
}

func (cp *companion) lid() types.JID { return withDevice(cp.account.number.lid(), cp.saved.Device) }
func (cp *companion) pn() types.JID  { return withDevice(cp.account.number.pn(), cp.saved.Device) }

func withDevice(jid types.JID, device uint16) types.JID {
	jid.Device = device
	return jid
}

// name returns the companion's name in the keys of the journal.
func (cp *companion) name() string {
	return fmt.Sprintf("%s/%d", string(cp.account.number), cp.saved.Device)
}

func (v devices) saveCompanion(cp *companion) {
	v.put("companion/"+cp.name(), cp.saved)
	v.notify()
}

// Accounts returns every number that a companion is or was linked to, in order.
func (v *Vendor) Accounts() []Account {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]Account, 0, len(v.accounts))
	for _, a := range v.accounts {
		queued := 0
		for _, cp := range a.companions {
			queued += len(cp.queue)
		}
		out = append(out, Account{
			Number:     a.number.String(),
			LID:        a.number.lid().String(),
			Linked:     len(a.companions) > 0,
			Online:     slices.ContainsFunc(a.companions, func(cp *companion) bool { return cp.conn != nil }),
			Companions: len(a.companions),
			Queued:     queued,
			Logins:     a.logins,
			Replaced:   a.replaced,
		})
	}
	slices.SortFunc(out, func(x, y Account) int { return cmp.Compare(x.Number, y.Number) })
	return out
}

// linkedAccount finds the account of a number that has companions. The caller holds v.mu.
func (v devices) linkedAccount(n number) (*account, error) {
	a := v.accounts[n]
	if a == nil || len(a.companions) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrUnknownAccount, n)
	}
	return a, nil
}

// phoneNumber parses a number and refuses one that no companion was ever linked to: its phone is not simulated.
func (v devices) phoneNumber(s string) (number, error) {
	n, err := parseNumber(s)
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.closed:
		return "", ErrClosed
	case v.accounts[n] == nil:
		return "", fmt.Errorf("%w: %s", ErrUnknownAccount, n)
	}
	return n, nil
}

// linkedNumber parses a number and refuses one that no companion is linked to.
func (v devices) linkedNumber(s string) (number, error) {
	n, err := parseNumber(s)
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return "", ErrClosed
	}
	_, err = v.linkedAccount(n)
	return n, err
}

// companion finds a linked device, nil if there is none. The caller holds v.mu.
func (v devices) companion(n number, device uint16) *companion {
	a := v.accounts[n]
	if a == nil {
		return nil
	}
	i := slices.IndexFunc(a.companions, func(cp *companion) bool { return cp.saved.Device == device })
	if i < 0 {
		return nil
	}
	return a.companions[i]
}

// companionsOf returns the companions of a number. The caller holds v.mu.
func (v devices) companionsOf(n number) []*companion {
	if a := v.accounts[n]; a != nil {
		return slices.Clone(a.companions)
	}
	return nil
}

// freeDevice returns the next free device number after the one assigned last. The caller holds v.mu.
func (v devices) freeDevice(a *account) (uint16, error) {
	taken := make(map[uint16]bool)
	for _, cp := range a.companions {
		taken[cp.saved.Device] = true
	}
	for _, p := range v.pairings {
		if p.link != nil && p.link.companion.account.number == a.number {
			taken[p.link.companion.saved.Device] = true
		}
	}
	for i := range uint16(maxDevice) {
		if device := (a.saved.LastDevice+i)%maxDevice + 1; !taken[device] {
			return device, nil
		}
	}
	return 0, fmt.Errorf("%w: %s", errNoDeviceLeft, a.number)
}

// addCompanion links a device. The caller holds v.mu.
func (v devices) addCompanion(cp *companion) {
	if a := v.accounts[cp.account.number]; a != nil {
		cp.account = a // another client may have been linked in between
	}
	a := cp.account
	v.accounts[a.number] = a
	a.add(cp)
	a.saved.LastDevice = cp.saved.Device
	v.saveAccount(a)
	v.saveCompanion(cp)
}

func (a *account) add(cp *companion) {
	a.companions = append(a.companions, cp)
	slices.SortFunc(a.companions, func(x, y *companion) int {
		return cmp.Compare(x.saved.Device, y.saved.Device)
	})
}

// removeCompanion unlinks a device for good and tells it if it is online. The caller holds v.mu.
func (v devices) removeCompanion(cp *companion) {
	a := cp.account
	a.companions = slices.DeleteFunc(a.companions, func(x *companion) bool { return x == cp })
	if c := cp.conn; c != nil {
		cp.conn = nil
		c.sendLast(streamError("401", "device_removed"), linger)
	}
	v.remove("companion/" + cp.name())
	for _, k := range cp.prekeys {
		v.remove(prekeyKey(cp, k.KeyID))
	}
	for _, d := range cp.queue {
		v.remove(queueKey(cp, d))
	}
	cp.queue, cp.prekeys = nil, nil
	v.notify()
}

// streamError returns the node with which the vendor ends a connection. If conflict is not "", the
// node contains a conflict of that kind.
func streamError(code, conflict string) waBinary.Node {
	n := waBinary.Node{Tag: "stream:error", Attrs: waBinary.Attrs{"code": code}}
	if conflict != "" {
		n.Content = []waBinary.Node{{Tag: "conflict", Attrs: waBinary.Attrs{"type": conflict}}}
	}
	return n
}

// tellDevices tells the companions that have a session with a number's phone, and may remember the
// number's devices, that the devices have changed. The caller must not hold v.mu.
func (v devices) tellDevices(n number) {
	p, err := v.phoneOf(n)
	if err != nil {
		return
	}
	p.mu.Lock()
	addresses := make([]string, 0, len(p.sessions))
	for a := range p.sessions {
		addresses = append(addresses, a)
	}
	p.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, address := range addresses {
		if cp := v.companionAt(address); cp != nil {
			v.queues.deliverNotice(cp, "devices", n.lid(), waBinary.Node{
				Tag: "update", Attrs: waBinary.Attrs{"device_hash": "changed"},
			})
		}
	}
}

// companionAt finds the companion behind a Signal address.
func (v devices) companionAt(address string) *companion {
	n, device, ok := companionAddress(address)
	if !ok {
		return nil
	}
	return v.companion(n, device)
}

// companionAddress parses the Signal address of a companion, "<lid>_1:<device>".
func companionAddress(address string) (n number, device uint16, ok bool) {
	user, digits, ok := strings.Cut(address, "_1:")
	d, err := strconv.ParseUint(digits, 10, 16)
	n, known := numberOf(types.NewJID(user, types.HiddenUserServer))
	return n, uint16(d), ok && err == nil && known
}
