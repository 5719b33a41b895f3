package vendorsim

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mau.fi/libsignal/protocol"
)

// Fault is a failure for a linked account. Some faults take an argument after a colon.
type Fault string

// The faults that happen immediately.
const (
	// FaultDrop cuts the connections.
	FaultDrop Fault = "drop"
	// FaultLogout removes the companions, as the owner can on the phone.
	FaultLogout Fault = "logout"
	// FaultBan bans the account permanently: its connections are cut, and its logins are refused
	// with 403.
	FaultBan Fault = "ban"
	// FaultRestrict bans the account for a minute, or for the seconds of its argument
	// ("restrict:5"): its connections are cut, and its logins are refused with 402 until then.
	// "restrict:0" ends the ban.
	FaultRestrict Fault = "restrict"
	// FaultLimit keeps the account from writing to people who have never written to it, for a day or
	// for the seconds of its argument ("limit:5"). Its companions are told, and messages are refused with 463.
	FaultLimit Fault = "limit"
	// FaultLimitSilently is FaultLimit without a word to the companions.
	FaultLimitSilently Fault = "limit-silently"
	// FaultUnlimit ends the limit, and tells the companions.
	FaultUnlimit Fault = "unlimit"
	// FaultUntold keeps notices about groups from the companions, until "untold:0".
	FaultUntold Fault = "untold"
	// FaultOffline keeps the companions offline for half a minute, or for the seconds of its
	// argument ("offline:5"): their connections are cut, and their logins are refused with 503
	// until then. "offline:0" ends this.
	FaultOffline Fault = "offline"
	// FaultConflict ends the connections as if the companion had logged in elsewhere.
	FaultConflict Fault = "conflict"
	// FaultSilence makes the connections half-open: the vendor neither answers nor closes.
	FaultSilence Fault = "silence"
	// FaultMalformed sends a frame that makes whatsmeow panic in a goroutine of its own, so that
	// the client's process ends. The argument selects the frame: 0 has no bytes at all, 1 to 3 are
	// malformed nodes, and 4 is compressed. The default is 1. If there is no connection, the frame is
	// the first one after the next login.
	FaultMalformed Fault = "malformed"
)

// The faults that wait for an event and happen once.
const (
	// FaultRefuse refuses the next login with the reason of its argument ("refuse:503"). The
	// default is 503.
	FaultRefuse Fault = "refuse"
	// FaultHang does not answer the next login.
	FaultHang Fault = "hang"
	// FaultDropOnMessage cuts the connection at the next outbound message, which is lost.
	FaultDropOnMessage Fault = "drop-on-message"
	// FaultDropBeforeAck records and delivers the next outbound message, and cuts the connection
	// instead of acknowledging it.
	FaultDropBeforeAck Fault = "drop-before-ack"
	// FaultNoAck records and delivers the next outbound message, but never acknowledges it.
	FaultNoAck Fault = "noack"
	// FaultDuplicate sends the next inbound message twice.
	FaultDuplicate Fault = "duplicate"
	// FaultReorder sends the next inbound message after the one that follows it.
	FaultReorder Fault = "reorder"
	// FaultGarble damages the next inbound message, so that the companion must ask for it again.
	FaultGarble Fault = "garble"
	// FaultRetry keeps a recipient's phone from reading the next outbound message, so that it asks
	// for it again. It reads the copy that it gets then.
	FaultRetry Fault = "retry"
	// FaultPoison replaces the next inbound message by one whose decryption panics in whatsmeow, at
	// every delivery.
	FaultPoison Fault = "poison"
	// FaultBadProtobuf makes the next inbound message one that can be decrypted but not parsed.
	FaultBadProtobuf Fault = "bad-protobuf"
	// FaultBadTime gives the next inbound message a time that is not a number.
	FaultBadTime Fault = "bad-time"
	// FaultOtherNames seals the next vote or sealed edit that a companion gets for people named by
	// their phone numbers, although all else names them by their hidden addresses.
	FaultOtherNames Fault = "other-names"
	// FaultUndecodable sends as many frames as its argument that can be decrypted but not decoded,
	// without ending the client's process. The default is 3.
	FaultUndecodable Fault = "undecodable"
)

// ErrUnknownFault is returned for a fault that does not exist.
var ErrUnknownFault = errors.New("no such fault")

const (
	// AllAccounts means every linked account in [Vendor.Fault].
	AllAccounts = "*"

	defaultRefusal     = 503
	defaultOffline     = 30 * time.Second
	defaultRestriction = time.Minute
	defaultLimit       = 24 * time.Hour
	// maxArmed is how many faults may wait for one account.
	maxArmed = 1000
)

// Fault causes a failure for a linked account, or for all of them ([AllAccounts]).
func (v *Vendor) Fault(ctx context.Context, num string, f Fault) error {
	apply, err := v.faults.faultAction(f)
	if err != nil {
		return err
	}
	targets, err := v.faults.faultTargets(num)
	if err != nil {
		return err
	}
	for _, a := range targets {
		v.log.InfoContext(ctx, "fault", "account", a.number, "kind", string(f))
		v.mu.Lock()
		apply(a)
		v.mu.Unlock()
	}
	if f == FaultLogout {
		for _, a := range targets {
			v.devices.tellDevices(a.number)
		}
	}
	return v.flush()
}

func (v faults) faultTargets(num string) ([]*account, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, ErrClosed
	}
	if num != AllAccounts {
		n, err := parseNumber(num)
		if err != nil {
			return nil, err
		}
		a, err := v.devices.linkedAccount(n)
		return []*account{a}, err
	}
	var all []*account
	for _, a := range v.accounts {
		if len(a.companions) > 0 {
			all = append(all, a)
		}
	}
	return all, nil
}

// faultAction returns what a fault does to an account, for a caller that holds v.mu.
func (v faults) faultAction(f Fault) (func(*account), error) {
	kind, arg, hasArg := strings.Cut(string(f), ":")
	argument, err := strconv.Atoi(arg)
	if hasArg && (err != nil || argument < 0) {
		return nil, fmt.Errorf("%w: %q", ErrUnknownFault, f)
	}
	switch Fault(kind) {
	case FaultDrop:
		return eachConn((*conn).close), nil
	case FaultSilence:
		return eachConn((*conn).silence), nil
	case FaultUntold:
		return func(a *account) { a.groupsUntold = !hasArg || argument != 0 }, nil
	case FaultConflict:
		return eachConn(func(c *conn) { c.sendLast(streamError("", "replaced"), linger) }), nil
	case FaultUndecodable:
		frames := 3
		if hasArg {
			frames = argument
		}
		return eachConn(func(c *conn) {
			for range frames {
				c.push(outgoing{data: []byte{0, 0xF8, 1, 0xF7}}) // an address without its parts
			}
		}), nil
	case FaultMalformed:
		frame := 1
		if hasArg {
			frame = argument
		}
		if frame >= len(malformed()) {
			return nil, fmt.Errorf("%w: %q", ErrUnknownFault, f)
		}
		return func(a *account) { a.malform(frame) }, nil
	case FaultLogout:
		return v.logoutAll, nil
	case FaultBan:
		return v.ban, nil
	case FaultRestrict:
		left := defaultRestriction
		if hasArg {
			left = time.Duration(argument) * time.Second
		}
		return func(a *account) { v.restrict(a, left) }, nil
	case FaultLimit, FaultLimitSilently:
		left := defaultLimit
		if hasArg {
			left = time.Duration(argument) * time.Second
		}
		return func(a *account) { v.limit(a, left, Fault(kind) == FaultLimit) }, nil
	case FaultUnlimit:
		return func(a *account) { v.limit(a, 0, true) }, nil
	case FaultOffline:
		left := defaultOffline
		if hasArg {
			left = time.Duration(argument) * time.Second
		}
		return func(a *account) { a.goOffline(left) }, nil
	case FaultRefuse, FaultHang, FaultDropOnMessage, FaultDropBeforeAck, FaultNoAck, FaultDuplicate, FaultReorder,
		FaultReplay, FaultGarble, FaultRetry, FaultPoison, FaultBadProtobuf, FaultBadTime, FaultOtherNames:
		return func(a *account) { a.arm(f) }, nil
	default:
		return v.mediaAction(f, kind, arg)
	}
}

