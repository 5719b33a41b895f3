package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"postern/internal/api/spec"
	"postern/internal/gateway"
	"postern/internal/obs"
	"postern/internal/postern"
	"postern/internal/problem"
	"postern/internal/ratelimit"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// files are the operations on files.
type files struct {
	gateway  *gateway.Gateway
	throttle *throttle
	uploads  *uploads
	problems *problem.Writer
	baseURL  string
}

// uploads bounds how many files arrive at a time, and how long one may take.
type uploads struct {
	*ratelimit.Places
	patience time.Duration // with a client that sends nothing
}

func newUploads() *uploads {
	each := fmt.Sprintf("the workspace has %d uploads in progress, which is the limit; wait for one to end", maxUploads)
	return &uploads{ratelimit.NewPlaces(maxUploads, maxAllUploads, tooMany(uploadRetry, each),
		tooMany(uploadRetry, "the server has as many uploads in progress as it can; try again later")), uploadWait}
}

type uploadInput struct {
	Filename string `query:"filename" doc:"Name of the file, at most 200 bytes. In a form, the name of its part counts instead, if it has one. Parts of a path and characters that are not safe in a name are removed." example:"invoice.pdf"`
}

func (h files) upload(ctx context.Context, q *request, in *uploadInput) (*made[postern.Media], error) {
	done, err := h.uploads.Take(string(q.caller.Workspace()))
	if err != nil {
		return nil, err
	}
	defer done()
	c, err := h.receive(ctx, q, in.Filename)
	if err != nil {
		q.w.Header().Set("Connection", "close") // the rest of the body is not read
	}
	return answerMade(c, err, func(m postern.Media) string { return mediaPath + string(m.ID) })
}

func (h files) receive(ctx context.Context, q *request, name string) (gateway.Created[postern.Media], error) {
	body, name, err := h.uploads.open(q.w, q.r, name)
	if err != nil {
		return gateway.Created[postern.Media]{}, err
	}
	return h.gateway.Media.Upload(ctx, q.caller, permitted{body, q.permit}, name, q.idem)
}

// permitted is a body that ends with an error if its sender may no longer send it.
type permitted struct {
	io.Reader
	permit func() error
}

func (p permitted) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if errors.Is(err, io.EOF) {
		err = cmp.Or(p.permit(), io.EOF)
	}
	return n, err
}

const mediaPath = "/v1/media/"

type fileInput struct {
	ID postern.MediaID `path:"id" doc:"Id of the file." example:"med_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

// MediaWithURL is a file with a link to its bytes.
type MediaWithURL struct {
	postern.Media

	URL          string       `json:"url,omitempty" format:"uri" doc:"Address of the file for everyone who knows it, for one hour; absent while the file is not ready." example:"https://postern.example.com/v1/media/med_01JD8Z3NDEKTSV4RRFFQ69G5FA/file?expires=1795251600&signature=9f86d081884c7d659a2feaa0c55ad015&workspace=ws_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	URLExpiresAt postern.Time `json:"urlExpiresAt,omitzero" format:"date-time" doc:"When url stops working; absent while the file is not ready." example:"2026-11-21T10:00:00.000Z"`
}

func (h files) get(ctx context.Context, q *request, in *fileInput) (*output[MediaWithURL], error) {
	m, err := h.gateway.Media.Get(ctx, q.caller, in.ID)
	if err != nil || m.Status != postern.MediaReady {
		return answer(MediaWithURL{Media: m}, err)
	}
	l, err := h.gateway.Media.Link(q.caller, in.ID)
	return answer(MediaWithURL{m, h.address(l), postern.Time(l.Expires * 1000)}, err)
}

// address returns the address at which [files.serveLink] serves the file of a link.
func (h files) address(l gateway.Link) string {
	return h.baseURL + mediaPath + string(l.ID) + "/file?" + url.Values{
		"workspace": {string(l.Workspace)}, "expires": {strconv.FormatInt(l.Expires, 10)}, "signature": {l.Signature},
	}.Encode()
}

func (h files) content(ctx context.Context, q *request, in *fileInput) (*huma.StreamResponse, error) {
	m, body, err := h.gateway.Media.Open(ctx, q.caller, in.ID)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer body.Close()
		r, w := humago.Unwrap(hc)
		h.serve(w, r, m, body)
	}}, nil
}

func (h files) delete(ctx context.Context, q *request, in *fileInput) (*nothing, error) {
	return nil, h.gateway.Media.Delete(ctx, q.caller, in.ID)
}

// serveLink serves the file of a link, without a key. Each request counts as one without a
// valid key. All links that are not valid get the same answer.
func (h files) serveLink(w http.ResponseWriter, r *http.Request) {
	q, query := obs.RequestOf(r.Context()), r.URL.Query()
	if err := h.throttle.strike(r.Context(), q.Client, w.Header()); err != nil {
		h.problems.Refuse(w, q, err)
		return
	}
	expires, _ := strconv.ParseInt(query.Get("expires"), 10, 64) // 0 has passed
	m, body, err := h.gateway.Media.OpenLink(r.Context(), gateway.Link{
		Workspace: postern.WorkspaceID(query.Get("workspace")), ID: postern.MediaID(r.PathValue("id")), Expires: expires,
		Signature: query.Get("signature"),
	})
	if err != nil {
		h.problems.Refuse(w, q, err)
		return
	}
	defer body.Close()
	h.serve(w, r, m, body)
}

// takesFile marks an operation whose body is a file, or a form with a file.
func takesFile(op *huma.Operation) {
	op.RequestBody = &huma.RequestBody{
		Description: "The bytes of a file, with any Content-Type, or a form with one part whose name is file.",
		Required:    true, Content: map[string]*huma.MediaType{spec.Bytes: {Schema: spec.File("The bytes of the file.")}},
	}
}

// givesFile marks an operation whose successful answer is a file.
func givesFile(op *huma.Operation) {
	gives(spec.Any)(op)
	op.Responses["200"].Content[spec.Any].Schema = spec.File("The bytes of the file.")
	op.Responses["206"] = &huma.Response{
		Description: "The part of the file that Range names.", Content: op.Responses["200"].Content,
	}
	op.Responses["304"] = &huma.Response{Description: "The file is the one that If-None-Match names."}
	for _, code := range []string{"200", "206", "304"} {
		op.Responses[code].Headers = map[string]*huma.Param{"ETag": {
			Description: "The SHA-256 of the file.", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
		}}
	}
}
