package whatsapp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"postern/internal/network"
	"postern/internal/postern"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types/events"
)

// endedBy returns how a stanza of the vendor ends the connection, or nil if it
// does not. The codes are those of whatsmeow's events package.
func endedBy(node *waBinary.Node, now time.Time) *network.Ended {
	switch node.Tag {
	case "failure":
		return refusedBy(node, now)
	case "stream:error":
		return closedBy(node)
	}
	return nil
}

// refusedBy reads the answer to a failed login.
func refusedBy(node *waBinary.Node, now time.Time) *network.Ended {
	ag := node.AttrGetter()
	reason := events.ConnectFailureReason(ag.OptionalInt("reason"))
	switch reason {
	case events.ConnectFailureLoggedOut:
		return &network.Ended{Status: postern.LoggedOut, Reason: "device-removed"}
	case events.ConnectFailureMainDeviceGone: // "LOCKED" in the vendor's code
		return &network.Ended{Status: postern.Banned, Reason: "locked"}
	case events.ConnectFailureUnknownLogout: // "BANNED" in the vendor's code
		return &network.Ended{Status: postern.Banned, Reason: "banned"}
	case events.ConnectFailureTempBanned:
		ended := &network.Ended{Status: postern.Restricted, Reason: "temporary-ban"}
		if seconds := ag.OptionalInt("expire"); seconds > 0 {
			ended.Until = now.Add(time.Duration(seconds) * time.Second)
		}
		return ended
	case events.ConnectFailureClientOutdated:
		return disconnected("client-outdated")
	case events.ConnectFailureServiceUnavailable, events.ConnectFailureInternalServerError:
		return disconnected("vendor-unavailable")
	default:
		return disconnected("refused")
	}
}

// closedBy reads why the vendor closes a stream. Code 515 asks to connect again
// after a pairing; Link handles it.
func closedBy(node *waBinary.Node) *network.Ended {
	code, _ := strconv.Atoi(node.AttrGetter().OptionalString("code")) // 0 for a missing code
	conflict := node.GetChildByTag("conflict")
	switch kind := conflict.AttrGetter().OptionalString("type"); {
	case kind == "replaced":
		return &network.Ended{Status: postern.Conflict, Reason: "replaced"}
	case kind == "device_removed" || code == int(events.ConnectFailureLoggedOut):
		return &network.Ended{Status: postern.LoggedOut, Reason: "device-removed"}
	case code == restartCode:
		return nil
	case code == int(events.ConnectFailureServiceUnavailable):
		return disconnected("vendor-unavailable")
	default:
		return disconnected("stream-error")
	}
}

// dialFailure returns the reason for which the vendor's socket could not be opened; badTLS
// means that the handshake of TLS failed.
func dialFailure(err error, badTLS bool) string {
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case isErr[x509.UnknownAuthorityError](err):
		return "tls-unknown-authority"
	case isErr[x509.HostnameError](err):
		return "tls-wrong-name"
	case isInvalid && invalid.Reason == x509.Expired:
		return "tls-expired"
	case isErr[*tls.CertificateVerificationError](err):
		return "tls-invalid-certificate"
	case errors.Is(err, http.ErrSchemeMismatch), isErr[tls.RecordHeaderError](err):
		return "tls-not-spoken"
	case badTLS:
		return "tls-handshake"
	case isErr[*net.DNSError](err):
		return "dns"
	}
	return "dial"
}

func isErr[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// restartCode is the stream error that follows a pairing.
const restartCode = 515
