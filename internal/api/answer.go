package api

import (
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"

	"github.com/go-json-experiment/json/jsontext"
)

// List is a part of a list.
type List[T any] struct {
	Data       []T           `json:"data" nullable:"false"`
	NextCursor postern.Maybe `json:"nextCursor" nullable:"true" doc:"Give it as cursor to get the next part; null on the last one."`
}

// Paging are the parameters of every list.
type Paging struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" doc:"How many to give; 50 unless told." example:"50"`
	Cursor string `query:"cursor" doc:"The nextCursor of the part before."`
}

func (p Paging) page() paging.Page { return paging.Page{Cursor: p.Cursor, Limit: p.Limit} }

type output[T any] struct{ Body T }

type created[T any] struct {
	Replayed string `header:"Idempotent-Replayed" enum:"true" doc:"The answer was given before, to the same Idempotency-Key."`
	Body     T
}

type nothing struct{}

// noMembers is a body that may be left out and has nothing to say.
type noMembers struct {
	_ struct{} `additionalProperties:"false"`
}

// UnmarshalJSONFrom reads an object that was found to be empty; the decoder
// takes a type without members for a mistake.
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

func answerList[T any](l paging.List[T], err error) (*output[List[T]], error) {
	if err != nil {
		return nil, err
	}
	if l.Data == nil {
		l.Data = []T{}
	}
	return &output[List[T]]{List[T]{l.Data, postern.Maybe(l.Next)}}, nil
}
