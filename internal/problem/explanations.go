package problem

import "postern/internal/postern"

// Explanation tells a caller who meets a reason what it means. It is the content
// of the page that the type of a problem leads to.
type Explanation struct {
	Means string // what the refusal says
	When  string // in which cases it is given
	Do    string // how to get further
	Shown string // a detail, as a response may have it
}

// Explain returns the explanation of a reason; every reason has one.
func Explain(r postern.Reason) Explanation { return explanations[r] }

var explanations = map[postern.Reason]Explanation{ //nolint:gochecknoglobals // made once, never changed
	postern.MalformedRequest: {
		"The request cannot be parsed.",
		"The body is not a single JSON value in UTF-8, contains a field twice or with different capitalization, or is nested too deeply; the query is not percent-encoded; a cursor was not returned by this list; the request is not valid HTTP; or an Idempotency-Key is not 1 to 255 visible ASCII characters.",
		"Correct the request. Sending it again unchanged gives the same response. Use cursors exactly as they were returned in nextCursor.",
		"the body is not JSON in UTF-8, at byte 17",
	},
	postern.Unauthorized: {
		"The server does not accept the API key.",
		"The key is missing, malformed, unknown, expired or revoked. The response is the same in every case, so that nobody can probe for keys.",
		"Send Authorization: Bearer and a valid key. Do not retry with the same key.",
		"send the header Authorization: Bearer with an API key that is neither expired nor revoked",
	},
	postern.InsecureTransport: {
		"The request was sent unencrypted from another machine.",
		"The server accepts unencrypted HTTP only from its own machine. It accepts HTTPS from everywhere.",
		"Use the https:// address. Others may have read a key that was sent unencrypted, so rotate it.",
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
		"The OpenAPI document lists the scopes that each operation needs; detail names the missing one.",
		"Create a key with the scope. The scopes of a key cannot be changed.",
		"this key lacks the scope messages:write; create a key that has it",
	},
	postern.ResourceNotAllowed: {
		"The resource exists, but this key may not use it.",
		"An id in the path, the query or the body belongs to another workspace, or to a device that is not in the key's list. Or the key is limited to certain devices, and the request creates a device.",
		"Check that the id and the key belong to the same workspace, or use a key that has access to the device.",
		"this key may not use that device",
	},
	postern.QuotaExhausted: {
		"The workspace has sent all the messages that its plan includes for this month.",
		"Each accepted POST /v1/messages counts as one message. A month is a calendar month in UTC; GET /v1/usage shows the usage.",
		"Wait for the next month, or change the plan. detail says when the month ends. Refused requests do not count.",
		"the plan's 3000 messages of this month are used up; the month ends at 2026-12-01T00:00:00.000Z",
	},
	postern.DeviceLimit: {
		"The workspace already has as many linked devices as its plan allows.",
		"A link attempt counts towards the limit from the moment it is opened. It stops counting when it ends without a link, or when the device is unlinked.",
		"Unlink or delete a device, or change the plan.",
		"the plan allows 5 linked devices, and 5 are linked or being linked; unlink one or change the plan",
	},
	postern.EndpointNotActive: {
		"The endpoint is not active, so nothing can be sent to it.",
		"The status of the endpoint is pending, failed, paused or disabled; detail says which.",
		"If it is paused or disabled, resume it. If it is pending or failed, verify it. Then wait until it is active.",
		"the endpoint is paused, so nothing can be sent to it; resume it first",
	},
	postern.EndpointIsPaused: {
		"The endpoint is paused, so it cannot be verified.",
		"POST …/verify was sent for an endpoint that was paused on request or because of the plan.",
		"Resume the endpoint, which also verifies it.",
		"the endpoint is paused; resume it instead, which also verifies it",
	},
	postern.ReplayLimit: {
		"The endpoint already has as many running replays as are allowed.",
		"Ten replays of the endpoint are running.",
		"Wait until one ends, or stop one with DELETE /v1/replays/{id}.",
		"10 replays of this endpoint are running; wait for one or stop one",
	},
	postern.EventRemoved: {
		"The content of the event has been removed, so it cannot be delivered again.",
		"The event is older than the retention period, or its device was deleted.",
		"The content cannot be restored. GET /v1/messages may still return the message.",
		"the content of the event was removed, so it cannot be delivered again",
	},
	postern.NotRetriable: {
		"The delivery is a webhook.verification, which is not retried.",
		"Each verification has a new challenge, and is valid only once.",
		"Start a new verification with POST /v1/webhooks/{id}/verify. If the endpoint is paused or disabled, resume it instead.",
		"a verification is not retried, because each has a new challenge; verify the endpoint to start another",
	},
	postern.EndpointLimit: {
		"The workspace has reached its plan's limit of webhook endpoints.",
		"You tried to create one more endpoint than the plan allows.",
		"Delete an endpoint, or change the plan.",
		"the plan allows 5 webhook endpoints, and 5 exist; delete one or change the plan",
	},
	postern.ResourceLimit: {
		"The workspace has as many of these as its plan allows.",
		"You tried to create one more device, API key, member or invitation than the plan allows, or to store a file for which the plan has no room. Devices count whether they are linked or not; keys count until they expire or are revoked; files with the same content count once. A person can belong to at most 200 workspaces.",
		"Delete or revoke one that is no longer needed, or change the plan. detail says what the limit is. GET /v1/usage shows how many bytes of files are stored.",
		"the plan allows 5 devices, linked or not; delete one or change the plan",
	},
	postern.NotFound: {
		"Nothing was found at this path or with this id.",
		"The id is unknown, the resource has no such part yet (for example, a device without a link attempt), or the path does not exist.",
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
		"For example, PUT on a path that supports only GET and POST.",
		"Use one of the methods in the Allow header.",
		"this path supports GET, HEAD, POST",
	},
	postern.NotAcceptable: {
		"The Accept header excludes the media type of the response.",
		"The header is present, and contains neither the media type of the response nor a range that includes it, such as */*.",
		"Leave the header out, or add the type that detail names.",
		"the Accept header excludes the type of the response, application/json",
	},
	postern.DeviceNotConnected: {
		"The message cannot be sent because the device is not connected.",
		"The status of the device is not connected, and the request does not set whenDisconnected to queue.",
		"Wait for the event device.connected, or send with whenDisconnected set to queue. A device whose status is unlinked, logged_out or banned must be linked first.",
		"the device is disconnected; wait until it is connected, or send with whenDisconnected set to queue",
	},
	postern.NewChatsBlocked: {
		"The network does not let this account write to people who have never written to it.",
		"The network limits accounts that wrote to many strangers, or that people reported. This server has no message of the recipient to this account.",
		"Wait until newChats.allowed of the device is true, which device.unlimited reports. Replies, and messages to groups and to everybody who wrote before, still work.",
		"the network does not let this account start chats until 2026-11-22T09:00:00.000Z; messages to people who wrote to it still work",
	},
	postern.DeviceAlreadyLinked: {
		"The device is linked, or is being unlinked at the moment.",
		"A request tried to open a link attempt for a device that is already linked.",
		"Unlink the device, wait a few seconds, and try again.",
		"the device is linked; unlink it first",
	},
	postern.NumberAlreadyLinked: {
		"Another device of the workspace is linked to this number.",
		"The number of the link attempt belongs to a device that is linked. Each would get every message of the account. An attempt without a number ends with this reason once a phone has scanned the code.",
		"Use the device that has the number, or unlink it. If you want two devices with one number, open the attempt with allowSecond.",
		"another device of the workspace is linked to this number; unlink that one, or set allowSecond",
	},
	postern.LinkAlreadyOpen: {
		"The device already has an open link attempt.",
		"A device can have one open attempt at a time. An attempt lasts a few minutes.",
		"Get the open attempt and show its code, or cancel it and open a new one.",
		"a link attempt is already open for this device; use it or cancel it first",
	},
	postern.GroupNotAllowed: {
		"The account may not do this in the group.",
		"The account is not in the group, or the group allows this only to its administrators.",
		"Get the group and look at role, adminsEdit and announceOnly. An administrator can promote the account on a phone.",
		"the account is not in the group, or is not one of its administrators",
	},
	postern.InviteNotValid: {
		"The invitation to a group is not valid.",
		"The code is wrong, or an administrator has replaced the invitation.",
		"Ask an administrator of the group for the invitation as it is now.",
		"the invitation is not valid, or was replaced",
	},
	postern.NetworkRefused: {
		"The network refused the request.",
		"The network answered the request with an error that has no reason of its own. What it refused was not changed.",
		"Check the values. If they are right, try the same on the account's phone, whose app often says why.",
		"the network refused the request",
	},
	postern.NetworkTimeout: {
		"The network did not answer the request in time.",
		"The device is connected, but no answer arrived within 20 seconds. The request may still have had an effect at the network.",
		"Look at the state first, for example by getting the group, and then try again. A retry with the same Idempotency-Key does not repeat the request: it waits for the outcome of the first one.",
		"the network did not answer within 20 seconds; check whether the request had an effect before you repeat it",
	},
	postern.NoOpenLink: {
		"The device has no open link attempt.",
		"The attempt has ended: the device was linked, or the attempt was canceled, was refused or timed out.",
		"Get the newest attempt to see how it ended, then open a new one.",
		"no link attempt is open for this device; open one first",
	},
	postern.NoPasskeyWanted: {
		"The network did not ask for a passkey.",
		"A passkey was sent for a link attempt whose status is not passkey_required, or a second one.",
		"Get the attempt, and continue according to its status.",
		"the link attempt is pending; the network did not ask for a passkey",
	},
	postern.NothingToConfirm: {
		"The link attempt has no code to compare.",
		"A confirmation was sent for a link attempt whose status is not confirm, or a second one.",
		"Read the link attempt, and confirm only while its status is confirm and it has a confirmationCode.",
		"the link attempt is pending; it has no code to compare",
	},
	postern.MessageNotCancelable: {
		"The message cannot be canceled.",
		"Only a message that is scheduled or queued can be canceled, before its first attempt.",
		"Delete the message instead (DELETE /v1/messages/{id}): the network removes it from the recipient's phone.",
		"the message was sent already, or has ended",
	},
	postern.ActionNotPossible: {
		"The message does not allow this action.",
		"The action does not fit the message: for example, it was sent by somebody else, it was deleted, it is too old to be edited, or it is not a poll.",
		"Read the detail, and look at the message: its direction, type, status, editedAt and deletedAt.",
		"a message can be edited for 15 minutes",
	},
	postern.NotLinked: {
		"The device is not linked.",
		"The operation needs a linked device: for example, unlinking it, or controlling its simulated phone.",
		"Link the device first.",
		"the device is unlinked; link it first",
	},
	postern.IdempotencyRunning: {
		"The first request with this Idempotency-Key is still running.",
		"A retry arrived before the first request was answered.",
		"Try again shortly, with the same Idempotency-Key and the same body.",
		"the first request with this Idempotency-Key is still running; try again shortly",
	},
	postern.IdempotencyReused: {
		"This Idempotency-Key was already used with a different body.",
		"For 24 hours, an Idempotency-Key identifies one request to one path. Retries must send exactly the same body.",
		"Use a new Idempotency-Key for a new request.",
		"this Idempotency-Key was used with a different body; use a new one for a new request",
	},
	postern.EventsExpired: {
		"Events after the given position have been removed, so continuing from there would silently skip them.",
		"after, Last-Event-ID or cursor refers to a position older than the retention period of events.",
		"Read the log again from its start, without after or cursor, and use GET /v1/messages to find what you missed.",
		"events after that position were older than the retention period and were removed; read the log again from its start, without after or cursor",
	},
	postern.PayloadTooLarge: {
		"The body, or a part of it, is too large.",
		"A body may be at most 1 MiB, a text at most 65,536 characters, metadata at most 50 fields of 500 bytes each, and a file at most 100 MiB.",
		"Send less data.",
		"a text may have at most 65536 characters",
	},
	postern.UnsupportedMediaType: {
		"The body is not sent as JSON.",
		"Content-Type is missing, appears twice, or is not application/json in UTF-8 (or application/merge-patch+json for a PATCH, or any type for an upload); or the request has a Content-Encoding header.",
		"Send Content-Type: application/json, and do not compress the body.",
		"the body is not sent as JSON; send it with Content-Type: application/json",
	},
	postern.RangeNotSatisfiable: {
		"The file has no bytes in the range that was asked for.",
		"The Range header begins after the end of the file.",
		"Ask for a range within the size of the file, or leave the header out.",
		"the file has no bytes in that range",
	},
	postern.HeadersTooLarge: {
		"The headers of the request are too large.",
		"The request line and the headers together are larger than 16 KiB.",
		"Send fewer or shorter headers. Large cookies and long queries are common causes.",
		"the headers are too large; together they may be at most 16384 bytes",
	},
	postern.ValidationFailed: {
		"The request contains values that cannot be accepted.",
		"A field is missing, unknown, of the wrong type or out of range; or a query parameter is unknown, empty or repeated.",
		"errors lists the places: a JSON pointer into the body, /query/ and the name of a query parameter, or /path/ and that of a part of the path. Correct all of them.",
		"the request has fields that cannot be accepted",
	},
	postern.RateLimited: {
		"Too many requests arrived in a short time.",
		"A key, or all keys of the workspace together, sent more requests per minute than the plan allows; the workspace or the server has too many open streams or uploads; the workspace has too many responses that are not read yet; or too many requests without a valid key came from one address.",
		"Wait for the number of seconds in Retry-After. The headers RateLimit-Policy and RateLimit show how many requests are left.",
		"the plan allows 300 requests per minute; wait for the time in Retry-After",
	},
	postern.Internal: {
		"An internal error occurred.",
		"The server failed to process the request. The cause is in the server's log and is never included in the response.",
		"Try again later with the same Idempotency-Key. If the problem persists, give the requestId to the operator.",
		"an internal error occurred; the operator can find the cause in the server's log by the requestId",
	},
	postern.Unavailable: {
		"The server cannot process the request at the moment.",
		"Its storage cannot be reached, or the server is starting or stopping.",
		"Try again after the number of seconds in Retry-After, with the same Idempotency-Key.",
		"the storage cannot be reached; try again shortly",
	},
}
