package api

import (
	_ "embed" // the examples
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// exampleULID is the part behind the prefix of every id in an example.
const exampleULID = "01JD8Z3NDEKTSV4RRFFQ69G5FA"

// examples are requests that a test sends, and the answers and the webhooks
// that it got, with other ids and times. "make openapi" writes them anew.
//
//go:embed examples.json
var examples []byte

// exampleBook is what the file of examples holds.
type exampleBook struct {
	Operations map[string]exchange        `json:"operations"`
	Webhooks   map[string]json.RawMessage `json:"webhooks"` // by type of event
}

// exchange is a request and its answer; what has no body is left out. A body
// that is not JSON is a string.
type exchange struct {
	Request json.RawMessage `json:"request,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"`
}

func readExamples() (book exampleBook, err error) {
	if err := json.Unmarshal(examples, &book); err != nil {
		return book, fmt.Errorf("read the examples: %w", err)
	}
	return book, nil
}

// show puts an operation's examples into the document.
func (b exampleBook) show(op *huma.Operation) {
	x := b.Operations[op.OperationID]
	if op.RequestBody != nil && x.Request != nil {
		for _, content := range op.RequestBody.Content {
			content.Example = x.Request
		}
	}
	for _, content := range op.Responses[strconv.Itoa(op.DefaultStatus)].Content {
		if x.Answer != nil {
			content.Example = x.Answer
		}
	}
}
