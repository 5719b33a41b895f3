package problem

import "postern/internal/postern"

// Explanation tells a caller who meets a reason what it means. It is the content
// of the page that the type of a problem leads to.
type Explanation struct {
	Means string // what the refusal says
	When  string // in which cases it is given
	Do    string // how to get further
	Shown string // a detail, as an answer may have it
}

// Explain returns the explanation of a reason; every reason has one.
func Explain(r postern.Reason) Explanation { return explanations[r] }

var explanations = map[postern.Reason]Explanation{ //nolint:gochecknoglobals // made once, never changed
	postern.MalformedRequest: {
		"The request cannot be read.",
		"The body is not one JSON value in UTF-8, names a member twice or in another case, or nests too deeply; the query is not percent-encoded; a cursor is not one that this list gave; an Idempotency-Key is not 1 to 255 visible ASCII characters.",
		"Correct the request; sending it again as it is gives the same answer. Take cursors from nextCursor, unchanged.",
		"the body is not JSON in UTF-8, at byte 17",
	},
	postern.Unauthorized: {
		"The server does not accept the API key.",
		"The key is missing, malformed, unknown, expired or revoked. The answer is the same in each case, so that nobody can try keys out.",
		"Send Authorization: Bearer and a valid key. Do not retry with the same one.",
		"send Authorization: Bearer and an API key that is neither expired nor revoked",
	},
	postern.InsecureTransport: {
		"The request came in plain text from another machine.",
		"The server takes plain HTTP from its own machine only, and HTTPS from everywhere else.",
		"Use the https:// address. A key that was sent in plain text may have been read on its way: rotate it.",
		"requests from elsewhere come by HTTPS only; a key that was sent in plain text may have been read on its way: rotate it",
	},
	postern.PlanWithoutAPI: {
		"The key is valid, but the workspace's plan has no API access.",
		"The workspace is on the Free plan.",
		"Change the plan. The same key works from then on.",
		"the workspace's plan does not include the API; change the plan",
	},
	postern.MissingScope: {
		"The key is valid, but lacks a scope that this operation needs.",
		"Each operation names its scopes in the OpenAPI document; detail names the one that is missing.",
		"Make a key that has the scope. Scopes of a key do not change.",
		"this key lacks the scope messages:write; create a key that has it",
	},
	postern.ResourceNotAllowed: {
		"The thing exists, and this key may not use it.",
		"An id in the path, the query or the body belongs to another workspace, or to a device outside the key's list; or a key limited to devices tries to create one.",
		"Check that the id and the key belong together, or use a key with that device.",
		"this key may not use that device",
	},
	postern.QuotaExhausted: {
		"The workspace has sent all messages that its plan has for the month.",
		"Each accepted POST /v1/messages is one message. A month is a UTC calendar month; GET /v1/usage tells what is used.",
		"Wait for the next month, which detail names, or change the plan. A refused request costs nothing.",
		"the plan's 3000 messages of this month are used up; the month ends at 2026-12-01T00:00:00.000Z",
	},
	postern.DeviceLimit: {
		"All linked devices of the plan are in use.",
		"Opening a link attempt takes one of the plan's devices until it ends without a link, or the device is unlinked.",
		"Unlink or delete a device, or change the plan.",
		"the plan's 5 linked devices are in use; unlink one or change the plan",
	},
	postern.EndpointNotActive: {
		"The endpoint gets nothing now, so this cannot be done.",
		"It is pending, failed, paused or disabled; detail says which.",
		"Resume or verify the endpoint, and wait until it is active.",
		"the endpoint is paused and gets nothing; verify or resume it first",
	},
	postern.EndpointIsPaused: {
		"The endpoint is paused; it is not asked for a handshake.",
		"POST …/verify was sent for an endpoint that its owner or the plan has paused.",
		"Resume it: that verifies it too.",
		"the endpoint is paused; resume it instead",
	},
	postern.ReplayLimit: {
		"The endpoint has as many replays as can run at a time.",
		"Ten replays of one endpoint are running.",
		"Wait for one to end, or stop one with DELETE /v1/replays/{id}.",
		"10 replays of this endpoint are running; wait for one or stop one",
	},
	postern.EventRemoved: {
		"The event's content is kept no more, so that it cannot be delivered again.",
		"The retention has removed it, or its device was deleted.",
		"Nothing brings it back. GET /v1/messages may still hold the message.",
		"the event is kept no more, so that it cannot be delivered again",
	},
	postern.EndpointLimit: {
		"All webhook endpoints of the plan exist already.",
		"An endpoint is created beyond the plan's number of them.",
		"Delete an endpoint, or change the plan.",
		"the plan's 5 webhook endpoints exist already; delete one or change the plan",
	},
	postern.NotFound: {
		"There is nothing of that name.",
		"The id exists nowhere, what belongs to it is not there (yet), or there is no such route.",
		"Check the id and the path. The routes are in /v1/openapi.json.",
		"there is no such device",
	},
	postern.SandboxOff: {
		"This server has no sandbox.",
		"A route under /v1/sandbox is called on a server that is connected to the real network.",
		"Use a server that was started with POSTERN_SANDBOX=on.",
		"this server is connected to the real network; start a server with POSTERN_SANDBOX=on",
	},
	postern.MethodNotAllowed: {
		"The path exists, but does not take this method.",
		"For example PUT on a path that has GET and POST.",
		"Use one of the methods in the Allow header.",
		"this path takes GET, HEAD, POST",
	},
	postern.NotAcceptable: {
		"The Accept header excludes the only type that this operation answers with.",
		"The header is given, and neither the type itself nor a range such as */* that includes it is in it.",
		"Leave Accept out, or add the type that detail names.",
		"this route answers with application/json",
	},
	postern.DeviceNotConnected: {
		"A message cannot be sent, since the device's session is not live at this moment.",
		"The device has another status than connected, and the request does not say whenDisconnected: queue.",
		"Wait for the event device.connected, or send with whenDisconnected: queue. A device that is unlinked, logged_out or banned must be linked first.",
		"the device is disconnected; wait until it is connected, or send with whenDisconnected set to queue",
	},
	postern.DeviceAlreadyLinked: {
		"The device is linked, or is just being unlinked.",
		"A link attempt is opened for a device that has a link.",
		"Unlink the device first. After an unlink, wait a few seconds.",
		"the device is linked; unlink it first",
	},
	postern.LinkAlreadyOpen: {
		"A link attempt is open for this device already.",
		"There is one open attempt for a device at a time; it lasts for some minutes.",
		"Read the open attempt and show its code, or cancel it first.",
		"a link attempt is open for this device; read it or cancel it first",
	},
	postern.NoOpenLink: {
		"No link attempt is open for this device.",
		"The attempt has ended: it was linked, cancelled, refused, or its time was over.",
		"Read the newest attempt for its end, and open another one.",
		"no link attempt is open for this device; open one first",
	},
	postern.NoPasskeyWanted: {
		"The network did not ask for a passkey.",
		"A passkey is given to a link attempt that is not passkey_required.",
		"Go on with the attempt as its status says.",
		"the link attempt is pending; the network did not ask for a passkey",
	},
	postern.PasskeyNotSupported: {
		"The server cannot pass a passkey on to the network.",
		"The link attempt is passkey_required: the network wants the passkey of the account's owner, which a browser gives to the network's own pages only.",
		"Turn the passkey off in the app on the phone, and open another attempt.",
		"a browser gives a passkey to the network's own pages only",
	},
	postern.NotLinked: {
		"The device has no link.",
		"Something is asked of a device that needs its account: to unlink it, or a step in the sandbox.",
		"Link the device first.",
		"the device is unlinked; link it first",
	},
	postern.NumberTaken: {
		"The sandbox number belongs to another workspace.",
		"A sandbox number is for the first workspace that scans with it.",
		"Take another number, or leave it out: the device has one of its own.",
		"that sandbox number belongs to another workspace; choose another one",
	},
	postern.IdempotencyRunning: {
		"The first request with this Idempotency-Key is still running.",
		"A retry came before the first request had its answer.",
		"Try again shortly, with the same key and the same body.",
		"the first request with this Idempotency-Key is still running; try again shortly",
	},
	postern.IdempotencyReused: {
		"The Idempotency-Key was used with another body.",
		"A key names one request to one path for 24 hours; its retries have the very same body.",
		"Use a new key for a new request.",
		"this Idempotency-Key was used with a different body; use a new key for a new request",
	},
	postern.EventsExpired: {
		"Events behind the given place were removed: reading on would leave a silent gap.",
		"after, Last-Event-ID or cursor names a place older than the time that events are kept.",
		"Read the log again from its start, without after and cursor, and compare what you missed with GET /v1/messages.",
		"events after that point were older than the retention period and were removed; read the log again from its start, without after or cursor",
	},
	postern.PayloadTooLarge: {
		"The body, or a part of it, is larger than allowed.",
		"A body has at most 1 MiB, a text 65,536 bytes in UTF-8, metadata 50 members of 500 bytes.",
		"Send less.",
		"a text may be at most 65536 bytes long in UTF-8",
	},
	postern.UnsupportedMediaType: {
		"The body is not sent as JSON.",
		"Content-Type is missing, is given twice, is not application/json in UTF-8, or the body has a Content-Encoding.",
		"Send Content-Type: application/json and the plain body.",
		"send the body with Content-Type: application/json",
	},
	postern.HeadersTooLarge: {
		"The headers of the request are too large.",
		"The request line and the headers have more than 16 KiB together.",
		"Send fewer or shorter headers; check cookies and the query.",
		"the headers have at most 16384 bytes",
	},
	postern.ValidationFailed: {
		"The request can be read, but has values that cannot be accepted.",
		"A member is missing, unknown, of another type or out of range; a query parameter is unknown, empty or given twice.",
		"errors names the places: a JSON pointer into the body, or /query/ and the name of a parameter. Correct them all.",
		"the request has members that cannot be accepted",
	},
	postern.RateLimited: {
		"Too many requests came in too short a time.",
		"A key, or all keys of the workspace together, made more requests a minute than the plan has; the workspace has too many streams open; or too many keys that are not accepted came from one address.",
		"Wait for as many seconds as Retry-After says. The headers RateLimit-Policy and RateLimit tell what is left.",
		"the plan allows 300 requests a minute; wait as Retry-After says",
	},
	postern.Internal: {
		"Something went wrong on our side.",
		"The server met a mistake of its own. The cause is in its log, never in the answer.",
		"Try again later, with the same Idempotency-Key. If it stays, give the requestId to the operator.",
		"something went wrong on our side; the operator finds the cause by the requestId",
	},
	postern.Unavailable: {
		"The server cannot serve the request at this moment.",
		"Its storage is away, or it is being stopped or started.",
		"Try again after as many seconds as Retry-After says, with the same Idempotency-Key.",
		"the storage cannot be reached; try again shortly",
	},
}
