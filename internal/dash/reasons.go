package dash

import (
	"postern/internal/dash/page"
	"postern/internal/postern"
)

// whyEndpoint explains the state of an endpoint.
func whyEndpoint(e postern.Endpoint) page.Why {
	switch {
	case e.Status == postern.EndpointPending && e.StatusReason == "":
		return page.Why{What: "A challenge is being sent.", Do: "The address answers it with what it finds in the body, and then gets events."}
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
		"challenge": {What: "It answered, but not with the challenge.", Do: `Answer with {"challenge":"…"} as found in the body of the request, or with the bare challenge as text. The receivers shown with the secret do.`},
		"gone":      {What: "It answered 410 Gone, which says that it wants nothing any more.", Do: "Make it answer again, then press Resume. What it has missed is sent, up to 72 hours back."},
		"failing":   {What: "No delivery has succeeded for five days.", Do: "Look at the deliveries, mend the receiver, then press Resume. What is older than 72 hours can be replayed."},
		"user":      {What: "It is paused.", Do: "Press Resume: it is sent a challenge, and then what was recorded meanwhile, up to 72 hours back."},
		"plan":      {What: "The plan has no room for it.", Do: "Delete another webhook, or change the plan."},
	}
}

// whyAttempt explains why a POST failed; "" is one that did not.
func whyAttempt(reason string) page.Why {
	known := map[string]page.Why{
		"dns":      {What: "The name in the address was not found.", Do: "Check how it is spelled, and that its record is in the public DNS."},
		"connect":  {What: "No connection could be made.", Do: "Check that the server runs and listens on this port, and that its firewall lets others in."},
		"tls":      {What: "The encrypted connection failed.", Do: "Use a certificate for this name from a public authority, with all certificates between, and TLS 1.2 or later."},
		"timeout":  {What: "No whole answer came in time.", Do: "Answer first and do the work after it: a challenge has 10 seconds, an event 15."},
		"reset":    {What: "The connection was closed before an answer came.", Do: "Look into the log of the server, and of the proxy before it."},
		"redirect": {What: "It answered with a redirect, which is never followed.", Do: "Enter the address that it leads to. Often that is https, or a slash at the end."},
		"blocked":  {What: "The address is not allowed: it is private, or reserved.", Do: "Use a public address. The operator of this server can allow networks of its own."},
		"status":   {What: "It answered with another status than 2xx.", Do: "Take POST without a login, check the signature, and answer 200."},
		"body":     {What: "The answer could not be read: it is broken, too large in its head, or ends too early.", Do: "Look at what the server and the proxy before it answer."},
	}
	w, ok := known[reason]
	if !ok && reason != "" {
		return page.Why{What: "It failed: " + reason + "."}
	}
	return w
}
