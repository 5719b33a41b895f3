package postern

import (
	"slices"
	"strings"
)

// EndpointStatus is the state of a webhook endpoint.
type EndpointStatus string

// The states of an endpoint.
const (
	EndpointPending  EndpointStatus = "pending"  // the handshake has not succeeded yet
	EndpointActive   EndpointStatus = "active"   // events are delivered
	EndpointFailed   EndpointStatus = "failed"   // the handshake failed permanently
	EndpointPaused   EndpointStatus = "paused"   // stopped by the user or the plan
	EndpointDisabled EndpointStatus = "disabled" // stopped after failures
)

// HandshakeTries is how often the handshake of an endpoint is attempted before it fails.
const HandshakeTries = 5

// Endpoint is a URL at which a workspace receives events.
type Endpoint struct {
	ID             EndpointID     `json:"id" doc:"Opaque id of the endpoint." example:"whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	URL            string         `json:"url" doc:"Where events are posted." example:"https://hooks.example.com/postern"`
	PendingURL     Maybe          `json:"pendingUrl" nullable:"true" doc:"A new URL that has not answered the challenge yet; url stays in use until it has." example:"https://hooks.example.com/new"`
	Description    string         `json:"description" doc:"A note for people." example:"orders service"`
	Events         []string       `json:"events" nullable:"false" doc:"Types of events that it receives: names, prefixes such as message.*, or *." example:"[\"*\"]"`
	DeviceIDs      []DeviceID     `json:"deviceIds" nullable:"true" doc:"Only events of these devices; null for all." example:"[\"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA\"]"`
	Headers        []string       `json:"headers" nullable:"false" doc:"Names of the fixed headers sent with every delivery. Their values are stored encrypted and never shown." example:"[\"X-Tenant\"]"`
	Handshake      string         `json:"handshake" enum:"echo,signed" doc:"How the endpoint proves itself in a verification: echo responds with the challenge; signed also with a signature of the challenge, which only a receiver that knows the secret can make." example:"echo"`
	Status         EndpointStatus `json:"status" enum:"pending,active,failed,paused,disabled" doc:"Only active endpoints receive events. pending: the verification has not succeeded yet; failed: it did not succeed; paused: stopped by a user or the plan; disabled: stopped after failures." example:"active"`
	StatusReason   Maybe          `json:"statusReason" nullable:"true" enum:"challenge,signature,dns,connect,tls,timeout,reset,redirect,blocked,status,body,user,plan,gone,failing" doc:"Why it is not active, or why pendingUrl was not accepted. challenge: the response did not contain the challenge; signature: its signature of the challenge was missing or wrong; dns, connect, tls, timeout, reset, redirect, blocked, status, body: how the POST failed; user, plan: who paused it; gone: it responded with 410; failing: no delivery succeeded for five days." example:"challenge"`
	SecretLastFour string         `json:"secretLastFour" doc:"Last four characters of the signing secret." example:"x9Q="`
	CreatedAt      Time           `json:"createdAt" format:"date-time" nullable:"true" doc:"When the endpoint was created." example:"2026-11-21T09:00:00.000Z"`
	VerifiedAt     Time           `json:"verifiedAt" format:"date-time" nullable:"true" doc:"When it last answered a verification; null before that." example:"2026-11-21T09:00:01.000Z"`
	MaxInFlight    int            `json:"maxInFlight" doc:"How many deliveries may run at once, 1 to 64." example:"8"`
	Ordered        bool           `json:"ordered" doc:"Whether the events of a chat are delivered in order."`

	Signatures []string `json:"signatures" nullable:"false" enum:"v1,v1a" doc:"How deliveries are signed: v1 is HMAC-SHA256 with the secret, v1a is ed25519 with publicKey." example:"[\"v1\"]"`
	PublicKey  Maybe    `json:"publicKey" nullable:"true" doc:"With v1a: whpk_ followed by the base64 form of the ed25519 public key."`

	WorkspaceID  WorkspaceID `json:"-"`
	Secret       []byte      `json:"-"` // sealed
	SigningKey   []byte      `json:"-"` // sealed; empty without v1a
	HeaderValues []byte      `json:"-"` // sealed JSON object of headers; empty without headers
	OldSecrets   []OldSecret `json:"-"` // newest first
	Attempts     int         `json:"-"` // of the handshake
	DueAt        Time        `json:"-"` // next try of the handshake
}

// OldSecret is a secret that a rotation has replaced. Until it ends, it signs beside its
// successor.
type OldSecret struct {
	Secret     []byte `json:"secret"`     // sealed
	SigningKey []byte `json:"signingKey"` // sealed; empty without v1a
	Until      Time   `json:"until"`
}

// The signature versions that an endpoint can request.
const (
	SignatureHMAC    = "v1"
	SignatureEd25519 = "v1a"
)

// The handshakes that an endpoint can require.
const (
	HandshakeEcho   = "echo"
	HandshakeSigned = "signed"
)

// Wants reports whether the endpoint subscribes to events of this type about this device.
func (e Endpoint) Wants(t EventType, device DeviceID) bool {
	if e.DeviceIDs != nil && !slices.Contains(e.DeviceIDs, device) {
		return false
	}
	return slices.ContainsFunc(e.Events, func(pattern string) bool { return MatchesEvent(pattern, t) })
}

// MatchesEvent reports whether a pattern, which is a name or a family such as
// "message.*", includes an event type.
func MatchesEvent(pattern string, t EventType) bool {
	if pattern == "*" {
		return t != WebhookDisabled // only endpoints that list it by name get it
	}
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return t != WebhookDisabled && strings.HasPrefix(string(t), prefix)
	}
	return pattern == string(t)
}

// ValidEventPattern reports whether a pattern is an event type, a family such as
// "message.*", or "*".
func ValidEventPattern(pattern string) bool {
	if pattern == "*" {
		return true
	}
	family, isFamily := strings.CutSuffix(pattern, "*")
	return slices.ContainsFunc(EventTypes(), func(t EventType) bool {
		if isFamily {
			return strings.HasSuffix(family, ".") && strings.HasPrefix(string(t), family)
		}
		return pattern == string(t)
	})
}

// DeliveryStatus is the state of a delivery.
type DeliveryStatus string

// The states of a delivery.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliverySucceeded DeliveryStatus = "succeeded"
	DeliveryExhausted DeliveryStatus = "exhausted" // every attempt failed; visible and replayable
)

// Delivery is the delivery of one event to one endpoint.
type Delivery struct {
	ID            DeliveryID     `json:"id" doc:"Opaque id of the delivery." example:"dlv_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	EndpointID    EndpointID     `json:"endpointId" doc:"The endpoint that it is posted to." example:"whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	EventID       EventID        `json:"eventId" doc:"The event; the header webhook-id of every attempt." example:"evt_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Type          EventType      `json:"type" doc:"Type of the event." example:"message.received"`
	DeviceID      DeviceID       `json:"deviceId" doc:"The device that the event is about; empty for webhook.verification, webhook.test and webhook.disabled." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Status        DeliveryStatus `json:"status" enum:"pending,succeeded,exhausted" doc:"pending: another attempt will be made, or the delivery waits until its endpoint is active again; succeeded: the endpoint accepted it; exhausted: every attempt failed, or the one attempt of a webhook.verification." example:"succeeded"`
	Attempts      int            `json:"attempts" doc:"Attempts made so far; for a webhook.verification, the number of the attempt in its verification." example:"1"`
	LastStatus    int            `json:"lastStatus" doc:"HTTP status of the last attempt; 0 if there was no response." example:"200"`
	LastReason    Maybe          `json:"lastReason" nullable:"true" enum:"dns,connect,tls,timeout,reset,redirect,blocked,status,body,challenge,signature" doc:"Why the last attempt failed. Only a webhook.verification fails with challenge (the response did not contain the challenge) or signature (its signature of the challenge was missing or wrong)." example:"status"`
	CreatedAt     Time           `json:"createdAt" format:"date-time" nullable:"true" doc:"When the delivery was queued." example:"2026-11-21T09:00:00.000Z"`
	LastAttemptAt Time           `json:"lastAttemptAt" format:"date-time" nullable:"true" doc:"When the last attempt began; null before the first." example:"2026-11-21T09:00:00.000Z"`
	NextAttemptAt Time           `json:"nextAttemptAt" format:"date-time" nullable:"true" doc:"When the next attempt is due; null when the delivery has ended, and while its endpoint is not active." example:"2026-11-21T09:00:05.000Z"`
	CompletedAt   Time           `json:"completedAt" format:"date-time" nullable:"true" doc:"When it succeeded or was exhausted; null while it is pending." example:"2026-11-21T09:00:00.000Z"`

	FirstAttemptAt Time `json:"-"`
}

