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
		"The request cannot be parsed.",
		"The body is not a single JSON value in UTF-8, contains a member twice or in another case, or nests too deeply; the query is not percent-encoded; a cursor was not returned by this list; or an Idempotency-Key is not 1 to 255 visible ASCII characters.",
		"Correct the request. Sending it again unchanged gives the same answer. Use cursors from nextCursor unchanged.",
		"the body is not JSON in UTF-8, at byte 17",
	},
	postern.Unauthorized: {
		"The server does not accept the API key.",
		"The key is missing, malformed, unknown, expired or revoked. The answer is the same in every case, so that nobody can probe for keys.",
		"Send Authorization: Bearer and a valid key. Do not retry with the same key.",
		"send Authorization: Bearer and an API key that is neither expired nor revoked",
	},
	postern.InsecureTransport: {
		"The request came in plain text from another machine.",
		"The server accepts plain HTTP only from its own machine, and HTTPS from everywhere.",
		"Use the https:// address. A key that was sent in plain text may have been read by others: rotate it.",
		"requests from other machines must use HTTPS; if this one contained a key, rotate it, because others may have read it",
	},
	postern.PlanWithoutAPI: {
		"The key is valid, but the workspace's plan does not include API access.",
		"The workspace is on the Free plan.",
		"Change the plan. The same key works from then on.",
		"the workspace's plan does not include the API; change the plan",
	},
	postern.MissingScope: {
		"The key is valid, but lacks a scope that this operation needs.",
		"The OpenAPI document lists the scopes of each operation; detail names the missing one.",
		"Create a key with the scope. The scopes of a key cannot be changed.",
		"this key lacks the scope messages:write; create a key that has it",
	},
	postern.ResourceNotAllowed: {
		"The resource exists, but this key may not use it.",
		"An id in the path, the query or the body belongs to another workspace, or to a device that is not in the key's list. Or a key that is limited to devices tries to create a device.",
		"Check that the id and the key belong together, or use a key that includes the device.",
		"this key may not use that device",
	},
	postern.QuotaExhausted: {
		"The workspace has sent all messages that its plan includes for the month.",
		"Each accepted POST /v1/messages counts as one message. A month is a calendar month in UTC; GET /v1/usage shows the usage.",
		"Wait for the next month, or change the plan. detail says when the month ends. Refused requests do not count.",
		"the plan's 3000 messages of this month are used up; the month ends at 2026-12-01T00:00:00.000Z",
	},
	postern.DeviceLimit: {
		"All linked devices of the plan are in use.",
		"A link attempt counts towards the limit from the moment it is opened. It stops counting when it ends without a link, or when the device is unlinked.",
		"Unlink or delete a device, or change the plan.",
		"the plan's 5 linked devices are in use; unlink one or change the plan",
	},
	postern.EndpointNotActive: {
		"The endpoint is not active, so this cannot be done.",
		"The endpoint is pending, failed, paused or disabled; detail says which.",
		"Resume or verify the endpoint, and wait until it is active.",
		"the endpoint is paused and gets nothing; verify or resume it first",
	},
	postern.EndpointIsPaused: {
		"The endpoint is paused, and cannot be verified.",
		"POST …/verify was sent for an endpoint that its owner or the plan has paused.",
		"Resume the endpoint. That verifies it too.",
		"the endpoint is paused; resume it instead",
	},
	postern.ReplayLimit: {
		"The endpoint already has the largest number of running replays.",
		"Ten replays of the endpoint are running.",
		"Wait until one ends, or stop one with DELETE /v1/replays/{id}.",
		"10 replays of this endpoint are running; wait for one or stop one",
	},
	postern.EventRemoved: {
		"The content of the event has been removed, so it cannot be delivered again.",
		"The retention period is over, or the device of the event was deleted.",
		"The content cannot be restored. GET /v1/messages may still have the message.",
		"the content of the event was removed, so it cannot be delivered again",
	},
	postern.EndpointLimit: {
		"The workspace has all webhook endpoints that its plan includes.",
		"An endpoint is created beyond the limit of the plan.",
		"Delete an endpoint, or change the plan.",
		"the plan's 5 webhook endpoints exist already; delete one or change the plan",
	},
	postern.NotFound: {
		"Nothing was found at this path or with this id.",
		"The id is unknown, what belongs to it does not exist (yet), or there is no such path.",
		"Check the id and the path. /v1/openapi.json lists all paths.",
		"there is no such device",
	},
	postern.SandboxOff: {
		"This server has no sandbox.",
		"A path under /v1/sandbox was called on a server that is connected to the real network.",
		"Use a server that was started with POSTERN_SANDBOX=on.",
		"this server is connected to the real network; start a server with POSTERN_SANDBOX=on",
	},
	postern.MethodNotAllowed: {
		"The path exists, but does not support this method.",
		"For example PUT on a path that supports GET and POST.",
		"Use one of the methods in the Allow header.",
		"this path supports GET, HEAD, POST",
	},
	postern.NotAcceptable: {
		"The Accept header excludes the media type of the answer.",
		"The header is present, and contains neither the type of the answer nor a range that includes it, such as */*.",
		"Leave the header out, or add the type that detail names.",
		"the Accept header excludes the type of the answer, application/json",
	},
	postern.DeviceNotConnected: {
		"The message cannot be sent, because the device is not connected at the moment.",
		"The status of the device is not connected, and the request does not set whenDisconnected to queue.",
		"Wait for the event device.connected, or send with whenDisconnected set to queue. A device whose status is unlinked, logged_out or banned must be linked first.",
		"the device is disconnected; wait until it is connected, or send with whenDisconnected set to queue",
	},
	postern.DeviceAlreadyLinked: {
		"The device is linked, or is being unlinked at the moment.",
		"A link attempt was opened for a device that has a link.",
		"Unlink the device first. After that, wait a few seconds.",
		"the device is linked; unlink it first",
	},
	postern.LinkAlreadyOpen: {
		"The device already has an open link attempt.",
		"A device can have one open attempt at a time. An attempt lasts a few minutes.",
		"Get the open attempt and show its code, or cancel it first.",
		"a link attempt is open for this device; read it or cancel it first",
	},
	postern.NoOpenLink: {
		"The device has no open link attempt.",
		"The attempt has ended: the device was linked, or the attempt was cancelled, refused or timed out.",
		"Get the newest attempt to see how it ended, and open a new one.",
		"no link attempt is open for this device; open one first",
	},
	postern.NoPasskeyWanted: {
		"The network did not ask for a passkey.",
		"A passkey was sent for a link attempt whose status is not passkey_required.",
		"Continue with the attempt as its status says.",
		"the link attempt is pending; the network did not ask for a passkey",
	},
	postern.PasskeyNotSupported: {
		"The server cannot pass a passkey on to the network.",
		"The status of the link attempt is passkey_required: the network asks the account's owner for a passkey, which a browser gives only to the network's own pages.",
		"Turn the passkey off in the app on the phone, and open a new attempt.",
		"a browser gives a passkey to the network's own pages only",
	},
	postern.NotLinked: {
		"The device is not linked.",
		"The operation needs the device's account: for example to unlink it, or in the sandbox.",
		"Link the device first.",
		"the device is unlinked; link it first",
	},
	postern.NumberTaken: {
		"The sandbox number belongs to another workspace.",
		"A number in the sandbox belongs to the first workspace that scans with it.",
		"Use another number, or leave the number out: the device has one of its own.",
		"that sandbox number belongs to another workspace; choose another one",
	},
	postern.IdempotencyRunning: {
		"The first request with this Idempotency-Key is still running.",
		"A retry arrived before the first request was answered.",
		"Try again shortly, with the same key and the same body.",
		"the first request with this Idempotency-Key is still running; try again shortly",
	},
	postern.IdempotencyReused: {
		"The Idempotency-Key was already used with another body.",
		"A key identifies one request to one path for 24 hours. Its retries must have exactly the same body.",
		"Use a new key for a new request.",
		"this Idempotency-Key was used with a different body; use a new key for a new request",
	},
	postern.EventsExpired: {
		"Events after the given position have been removed, so that reading on would skip them silently.",
		"after, Last-Event-ID or cursor refers to a position older than the retention period of events.",
		"Read the log again from its start, without after and cursor, and use GET /v1/messages to find what you missed.",
		"events after that point were older than the retention period and were removed; read the log again from its start, without after or cursor",
	},
	postern.PayloadTooLarge: {
		"The body, or a part of it, is too large.",
		"A body may have at most 1 MiB, a text 65,536 bytes in UTF-8, and metadata 50 members of 500 bytes each.",
		"Send less data.",
		"a text may be at most 65536 bytes long in UTF-8",
	},
	postern.UnsupportedMediaType: {
		"The body is not sent as JSON.",
		"Content-Type is missing, is given twice, or is not application/json in UTF-8; or the body has a Content-Encoding.",
		"Send Content-Type: application/json and the body without encoding.",
		"the body is not sent as JSON; send it with Content-Type: application/json",
	},
	postern.HeadersTooLarge: {
		"The headers of the request are too large.",
		"The request line and the headers together have more than 16 KiB.",
		"Send fewer or shorter headers. Check the cookies and the query.",
		"the headers are too large; together they may have at most 16384 bytes",
	},
	postern.ValidationFailed: {
		"The request contains values that cannot be accepted.",
		"A member is missing, unknown, of another type or out of range; or a query parameter is unknown, empty or given twice.",
		"errors lists the places: a JSON pointer into the body, or /query/ and the name of a parameter. Correct all of them.",
		"the request has members that cannot be accepted",
	},
	postern.RateLimited: {
		"Too many requests arrived in a short time.",
		"A key, or all keys of the workspace together, sent more requests per minute than the plan allows; the workspace has too many open streams; or too many requests without a valid key came from one address.",
		"Wait for the number of seconds in Retry-After. The headers RateLimit-Policy and RateLimit show what is left.",
		"the plan allows 300 requests per minute; wait for the time in Retry-After",
	},
	postern.Internal: {
		"An internal error occurred.",
		"The server failed to process the request. The cause is in its log, and never in the answer.",
		"Try again later with the same Idempotency-Key. If the problem persists, give the requestId to the operator.",
		"an internal error occurred; the operator can find its cause in the log by the requestId",
	},
	postern.Unavailable: {
		"The server cannot process the request at the moment.",
		"Its storage cannot be reached, or the server is starting or stopping.",
		"Try again after the number of seconds in Retry-After, with the same Idempotency-Key.",
		"the storage cannot be reached; try again shortly",
	},
}
