package problem

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"postern/internal/obs"
	"postern/internal/postern"
)

const (
	// ContentType is the media type of a problem document.
	ContentType = "application/problem+json"
	// Path is where the pages about reasons are.
	Path = "/problems/"

	maxFields    = 20              // places that one 422 names
	retryStorage = 5 * time.Second // when the storage is unreachable or the server stops
)

// Document is a problem document: the body of every refusal of the API (RFC 9457).
type Document struct { //nolint:errname // the name of a thing, not only an error
	Type      string          `json:"type" format:"uri-reference" doc:"Address of a page about the reason. It ends in the precise reason, such as device-not-connected." example:"https://postern.example.com/problems/validation-failed"`
	Title     string          `json:"title" doc:"The reason in a few words." example:"Validation failed"`
	Status    int             `json:"status" doc:"The HTTP status." example:"422"`
	Detail    string          `json:"detail" doc:"What is wrong with this request, and how to correct it." example:"the request has fields that cannot be accepted"`
	Code      string          `json:"code" doc:"A coarse, stable word to branch on." example:"VALIDATION_FAILED"`
	RequestID string          `json:"requestId" doc:"Id of the request; also in the Request-Id header and in the server's log." example:"req_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Errors    []postern.Field `json:"errors,omitempty" nullable:"false" doc:"With 422: the places that are wrong, as JSON pointers into the body. A query parameter is /query/name, and a part of the path is /path/name."`

	header http.Header
}

func (p *Document) Error() string { return p.Type }

// GetStatus returns the HTTP status.
func (p *Document) GetStatus() int { return p.Status }

// GetHeaders returns the headers that go with the document, such as Retry-After.
func (p *Document) GetHeaders() http.Header { return p.header }

// ContentType returns the media type of problem documents.
func (p *Document) ContentType(string) string { return ContentType }

// Writer makes problem documents and logs what they must not say.
type Writer struct {
	baseURL string
	log     *slog.Logger
	outage  *seldom
}

// NewWriter returns a Writer for a server that callers reach at baseURL, which
// starts the type of each document.
func NewWriter(baseURL string, log *slog.Logger) *Writer {
	return &Writer{strings.TrimRight(baseURL, "/"), log, &seldom{}}
}

// Document makes the answer to err and notes its reason on q for the log. Only
// the text of a [postern.Error] reaches the caller.
func (p *Writer) Document(q *obs.Request, err error) *Document {
	e := p.refusal(q, err)
	q.Reason = string(e.Reason)
	d := p.New(e.Reason, e.Detail, q.ID)
	switch {
	case e.Reason == postern.ValidationFailed:
		d.Errors = e.Fields[:min(len(e.Fields), maxFields)]
	case e.Reason == postern.Unauthorized:
		d.header.Set("WWW-Authenticate", "Bearer")
	case e.RetryAfter > 0:
		d.header.Set("Retry-After", strconv.Itoa(Seconds(e.RetryAfter)))
	}
	return d
}

// New makes the document of a reason without headers and places.
func (p *Writer) New(reason postern.Reason, detail, requestID string) *Document {
	k := table[reason]
	return &Document{
		Type: p.baseURL + Path + string(reason), Title: k.Title, Status: k.Status, Detail: detail, Code: k.Code,
		RequestID: requestID, header: http.Header{},
	}
}

// refusal finds the text for err, and logs what no caller may read.
func (p *Writer) refusal(q *obs.Request, err error) *postern.Error {
	e, known := errors.AsType[*postern.Error](err)
	if _, row := table[postern.ReasonOf(err)]; known && row && e.Reason != postern.Internal {
		if e.Reason != postern.Unavailable {
			return e
		}
		p.outage.warn(p.log, "unavailable", q.ID, err)
		return &postern.Error{Reason: e.Reason, Detail: e.Detail, RetryAfter: max(e.RetryAfter, retryStorage)}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) { // the caller or the server stops
		return &postern.Error{
			Reason: postern.Unavailable, Detail: "the request was not finished; try again shortly",
			RetryAfter: retryStorage,
		}
	}
	if machineFails(err) {
		p.outage.warn(p.log, "unavailable", q.ID, err)
		return &postern.Error{
			Reason: postern.Unavailable, Detail: "the server cannot use its disk or open files now; try again shortly",
			RetryAfter: retryStorage,
		}
	}
	if err != nil {
		p.log.Error("internal error", "request_id", q.ID, "error", err)
	}
	return postern.Errorf(postern.Internal,
		"an internal error occurred; the operator can find its cause in the log by the requestId")
}

// Refuse answers with the problem document of err.
func (p *Writer) Refuse(w http.ResponseWriter, q *obs.Request, err error) {
	d := p.Document(q, err)
	maps.Copy(w.Header(), d.header)
	body, err := postern.EncodeJSON(d)
	if err != nil {
		p.log.Error("encode a problem", "request_id", q.ID, "error", err)
	}
	w.Header().Set("Content-Type", ContentType)
	w.WriteHeader(d.Status)
	_, _ = w.Write(body) // the caller may be gone
}

// Seconds rounds up to at least 1: a caller that waits as told is not refused again.
func Seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }
