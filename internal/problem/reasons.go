// Package problem says how each refusal looks from outside: its HTTP status,
// its code, its title and its explanation. The API, the dashboard and the front
// door use the same table. The package also writes problem documents (RFC 9457).
package problem

import (
	"iter"
	"maps"
	"slices"

	"postern/internal/postern"
)

// Kind is how a reason looks to a caller.
type Kind struct {
	Status int    // the HTTP status, 400 to 599
	Code   string // the coarse, stable word of the API, in capitals
	Title  string // in a problem document
	Page   string // the title of a page of the dashboard that shows it
}

// cannot is the page title of what is refused because of how things are now.
const cannot = "Cannot complete this action"

// table is the one place where a reason gets its status.
var table = map[postern.Reason]Kind{ //nolint:gochecknoglobals // made once, never changed
	postern.MalformedRequest:     {400, "BAD_REQUEST", "Malformed request", cannot},
	postern.Unauthorized:         {401, "UNAUTHORIZED", "Unauthorized", "Sign in first"},
	postern.InsecureTransport:    {403, "FORBIDDEN", "Insecure transport", "Not allowed"},
	postern.PlanWithoutAPI:       {403, "FORBIDDEN", "The plan has no API access", cannot},
	postern.MissingScope:         {403, "FORBIDDEN", "Missing scope", "Not allowed"},
	postern.ResourceNotAllowed:   {403, "FORBIDDEN", "Resource not allowed", "Not allowed"},
	postern.QuotaExhausted:       {403, "FORBIDDEN", "Quota exhausted", cannot},
	postern.DeviceLimit:          {403, "FORBIDDEN", "Device limit reached", cannot},
	postern.EndpointLimit:        {403, "FORBIDDEN", "Endpoint limit reached", cannot},
	postern.ResourceLimit:        {403, "FORBIDDEN", "Resource limit reached", cannot},
	postern.NotFound:             {404, "NOT_FOUND", "Not found", "Not found"},
	postern.SandboxOff:           {404, "NOT_FOUND", "The sandbox is off", "Not found"},
	postern.MethodNotAllowed:     {405, "METHOD_NOT_ALLOWED", "Method not allowed", cannot},
	postern.NotAcceptable:        {406, "NOT_ACCEPTABLE", "Not acceptable", cannot},
	postern.DeviceNotConnected:   {409, "DEVICE_NOT_CONNECTED", "Device not connected", cannot},
	postern.NewChatsBlocked:      {409, "NEW_CHATS_BLOCKED", "No new chats at the moment", cannot},
	postern.MessageNotCancelable: {409, "CONFLICT", "Message cannot be canceled", cannot},
	postern.ActionNotPossible:    {409, "CONFLICT", "Action not possible", cannot},
	postern.DeviceAlreadyLinked:  {409, "CONFLICT", "Device already linked", cannot},
	postern.NumberAlreadyLinked:  {409, "CONFLICT", "Number already linked", cannot},
	postern.LinkAlreadyOpen:      {409, "CONFLICT", "Link attempt already open", cannot},
	postern.GroupNotAllowed:      {409, "CONFLICT", "Not allowed in the group", cannot},
	postern.InviteNotValid:       {409, "CONFLICT", "Invitation not valid", cannot},
	postern.NetworkRefused:       {409, "CONFLICT", "Refused by the network", cannot},
	postern.NoOpenLink:           {409, "CONFLICT", "No open link attempt", cannot},
	postern.NotLinked:            {409, "CONFLICT", "Device not linked", cannot},
	postern.NoPasskeyWanted:      {409, "CONFLICT", "No passkey requested", cannot},
	postern.NothingToConfirm:     {409, "CONFLICT", "No code to compare", cannot},
	postern.EndpointNotActive:    {409, "CONFLICT", "Endpoint not active", cannot},
	postern.EndpointIsPaused:     {409, "CONFLICT", "Endpoint paused", cannot},
	postern.ReplayLimit:          {409, "CONFLICT", "Too many replays", cannot},
	postern.EventRemoved:         {409, "CONFLICT", "Event removed", cannot},
	postern.NotRetriable:         {409, "CONFLICT", "Delivery cannot be retried", cannot},
	postern.IdempotencyRunning:   {409, "IDEMPOTENCY_IN_PROGRESS", "The first request is still running", cannot},
	postern.EventsExpired:        {410, "EVENTS_EXPIRED", "Events expired", cannot},
	postern.PayloadTooLarge:      {413, "PAYLOAD_TOO_LARGE", "Payload too large", cannot},
	postern.UnsupportedMediaType: {415, "UNSUPPORTED_MEDIA_TYPE", "Unsupported media type", cannot},
	postern.RangeNotSatisfiable:  {416, "RANGE_NOT_SATISFIABLE", "Range not satisfiable", cannot},
	postern.IdempotencyReused:    {422, "IDEMPOTENCY_KEY_REUSED", "Idempotency key reused", cannot},
	postern.ValidationFailed:     {422, "VALIDATION_FAILED", "Validation failed", cannot},
	postern.RateLimited:          {429, "RATE_LIMITED", "Too many requests", "Too many requests"},
	postern.HeadersTooLarge:      {431, "HEADERS_TOO_LARGE", "Headers too large", cannot},
	postern.Internal:             {500, "INTERNAL", "Internal error", "Something went wrong"},
	postern.Unavailable:          {503, "UNAVAILABLE", "Unavailable", "Temporarily unavailable"},
	postern.NetworkTimeout:       {504, "NETWORK_TIMEOUT", "The network did not answer", "Temporarily unavailable"},
}

// Of returns the row of a reason; for a reason that has none, the row of
// [postern.Internal].
func Of(r postern.Reason) Kind {
	if k, ok := table[r]; ok {
		return k
	}
	return table[postern.Internal]
}

// All ranges over the reasons in alphabetical order, each with its row.
func All() iter.Seq2[postern.Reason, Kind] {
	return func(yield func(postern.Reason, Kind) bool) {
		for _, r := range slices.Sorted(maps.Keys(table)) {
			if !yield(r, table[r]) {
				return
			}
		}
	}
}
