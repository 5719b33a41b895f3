package vendorsim

import (
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"strconv"
	"strings"

	"go.mau.fi/whatsmeow/types"
)

// ErrBadNumber is returned for text that is not a phone number: 7 to 15 digits, the first not zero,
// with or without a leading plus.
var ErrBadNumber = errors.New("not a phone number")

// ErrNotOnNetwork is returned for a number that the network does not know.
var ErrNotOnNetwork = errors.New("number is not on the network")

// The numbers with a special behavior, all in the range that North America reserves for fiction.
const (
	// NumberUnknown is not on the network.
	NumberUnknown = "+15005550001"
	// NumberSilent gets messages but never confirms delivery.
	NumberSilent = "+15005550002"
	// NumberReader confirms delivery and reads at once.
	NumberReader = "+15005550003"
	// NumberEcho replies to every text with the same text, and to answers to that no more than three times.
	NumberEcho = "+15005550004"
	// NumberReporter gets accounts that write to it restricted.
	NumberReporter = "+15005550005"
	// NumberPrivate cannot be added to groups: its owner does not allow it.
	NumberPrivate = "+15005550006"
	// NumberPasskey asks for its passkey whenever a client is linked to it.
	NumberPasskey = "+15005550007"
)

// number is a phone number as digits without the plus.
type number string

func parseNumber(s string) (number, error) {
	n := number(strings.TrimPrefix(strings.TrimSpace(s), "+"))
	if !n.valid() {
		return "", fmt.Errorf("%w: %q", ErrBadNumber, s)
	}
	return n, nil
}

// knownNumber parses a number and refuses one that is not on the network.
func knownNumber(s string) (number, error) {
	n, err := parseNumber(s)
	if err != nil {
		return "", err
	}
	if n = n.registered(); !n.exists() {
		return "", fmt.Errorf("%w: %s", ErrNotOnNetwork, n)
	}
	return n, nil
}

func (n number) valid() bool {
	if len(n) < 7 || len(n) > 15 || n[0] == '0' {
		return false
	}
	for i := range len(n) {
		if n[i] < '0' || n[i] > '9' {
			return false
		}
	}
	return true
}

func (n number) exists() bool {
	return n.valid() && n.String() != NumberUnknown && n == n.registered()
}

// registered returns the form in which the network has a number. Some countries have changed their numbers, and accounts
// kept theirs: Brazilian mobile numbers outside São Paulo and Rio de Janeiro lack the 9 that people dial, Mexican ones
// have a 1 after the country code, and Argentine ones a 9, which people leave out.
func (n number) registered() number {
	switch {
	case len(n) == 13 && strings.HasPrefix(string(n), "55") && n[2] >= '3' && n[4] == '9':
		return n[:4] + n[5:]
	case len(n) == 12 && strings.HasPrefix(string(n), "52"):
		return "521" + n[2:]
	case len(n) == 12 && strings.HasPrefix(string(n), "54"):
		return "549" + n[2:]
	}
	return n
}

func (n number) String() string { return "+" + string(n) }

// LogValue implements slog.LogValuer. Logs contain the hidden address instead of the number.
func (n number) LogValue() slog.Value { return slog.StringValue(n.lid().User) }

// name returns the push name that a phone of this number shows to others.
func (n number) name() string { return "Phone " + n.String() }

// pn returns the address that contains the phone number.
func (n number) pn() types.JID { return types.NewJID(string(n), types.DefaultUserServer) }

// Hidden addresses (LIDs) are a permutation of the numbers, so that none need be stored: the number
// times lidFactor modulo 10^15, written with a 1 in front.
const (
	lidModulus = 1_000_000_000_000_000
	lidFactor  = 387_420_489
	lidInverse = 108_555_513_180_409
	lidPrefix  = "1"
	lidDigits  = 15
)

// lid returns the address that hides the phone number. The network uses it for all traffic.
func (n number) lid() types.JID {
	v, err := strconv.ParseUint(string(n), 10, 64)
	if err != nil {
		return types.EmptyJID
	}
	return types.NewJID(fmt.Sprintf("%s%0*d", lidPrefix, lidDigits, mulMod(v, lidFactor)), types.HiddenUserServer)
}

// numberOf finds the number behind either kind of address.
func numberOf(jid types.JID) (number, bool) {
	switch jid.Server {
	case types.DefaultUserServer, types.LegacyUserServer:
		n := number(jid.User)
		return n, n.valid()
	case types.HiddenUserServer:
		digits, ok := strings.CutPrefix(jid.User, lidPrefix)
		v, err := strconv.ParseUint(digits, 10, 64)
		if !ok || err != nil || len(digits) != lidDigits {
			return "", false
		}
		n := number(strconv.FormatUint(mulMod(v, lidInverse), 10))
		return n, n.valid()
	default:
		return "", false
	}
}

func mulMod(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	_, rem := bits.Div64(hi, lo, lidModulus)
	return rem
}

// manners is how the simulated user of a number behaves.
type manners struct {
	confirms, reads, echoes, reports bool
}

func (n number) manners() manners {
	switch n.String() {
	case NumberSilent:
		return manners{}
	case NumberReader:
		return manners{confirms: true, reads: true}
	case NumberEcho:
		return manners{confirms: true, echoes: true}
	case NumberReporter:
		return manners{confirms: true, reports: true}
	default:
		return manners{confirms: true}
	}
}
