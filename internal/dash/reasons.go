package dash

import (
	"postern/internal/dash/page"
	"postern/internal/postern"
)

// whyEndpoint explains the state of an endpoint.
func whyEndpoint(e postern.Endpoint) page.Why {
	switch {
	case e.Status == postern.EndpointPending && e.StatusReason == "":
		return page.Why{What: "Postern is sending a challenge to the URL.", Do: "Your endpoint must respond with the challenge from the request body. After that, it receives events."}
	case e.StatusReason == "":
		return page.Why{}
	}
	w, ok := stateReasons()[string(e.StatusReason)]
	if !ok {
		return whyAttempt(string(e.StatusReason))
	}
	return w
}

// stateReasons are those of an endpoint's state alone.
func stateReasons() map[string]page.Why {
	return map[string]page.Why{
		"challenge": {What: "The endpoint responded, but not with the challenge.", Do: `Respond with {"challenge":"…"} using the challenge from the request body, or with the challenge as plain text. The sample receivers shown with the secret do this.`},
		"gone":      {What: "The endpoint responded with 410 Gone, so deliveries to it stopped.", Do: "Make the endpoint respond again, then press Resume. It then receives the events it missed in the last 72 hours."},
		"failing":   {What: "No delivery has succeeded for five days.", Do: "Check the deliveries, fix the receiver, then press Resume. To send events older than 72 hours, use a replay."},
		"user":      {What: "The webhook is paused.", Do: "Press Resume to send a challenge. After that, the webhook receives the events it missed in the last 72 hours."},
		"plan":      {What: "The plan's webhook limit is exceeded.", Do: "Delete another webhook or change the plan."},
	}
}

// whyAttempt explains why a POST failed; "" is one that did not.
func whyAttempt(reason string) page.Why {
	known := map[string]page.Why{
		"dns":      {What: "The host name in the URL was not found.", Do: "Check its spelling and that it is in public DNS."},
		"connect":  {What: "The connection failed.", Do: "Check that the server is running, listens on this port, and is not blocked by a firewall."},
		"tls":      {What: "The TLS handshake failed.", Do: "Use a certificate for this host name from a public certificate authority, include all intermediate certificates, and support TLS 1.2 or later."},
		"timeout":  {What: "The endpoint did not respond in time.", Do: "Respond first and process the event afterwards. The limit is 10 seconds for a challenge and 15 seconds for an event."},
		"reset":    {What: "The connection was closed before a response arrived.", Do: "Check the logs of the server and of any proxy in front of it."},
		"redirect": {What: "The endpoint responded with a redirect. Postern does not follow redirects.", Do: "Enter the URL that it redirects to. Often only https or a trailing slash is missing."},
		"blocked":  {What: "The URL leads to a private or reserved address, which is not allowed.", Do: "Use a public address. The server's operator can allow private networks."},
		"status":   {What: "The endpoint responded with a status other than 2xx.", Do: "Accept POST requests without a login, verify the signature, and respond with 200."},
		"body":     {What: "The response could not be read. It is malformed or incomplete, or its headers are too large.", Do: "Check what the server and any proxy in front of it return."},
	}
	w, ok := known[reason]
	if !ok && reason != "" {
		return page.Why{What: "The attempt failed: " + reason + "."}
	}
	return w
}