// Attempt is one POST of a delivery.
type Attempt struct {
	Number     int    `json:"number" doc:"Number of the attempt, starting with 1, as in the header webhook-attempt; a manual retry continues the count." example:"1"`
	At         Time   `json:"at" format:"date-time" doc:"When it began." example:"2026-11-21T09:00:00.000Z"`
	DurationMs int    `json:"durationMs" doc:"How long it took, in milliseconds." example:"120"`
	Status     int    `json:"status" doc:"HTTP status of the response; 0 if there was none." example:"503"`
	Reason     Maybe  `json:"reason" nullable:"true" enum:"dns,connect,tls,timeout,reset,redirect,blocked,status,body,challenge,signature" doc:"Why it failed; null when it succeeded. Only a webhook.verification fails with challenge or signature." example:"status"`
	Answer     string `json:"answer" doc:"The first KiB of the response." example:"busy"`
}

// EndpointHour counts an endpoint's attempts in one hour, by outcome.
type EndpointHour struct {
	Hour      Time  `json:"hour" format:"date-time" doc:"When the hour begins, UTC." example:"2026-11-21T09:00:00.000Z"`
	Succeeded int64 `json:"succeeded" doc:"Attempts that succeeded." example:"120"`
	Failed    int64 `json:"failed" doc:"Attempts that failed." example:"3"`
	Exhausted int64 `json:"exhausted" doc:"Deliveries whose attempts were exhausted." example:"0"`
	MeanMs    int64 `json:"meanMs" doc:"How long an attempt took on average, in milliseconds." example:"42"`
	MaxMs     int64 `json:"maxMs" doc:"How long the slowest attempt took, in milliseconds." example:"310"`

	Took Took `json:"-"`
}

// Took counts attempts by how long they took: each number is that of a class of durations.
type Took [13]int64

// tookBounds are the upper bounds of the classes of [Took], in milliseconds. The last class has none.
var tookBounds = [len(Took{}) - 1]int64{2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000}

// Add counts an attempt that took a number of milliseconds.
func (t *Took) Add(ms int64) {
	class, _ := slices.BinarySearch(tookBounds[:], ms)
	t[class]++
}

// Sum is the number of attempts.
func (t Took) Sum() (all int64) {
	for _, n := range t {
		all += n
	}
	return all
}

// Percentile estimates, in milliseconds, what p percent of the attempts took at most, if the slowest of them took
// slowest milliseconds. It takes the attempts of a class to be spread evenly. ok is false if there are no attempts.
func (t Took) Percentile(p, slowest int64) (ms int64, ok bool) {
	var before int64
	rank := (t.Sum()*p + 99) / 100
	for class, n := range t {
		if before += n; n == 0 || before < rank {
			continue
		}
		low, high := int64(0), slowest
		if class > 0 {
			low = tookBounds[class-1]
		}
		if class < len(tookBounds) {
			high = min(high, tookBounds[class])
		}
		return low + (high-low)*(rank-before+n)/n, true
	}
	return 0, false
}
