package spec

import "postern/internal/postern"

// note says of an operation what cannot be read off its types.
type note struct {
	text    string           // beyond the summary
	refuses []postern.Reason // beyond what follows from its form; see [reasonsOf]
}

// notes has a row for each operation.
func notes() map[string]note {
	const streamNote = " Comments show that the stream lives. It ends within a second of its key's end."
	return map[string]note{
		"listDevices":  {text: "The devices that the key may see, newest first."},
		"createDevice": {text: "The device takes none of the plan's places until a link attempt is opened for it. A key limited to devices cannot create one.", refuses: []postern.Reason{postern.ResourceNotAllowed}},
		"getDevice":    {text: "One device with the state of its session."},
		"updateDevice": {text: "A merge patch (RFC 7396): what is left out stays, null resets."},
		"deleteDevice": {text: "Waits up to 10 seconds for the network's answer to the unlink. The device, its keys and its messages are gone at once, also while the network is away."},
		"pauseDevice":  {text: "The device disconnects and stays linked, and keeps its place of the plan's.", refuses: []postern.Reason{postern.NotLinked}},
		"resumeDevice": {text: "The device connects again. One that the plan has paused can be resumed when another has made room.", refuses: []postern.Reason{postern.NotLinked, postern.DeviceLimit}},
		"unlinkDevice": {text: "The device keeps its id, history, keys and webhooks, and can be linked again.", refuses: []postern.Reason{postern.NotLinked}},

		"openLink":      {text: "Takes one of the plan's places until the attempt ends without a link. The code to show follows within seconds: read the attempt again, or follow its stream.", refuses: []postern.Reason{postern.DeviceLimit, postern.LinkAlreadyOpen, postern.DeviceAlreadyLinked}},
		"getLink":       {text: "The newest attempt with the code to show at this moment. Codes change every 20 to 60 seconds; qrExpiresAt says when."},
		"openLinkPage":  {text: "The page is for whoever holds the phone. The first browser whose user presses its button has it for itself; it lasts 15 minutes, and the attempt stays open as long. One page for an attempt: a new one takes the place of the one before.", refuses: []postern.Reason{postern.NoOpenLink}},
		"answerPasskey": {text: "An attempt becomes `passkey_required` when the network asks the account's owner for a passkey. A browser gives it to the network's own pages only, so this server cannot pass one on: the answer is 409 until it can, with `passkey-not-supported` for such an attempt and `no-passkey-wanted` for any other.", refuses: []postern.Reason{postern.NoOpenLink, postern.NoPasskeyWanted, postern.PasskeyNotSupported}},
		"cancelLink":    {text: "Ends the attempt and gives its place back.", refuses: []postern.Reason{postern.NoOpenLink}},
		"getLinkSVG":    {text: "The code of the open attempt as an image that can be scaled. Without a code to show the answer is 404."},
		"getLinkPNG":    {text: "The code of the open attempt as an image. Without a code to show the answer is 404."},
		"streamLink":    {text: "Server-sent events: \"code\" with the link attempt each time its code changes, \"passkey\" when the network asks for one, then \"ended\" with the final attempt, then the stream ends." + streamNote},

		"sendMessage":  {text: "Accepts a text message: when the answer is given, the message is durable, and one unit of the month's quota is spent. What becomes of it follows in events.", refuses: []postern.Reason{postern.NotFound, postern.ResourceNotAllowed, postern.QuotaExhausted, postern.DeviceNotConnected}},
		"listMessages": {text: "Messages in both directions, newest first.", refuses: []postern.Reason{postern.NotFound, postern.ResourceNotAllowed}},
		"getMessage":   {text: "One message with how far it got."},

		"listWebhooks":    {text: "The endpoints that the key may see, newest first."},
		"createWebhook":   {text: "A signed challenge is posted to the URL at once; the endpoint is active when it answers with it. The signing secret is shown in this answer only. A key limited to devices makes endpoints for its devices.", refuses: []postern.Reason{postern.NotFound, postern.ResourceNotAllowed, postern.EndpointLimit}},
		"getWebhook":      {text: "One endpoint with its state. Its secret is not shown again."},
		"deleteWebhook":   {text: "Nothing more is posted to it, and its deliveries are removed."},
		"updateWebhook":   {text: "A merge patch (RFC 7396). A new url is pendingUrl until it has answered the handshake; until then the old one stays in use. It needs messages:read and events:read too.", refuses: []postern.Reason{postern.MissingScope}},
		"verifyWebhook":   {text: "The handshake is made anew. An active endpoint gets nothing until it has answered.", refuses: []postern.Reason{postern.EndpointIsPaused}},
		"pauseWebhook":    {text: "Nothing more is posted until the endpoint is resumed.", refuses: []postern.Reason{postern.EndpointNotActive}},
		"resumeWebhook":   {text: "The endpoint is verified, and then gets what was recorded since the pause, at most 72 hours back."},
		"rotateSecret":    {text: "The answer is the only one that shows the secret. From the next delivery on it signs; until the overlap ends the old one signs too."},
		"testWebhook":     {text: "A webhook.test goes to this endpoint alone, signed and retried like any event. It is in the delivery log and not in the log of events.", refuses: []postern.Reason{postern.EndpointNotActive}},
		"createReplay":    {text: "Delivers also what the endpoint never got because it was not active. A replay goes on in the background, behind what is new; every event keeps its eventId and its bytes.", refuses: []postern.Reason{postern.EndpointNotActive, postern.ReplayLimit}},
		"getReplay":       {text: "How far the replay got."},
		"stopReplay":      {text: "It queues nothing more; what it has queued, a hundred or so, is still delivered."},
		"getWebhookStats": {text: "What the attempts of each hour came to, oldest first: the last 24 hours unless told, at most 31 days. Hours without attempts are left out."},
		"getDelivery":     {text: "Every attempt, newest first. event is what is posted; it is shown to keys with messages:read and events:read."},
		"retryDelivery":   {text: "Opens a new round of attempts with the same eventId and bytes; a delivery that is pending is tried at once.", refuses: []postern.Reason{postern.EndpointNotActive, postern.EventRemoved}},
		"listDeliveries":  {text: "What was or will be posted to the endpoint, newest first, with the outcome of the last attempt."},

		"listEvents":   {text: "All that happened, oldest first, so that a consumer that was away can catch up: an event that is recorded later is never before one that was shown. Without after and cursor it begins at the oldest event that is kept.", refuses: []postern.Reason{postern.NotFound, postern.ResourceNotAllowed, postern.EventsExpired}},
		"streamEvents": {text: "Server-sent events: each has the event's id, its type as name, and the event as data." + streamNote, refuses: []postern.Reason{postern.NotFound, postern.ResourceNotAllowed, postern.EventsExpired}},
		"getUsage":     {text: "What is used of the month's messages and of the linked devices. A key limited to devices sees what these use."},

		"scanInSandbox":    {text: "Scans the code of the open link attempt, and waits a moment until the device is connected.", refuses: []postern.Reason{postern.SandboxOff, postern.NoOpenLink, postern.NumberTaken}},
		"receiveInSandbox": {text: "The message takes the way of a real one: it is stored, and an event tells of it.", refuses: []postern.Reason{postern.SandboxOff, postern.NotLinked}},
		"confirmInSandbox": {text: "The receipt takes the way of a real one.", refuses: []postern.Reason{postern.SandboxOff, postern.NotLinked}},
		"breakInSandbox":   {text: "What follows is what a real network's misbehaviour would bring.", refuses: []postern.Reason{postern.SandboxOff, postern.NotLinked}},
		"showSandboxPhone": {text: "The messages that the simulated phone of the device's account shows.", refuses: []postern.Reason{postern.SandboxOff}},
	}
}