// malformed returns the decrypted bytes of the frames of FaultMalformed.
func malformed() [][]byte {
	var zeros bytes.Buffer
	zeros.WriteByte(2) // compressed
	w := zlib.NewWriter(&zeros)
	w.Write(make([]byte, 64)) //nolint:errcheck,gosec // a buffer takes everything
	w.Close()                 //nolint:gosec // as above
	return [][]byte{
		{},
		{0x00, 0xF8, 0x02, 0x00, 0x03},
		{0x00, 0xF8, 0x01, 0xFA, 0x00, 0x03},
		{0x00, 0xF8, 0x02, 0x03, 0xF8, 0x01, 0xF8, 0x01, 0x00},
		zeros.Bytes(),
	}
}

// malform sends a malformed frame on the connections of an account, or after its next login. The
// caller holds v.mu.
func (a *account) malform(frame int) {
	sent := false
	eachConn(func(c *conn) {
		c.push(outgoing{data: malformed()[frame]})
		sent = true
	})(a)
	if !sent {
		a.arm(Fault(string(FaultMalformed) + ":" + strconv.Itoa(frame)))
	}
}

// takeMalformed returns the malformed frame that waits for a login, or nil.
func (v faults) takeMalformed(a *account) []byte {
	for i, frame := range malformed() {
		if v.takeFault(a, Fault(string(FaultMalformed)+":"+strconv.Itoa(i))) {
			return frame
		}
	}
	return nil
}

func eachConn(do func(*conn)) func(*account) {
	return func(a *account) {
		for _, cp := range a.companions {
			if cp.conn != nil {
				do(cp.conn)
			}
		}
	}
}

func (v faults) logoutAll(a *account) {
	for _, cp := range slices.Clone(a.companions) {
		v.devices.removeCompanion(cp)
	}
}

func (v faults) ban(a *account) {
	a.saved.Banned = true
	v.devices.saveAccount(a)
	eachConn((*conn).close)(a)
}

// restrict bans an account for a while. The caller holds v.mu.
func (v faults) restrict(a *account, left time.Duration) {
	a.saved.RestrictedUntil = now().Add(left)
	v.devices.saveAccount(a)
	eachConn(func(c *conn) { c.finish(0) })(a)
}

// goOffline keeps the companions of an account offline for a while. The caller holds v.mu.
func (a *account) goOffline(left time.Duration) {
	a.offlineUntil = now().Add(left)
	if left > 0 {
		eachConn((*conn).close)(a)
	}
}

func (a *account) arm(f Fault) {
	if len(a.armed) < maxArmed {
		a.armed = append(a.armed, f)
	}
}

// takeFault reports whether a fault is armed for an account, and disarms it. The caller holds v.mu.
func (v faults) takeFault(a *account, f Fault) bool {
	i := slices.Index(a.armed, f)
	if i < 0 {
		return false
	}
	a.armed = slices.Delete(a.armed, i, i+1)
	return true
}

// fault is takeFault for a caller that does not hold v.mu.
func (v faults) fault(cp *companion, f Fault) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.takeFault(cp.account, f)
}

// dropsUnread closes a connection when a message arrives, if that fault is armed. The message is
// lost.
func (v faults) dropsUnread(c *conn) bool {
	if !v.fault(c.companion, FaultDropOnMessage) {
		return false
	}
	c.close()
	return true
}

// hangUpDurably closes a connection after everything recorded so far is durable, because the
// client must not reconnect earlier.
func (v faults) hangUpDurably(c *conn) {
	c.silence()
	v.wg.Go(func() {
		if err := v.sync(); err != nil {
			v.log.Error("write journal", "error", err)
		}
		c.close()
	})
}

// poisoned returns a message whose decryption panics in libsignal: its version, an empty ratchet
// key, a counter and a body, as a protobuf, and the authentication code.
func poisoned() []byte {
	return append([]byte{0x33, 0x0A, 0x00, 0x10, 0x00, 0x22, 0x01, 0x00}, make([]byte, protocol.MacLength)...)
}

// notProtobuf is the beginning of a text field of a protobuf whose length is missing.
func notProtobuf() []byte { return []byte{0x0A, 0xFF} }

// garbled returns a damaged copy of a sealed message.
func garbled(data []byte) []byte {
	out := slices.Clone(data)
	if len(out) > 0 {
		out[len(out)-1] ^= 0xFF
	}
	return out
}
