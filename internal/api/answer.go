package api

import (
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"

	"github.com/go-json-experiment/json/jsontext"
)

// List is a page of a list.
type List[T any] struct {
	Data       []T           `json:"data" nullable:"false" doc:"The items of this page."`
	NextCursor postern.Maybe `json:"nextCursor" nullable:"true" doc:"Pass this as cursor to get the next page; null on the last page. A page can be shorter than limit, or empty, and still have a next one."`
}

// Paging are the parameters of every list.
type Paging struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" doc:"How many to return; 50 by default. A page also ends before it would become larger than 1 MiB: it may be shorter, and nextCursor continues from there." example:"50"`
	Cursor string `query:"cursor" doc:"The nextCursor of the previous page."`
}

// PagingOfAll are the parameters of lists that are returned whole unless a limit is named.
type PagingOfAll struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" doc:"How many to return; all by default. The list is read from the network for each page, so what changes meanwhile can move entries from one page to another." example:"50"`
	Cursor string `query:"cursor" doc:"The nextCursor of the previous page."`
}

func (p PagingOfAll) page() paging.Page { return paging.Page{Cursor: p.Cursor, Limit: p.Limit} }

func (p Paging) page() paging.Page { return paging.Page{Cursor: p.Cursor, Limit: p.Limit} }

type output[T any] struct{ Body T }

type created[T any] struct {
	Replayed string `header:"Idempotent-Replayed" enum:"true" doc:"Present when this is the stored response to an earlier request with the same Idempotency-Key."`
	Body     T
}

// made is what an operation has created, and where it is.
type made[T any] struct {
	Location string `header:"Location" doc:"Where the new resource is." example:"/v1/devices/dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Replayed string `header:"Idempotent-Replayed" enum:"true" doc:"Present when this is the stored response to an earlier request with the same Idempotency-Key."`
	Body     T
}

type nothing struct{}

// noMembers is a body that may be left out and has no members.
type noMembers struct {
	_ struct{} `additionalProperties:"false"`
}

// UnmarshalJSONFrom skips an object that is known to be empty; the decoder
// refuses a type without members.
func (*noMembers) UnmarshalJSONFrom(d *jsontext.Decoder) error { return d.SkipValue() }

func answer[T any](v T, err error) (*output[T], error) {
	if err != nil {
		return nil, err
	}
	return &output[T]{v}, nil
}

func answerCreated[T any](c gateway.Created[T], err error) (*created[T], error) {
	if err != nil {
		return nil, err
	}
	out := &created[T]{Body: c.Value}
	if c.Replayed {
		out.Replayed = "true"
	}
	return out, nil
}

// answerMade is answerCreated for an operation that responds with 201.
func answerMade[T any](c gateway.Created[T], err error, where func(T) string) (*made[T], error) {
	out, err := answerCreated(c, err)
	if err != nil {
		return nil, err
	}
	return &made[T]{where(c.Value), out.Replayed, out.Body}, nil
}

// wholePage cuts a list that was read as a whole.
func wholePage[T any](
	g *gateway.Gateway, q *request, kind string, list []T, p paging.Page, err error,
) (paging.List[T], error) {
	if err != nil {
		return paging.List[T]{}, err
	}
	return gateway.WholePage(g, q.caller, kind, list, p)
}

func answerList[T any](l paging.List[T], err error) (*output[List[T]], error) {
	if err != nil {
		return nil, err
	}
	if l.Data == nil {
		l.Data = []T{}
	}
	return &output[List[T]]{List[T]{l.Data, postern.Maybe(l.Next)}}, nil
}
