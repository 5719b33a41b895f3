package problem

import (
	"iter"
	"maps"
	"slices"

	"postern/internal/postern"
)

// State explains a value of statusReason or reason: why a device, a link attempt or an
// endpoint is in its state. It is the content of a page, like an [Explanation].
type State struct {
	Title    string
	Means    string
	Do       string // how to get further
	Session  bool   // of devices and link attempts
	Endpoint bool   // of webhook endpoints
}

const (
	retried  = "Nothing: the device reconnects by itself, after longer and longer pauses."
	linkAnew = "Link the device again. It keeps its id, history, keys and webhooks."
	openNew  = "Open a new link attempt."
	// certificate is what to do about TLS with the network.
	certificate = "Check the server's clock, and that nothing between the server and the network inspects the traffic. The device reconnects by itself."
	verify      = "Correct the receiver, and verify the endpoint again: POST /v1/webhooks/{id}/verify. Each delivery shows its attempts."
)

// states is the closed list of statusReason and reason. A value never contains a code or
// a time.
var states = map[string]State{ //nolint:gochecknoglobals // made once, never changed
	"banned":                  session("Account banned", "The network has banned the account.", "Contact the network's support on the phone. After that, link the device again."),
	"client-outdated":         session("Client outdated", "The network does not accept this version of the protocol.", "Update the server. The device reconnects by itself."),
	"decryption-panicked":     session("Unreadable message", "The server failed while it decrypted a message.", "Nothing: the device reconnects by itself. After three tries the message is reported as message.undecryptable, and the next ones arrive."),
	"deleted":                 session("Device deleted", "The device was deleted.", "Nothing: the device no longer exists."),
	"device-removed":          session("Link removed", "The link was removed on the phone, or by the network.", linkAnew),
	"dial":                    session("Network unreachable", "No connection to the network could be made.", "Check the server's internet connection and the device's proxy. The device reconnects by itself."),
	"error":                   session("Unexpected error", "The session or the link attempt ended with an unexpected error.", "The operator can find the cause in the server's log. A device reconnects by itself; a link attempt must be opened again."),
	"handshake":               session("Handshake failed", "The connection to the network was made, but its encryption could not be set up.", "Check that nothing between the server and the network inspects the traffic. The device reconnects by itself."),
	"keepalive-timeout":       session("Connection silent", "The network no longer answered on an open connection.", retried),
	"keys-gone":               session("Session keys missing", "The session keys of the account are not in the database.", linkAnew),
	"keys-lost":               session("Session keys lost", "The session keys of the account cannot be read with the server's secret key.", linkAnew),
	"locked":                  session("Account locked", "The network has locked the account.", "Open the app on the phone and follow its instructions. After that, link the device again."),
	"not-receiving":           session("No answer", "The connection was open, but the network did not answer in time.", "Nothing for a device: it reconnects by itself. For a link attempt, open a new one."),
	"plan-limit":              session("Plan limit", "The plan allows fewer linked devices than the workspace has.", "Unlink or delete other devices, or change the plan. Then resume the device or open a new link attempt."),
	"proxy-unreadable":        session("Proxy unreadable", "The address of the device's proxy cannot be decrypted.", "Set proxyUrl of the device again."),
	"quarantined":             session("Quarantined", "The server crashed three times while it processed data of this device, so the device is not connected any more.", "Update the server, and resume the device. If it is quarantined again, report it with the server's log."),
	"refused":                 session("Refused by the network", "The network refused the login or the link, without a cause that this server knows.", "Check the account on the phone. A device tries again by itself; a link attempt must be opened again."),
	"replaced":                session("Session opened elsewhere", "The same session was opened by another program.", "Stop the other program, and resume the device."),
	"node-lost":               session("Server lost", "The server that held the connection is gone; another one connects the device.", retried),
	"restart":                 session("Restart requested", "The network asked for a new connection.", retried),
	"socket-closed":           session("Connection closed", "The connection to the network ended.", retried),
	"store-unavailable":       session("Storage unavailable", "The server's database could not be written, so nothing more was accepted from the network.", "The operator checks the database. The device reconnects by itself, and the network delivers everything again."),
	"stream-error":            session("Closed by the network", "The network ended the connection because of an error that this server does not know.", retried),
	"temporary-ban":           session("Temporary ban", "The network restricts the account for some time.", "Wait; restrictedUntil says until when, if the network did. The device reconnects by itself afterwards. Send more slowly, and only to people who expect it."),
	"tls-expired":             session("Certificate expired", "The network's certificate has expired, or the server's clock is wrong.", certificate),
	"tls-handshake":           session("TLS failed", "The connection to the network was made, but TLS could not be set up.", certificate),
	"tls-invalid-certificate": session("Certificate invalid", "The network's certificate is not valid.", certificate),
	"tls-not-spoken":          session("No TLS", "What answers at the network's address does not speak TLS.", certificate),
	"tls-unknown-authority":   session("Certificate unknown", "The network's certificate is signed by an authority that the server does not trust.", certificate),
	"tls-wrong-name":          session("Certificate of another host", "The network's certificate is for another host.", certificate),
	"undecodable":             session("Undecodable data", "The network sent data that this server cannot decode.", retried),
	"unlinked":                session("Unlinked", "The link was removed in the dashboard or with the API.", linkAnew),
	"vendor-unavailable": session("Network unavailable", "The network reports that it is temporarily unavailable.",
		retried),

	"canceled":            session("Attempt canceled", "The link attempt was canceled.", openNew),
	"code-refused":        session("No code from the network", "The network gave no code to enter on the phone.", "Wait some minutes, or link by QR code."),
	"interrupted":         session("Attempt interrupted", "The server stopped while the phone was being linked, and the keys of the link are lost.", openNew),
	"number-unknown":      session("Number unknown", "The network does not know the phone number.", "Check the number and its country code, and open a new link attempt."),
	"other-number":        session("Another number", "The phone that scanned the code has another number than the device had before.", "Scan with the right phone, or open the attempt with allowNewNumber."),
	"pairing-failed":      session("Pairing failed", "The phone scanned the code, but the exchange of keys failed.", openNew),
	"passkey-required":    session("Passkey required", "The network asks for the passkey of the account. An attempt that has ended got none in time.", "Get the passkey in a browser while the attempt is passkey_required: its link page leads through the steps. After the end, open a new link attempt."),
	"passkey-refused":     session("Passkey refused", "The network did not accept the passkey, or its request had expired.", "Check that the passkey belongs to the account of the phone that scanned the code, and open a new link attempt."),
	"passkey-unconfirmed": session("Passkey not confirmed", "The network has the passkey, but nobody confirmed the link in time: on the phone, or by comparing the codes.", "Keep the phone at hand, and open a new link attempt."),
	"code-differs":        session("Codes differ", "The person who links the phone said that the phone shows another code.", "Do not link: somebody else's connection may be between. Open a new link attempt, and compare the codes again."),
	"timeout":             both("Out of time", "No phone used the code in time; or, for an endpoint, the receiver did not answer the challenge in time.", "Open a new link attempt, or verify the endpoint again."),
	"too-many-codes":      session("Too many codes", "The network limits how often codes can be requested for the number.", "Wait some hours, or link by QR code."),
	"unexpected-number":   session("Unexpected number", "The phone that scanned the code has another number than the attempt expects.", "Scan with the right phone, or open the attempt with another expectedPhoneNumber."),
	"unlink-pending":      session("Unlink not confirmed", "The network has not confirmed yet that the previous link is removed.", "Wait until the network can be reached, and open a new link attempt."),
	"wrong-code":          session("Wrong code", "The code that was entered on the phone is not the one that was shown.", openNew),

	"user": both("Paused", "Somebody paused it in the dashboard or with the API.", "Resume it."),

	"blocked":   endpoint("Address not allowed", "The URL, or the address of its host, is not allowed.", "Use an https URL whose host has a public address. The operator can allow private networks."),
	"body":      endpoint("Malformed response", "The response is malformed, its headers are too large, or it ends too early.", verify),
	"challenge": endpoint("Wrong challenge", "The response does not contain the challenge.", "Respond with 2xx and the challenge, as text or as {\"challenge\":\"…\"}. Then verify the endpoint again."),
	"connect":   endpoint("No connection", "No connection to the receiver could be made.", verify),
	"dns": both("Name not found", "The name of the network's host, or of the receiver's, was not found.",
		"A device reconnects by itself; the operator checks the name service of the server. For an endpoint, check the URL and verify it again."),
	"failing":  endpoint("Failing for days", "For 120 hours, no attempt succeeded, so the endpoint was disabled.", verify),
	"gone":     endpoint("Gone", "The receiver responded with 410, so the endpoint was disabled.", "Verify the endpoint to use it again, or delete it."),
	"plan":     endpoint("Plan without webhooks", "The workspace's plan does not include webhooks.", "Change the plan. The endpoint is then verified and resumed by itself."),
	"redirect": endpoint("Redirect", "The receiver responded with a redirect, which is never followed.", "Use the URL that the redirect leads to."),
	"reset":    endpoint("Connection reset", "The connection ended before there was a response.", verify),
	"status":   endpoint("Error status", "The receiver responded with a status other than 2xx.", verify),
	"tls":      endpoint("TLS failed", "The TLS handshake with the receiver failed: its certificate, version or cipher was not accepted.", "Check the certificate and its chain. TLS 1.2 or later is required. Then verify the endpoint again."),
}

func session(title, means, do string) State { return State{title, means, do, true, false} }

func endpoint(title, means, do string) State { return State{title, means, do, false, true} }

func both(title, means, do string) State { return State{title, means, do, true, true} }

// StateOf returns what a reason means; ok is false for a reason that is not in the list.
func StateOf(reason string) (s State, ok bool) {
	s, ok = states[reason]
	return s, ok
}

// States ranges over the reasons of states in alphabetical order.
func States() iter.Seq2[string, State] {
	return func(yield func(string, State) bool) {
		for _, r := range slices.Sorted(maps.Keys(states)) {
			if !yield(r, states[r]) {
				return
			}
		}
	}
}

// SessionReasons lists the reasons of devices and link attempts. One of them is that of a
// refusal too, and has its page.
func SessionReasons() (list []string) {
	list = []string{string(postern.NumberAlreadyLinked)}
	for r, s := range States() {
		if s.Session {
			list = append(list, r)
		}
	}
	slices.Sort(list)
	return list
}

// EndpointReasons lists the reasons of webhook endpoints.
func EndpointReasons() (list []string) {
	for r, s := range States() {
		if s.Endpoint {
			list = append(list, r)
		}
	}
	return list
}
