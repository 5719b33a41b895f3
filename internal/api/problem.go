package api

import (
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"strconv"
	"time"

	"postern/internal/postern"
)

// Problem is the body of every refusal (RFC 9457).
type Problem struct { //nolint:errname // this is its name in the OpenAPI document
	Type      string          `json:"type" format:"uri-reference" doc:"Ends in the precise reason, such as device-not-connected." example:"https://postern.example.com/problems/validation-failed"`
	Title     string          `json:"title" doc:"The reason in words." example:"Validation failed"`
	Status    int             `json:"status" doc:"The HTTP status." example:"422"`
	Detail    string          `json:"detail" doc:"What is wrong here, and the way out." example:"the request has members that cannot be accepted; see errors"`
	Code      string          `json:"code" doc:"The coarse, stable word to switch on." example:"VALIDATION_FAILED"`
	RequestID string          `json:"requestId" doc:"Also in the Request-Id header and in the server's log." example:"req_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Errors    []postern.Field `json:"errors,omitempty" nullable:"false" doc:"With a 422: the places in the body; a query parameter is /query/name."`

	header http.Header
}

func (p *Problem) Error() string { return p.Type }

// GetStatus is the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders are headers of the answer, such as Retry-After.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType is that of problem documents.
func (p *Problem) ContentType(string) string { return problemType }

const (
	problemType = "application/problem+json"
	problemPath = "/problems/"
	jsonType    = "application/json"
)

// kind is how a reason looks to a caller.
type kind struct {
	status int
	code   string
	title  string
}

// kinds is the one table from reason to answer.
func kinds() map[postern.Reason]kind {
	return map[postern.Reason]kind{
		postern.MalformedRequest:     {400, "BAD_REQUEST", "Malformed request"},
		postern.Unauthorized:         {401, "UNAUTHORIZED", "Unauthorized"},
		postern.InsecureTransport:    {403, "FORBIDDEN", "Insecure transport"},
		postern.PlanWithoutAPI:       {403, "FORBIDDEN", "The plan has no API access"},
		postern.MissingScope:         {403, "FORBIDDEN", "Missing scope"},
		postern.ResourceNotAllowed:   {403, "FORBIDDEN", "Resource not allowed"},
		postern.QuotaExhausted:       {403, "FORBIDDEN", "Quota exhausted"},
		postern.DeviceLimit:          {403, "FORBIDDEN", "Device limit reached"},
		postern.EndpointLimit:        {403, "FORBIDDEN", "Endpoint limit reached"},
		postern.NotFound:             {404, "NOT_FOUND", "Not found"},
		postern.SandboxOff:           {404, "NOT_FOUND", "The sandbox is off"},
		postern.MethodNotAllowed:     {405, "METHOD_NOT_ALLOWED", "Method not allowed"},
		postern.NotAcceptable:        {406, "NOT_ACCEPTABLE", "Not acceptable"},
		postern.DeviceNotConnected:   {409, "DEVICE_NOT_CONNECTED", "Device not connected"},
		postern.DeviceAlreadyLinked:  {409, "CONFLICT", "Device already linked"},
		postern.LinkAlreadyOpen:      {409, "CONFLICT", "Link attempt already open"},
		postern.NoOpenLink:           {409, "CONFLICT", "No open link attempt"},
		postern.NotLinked:            {409, "CONFLICT", "Device not linked"},
		postern.NoPasskeyWanted:      {409, "CONFLICT", "No passkey wanted"},
		postern.PasskeyNotSupported:  {409, "CONFLICT", "Passkeys are not supported"},
		postern.NumberTaken:          {409, "CONFLICT", "Number taken"},
		postern.EndpointNotActive:    {409, "CONFLICT", "Endpoint not active"},
		postern.EndpointIsPaused:     {409, "CONFLICT", "Endpoint paused"},
		postern.ReplayLimit:          {409, "CONFLICT", "Too many replays"},
		postern.EventRemoved:         {409, "CONFLICT", "Event removed"},
		postern.IdempotencyRunning:   {409, "IDEMPOTENCY_IN_PROGRESS", "The first request is still running"},
		postern.EventsExpired:        {410, "EVENTS_EXPIRED", "Events expired"},
		postern.PayloadTooLarge:      {413, "PAYLOAD_TOO_LARGE", "Payload too large"},
		postern.UnsupportedMediaType: {415, "UNSUPPORTED_MEDIA_TYPE", "Unsupported media type"},
		postern.IdempotencyReused:    {422, "IDEMPOTENCY_KEY_REUSED", "Idempotency key reused"},
		postern.ValidationFailed:     {422, "VALIDATION_FAILED", "Validation failed"},
		postern.RateLimited:          {429, "RATE_LIMITED", "Too many requests"},
		postern.HeadersTooLarge:      {431, "HEADERS_TOO_LARGE", "Headers too large"},
		postern.Internal:             {500, "INTERNAL", "Internal error"},
		postern.Unavailable:          {503, "UNAVAILABLE", "Unavailable"},
	}
}

// problem makes the answer to err and notes its reason for the log line. Only
// the words of a [postern.Error] reach the caller.
func (a *API) problem(q *request, err error) *Problem {
	e := a.refusal(q, err)
	k := a.kinds[e.Reason]
	q.reason = e.Reason
	p := &Problem{
		Type: a.baseURL + problemPath + string(e.Reason), Title: k.title, Status: k.status, Detail: e.Detail, Code: k.code,
		RequestID: q.id, header: http.Header{},
	}
	switch {
	case e.Reason == postern.ValidationFailed:
		p.Errors = e.Fields[:min(len(e.Fields), maxFields)]
	case e.Reason == postern.Unauthorized:
		p.header.Set("WWW-Authenticate", "Bearer")
	case e.RetryAfter > 0:
		p.header.Set("Retry-After", strconv.Itoa(seconds(e.RetryAfter)))
	}
	return p
}

// refusal finds the words for err, and logs what nobody outside may read.
func (a *API) refusal(q *request, err error) *postern.Error {
	e, known := errors.AsType[*postern.Error](err)
	if _, row := a.kinds[postern.ReasonOf(err)]; known && row && e.Reason != postern.Internal {
		if e.Reason != postern.Unavailable {
			return e
		}
		a.log.Warn("unavailable", "request_id", q.id, "error", err)
		return &postern.Error{Reason: e.Reason, Detail: e.Detail, RetryAfter: max(e.RetryAfter, retryStorage)}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) { // the caller went away, or the server stops
		return &postern.Error{Reason: postern.Unavailable, Detail: "the request was not finished; try again shortly", RetryAfter: retryStorage}
	}
	if err != nil {
		a.log.Error("internal error", "request_id", q.id, "error", err)
	}
	return postern.Errorf(postern.Internal, "something went wrong on our side; the operator finds the cause by the requestId")
}

// refuse writes the problem for err.
func (a *API) refuse(w http.ResponseWriter, q *request, err error) {
	p := a.problem(q, err)
	maps.Copy(w.Header(), p.header)
	body, err := postern.EncodeJSON(p)
	if err != nil {
		a.log.Error("encode a problem", "request_id", q.id, "error", err)
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the caller may be gone
}

// seconds rounds up: a caller that waits as told is not refused again.
func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }
