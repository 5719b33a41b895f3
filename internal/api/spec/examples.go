package spec

import (
	_ "embed" // the examples
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// exampleULID is the part behind the prefix of every id in an example.
const exampleULID = "01JD8Z3NDEKTSV4RRFFQ69G5FA"

// The examples are requests that a test sends, and the answers and webhooks
// that it gets for them, with other ids and times. "make openapi" writes them
// anew.
var (
	//go:embed examples/operations.json
	operationExamples []byte
	//go:embed examples/webhooks.json
	webhookExamples []byte
)

// exampleBook is what the files of examples hold.
type exampleBook struct {
	operations map[string]exchange
	webhooks   map[string]json.RawMessage // by type of event
}

// exchange is a request and its answer; what has no body is left out. A body
// that is not JSON is a string.
type exchange struct {
	Request json.RawMessage `json:"request,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"`
}

func readExamples() (book exampleBook, err error) {
	if err := json.Unmarshal(operationExamples, &book.operations); err != nil {
		return book, fmt.Errorf("read the examples of operations: %w", err)
	}
	if err := json.Unmarshal(webhookExamples, &book.webhooks); err != nil {
		return book, fmt.Errorf("read the examples of webhooks: %w", err)
	}
	return book, nil
}

// show puts an operation's examples into the document.
func (b exampleBook) show(op *huma.Operation) {
	x := b.operations[op.OperationID]
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
