package spec

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"postern/internal/postern"
	"postern/internal/problem"

	"github.com/danielgtaylor/huma/v2"
)

// reasonsOf returns all reasons for which an operation refuses: those that follow
// from its form, and those of its row in [notes].
func reasonsOf(op *huma.Operation) []postern.Reason {
	list := []postern.Reason{
		postern.MalformedRequest, postern.Unauthorized, postern.InsecureTransport, postern.PlanWithoutAPI,
		postern.MissingScope, postern.ValidationFailed, postern.RateLimited, postern.HeadersTooLarge, postern.Internal,
		postern.Unavailable,
	}
	if len(AnswerTypes(op)) > 0 {
		list = append(list, postern.NotAcceptable)
	}
	if op.RequestBody != nil {
		list = append(list, postern.PayloadTooLarge, postern.UnsupportedMediaType)
	}
	if strings.Contains(op.Path, "{") {
		list = append(list, postern.NotFound, postern.ResourceNotAllowed)
	}
	if TakesKey(op) {
		list = append(list, postern.IdempotencyRunning, postern.IdempotencyReused)
	}
	list = append(list, notes()[op.OperationID].refuses...)
	slices.Sort(list)
	return slices.Compact(list)
}

// documentRefusals describes an answer for each status that an operation refuses
// with, and gives an example for each reason.
func documentRefusals(c *huma.Components, op *huma.Operation, problems *problem.Writer) {
	delete(op.Responses, "default") // huma's own; every answer is listed
	byStatus := map[int][]postern.Reason{}
	for _, r := range reasonsOf(op) {
		status := problem.Of(r).Status
		byStatus[status] = append(byStatus[status], r)
	}
	for status, reasons := range byStatus {
		op.Responses[strconv.Itoa(status)] = refusalOf(c, status, reasons, problems)
	}
}

// refusalOf describes the answer with one status. An answer with one reason is
// the same for all operations, and is described once.
func refusalOf(c *huma.Components, status int, reasons []postern.Reason, problems *problem.Writer) *huma.Response {
	r := describeRefusal(c, status, reasons, problems)
	if len(reasons) > 1 {
		return r
	}
	name := string(reasons[0])
	c.Responses[name] = r
	return &huma.Response{Ref: "#/components/responses/" + name}
}

func describeRefusal(
	c *huma.Components, status int, reasons []postern.Reason, problems *problem.Writer,
) *huma.Response {
	content := &huma.MediaType{
		Schema: c.Schemas.Schema(reflect.TypeFor[problem.Document](), true, ""), Examples: map[string]*huma.Example{},
	}
	r := &huma.Response{
		Description: http.StatusText(status) + ":", Headers: commonHeaders(),
		Content: map[string]*huma.MediaType{problem.ContentType: content},
	}
	for i, reason := range reasons {
		if i > 0 {
			r.Description += ","
		}
		r.Description += " `" + string(reason) + "`"
		c.Examples[string(reason)] = refusalExample(reason, problems)
		content.Examples[string(reason)] = &huma.Example{Ref: "#/components/examples/" + string(reason)}
	}
	for _, name := range headersOf(status) {
		r.Headers[name] = &huma.Param{Ref: "#/components/headers/" + name}
	}
	return r
}

// refusalExample is a problem document with this reason.
func refusalExample(reason postern.Reason, problems *problem.Writer) *huma.Example {
	e := problem.Explain(reason)
	p := problems.New(reason, e.Shown, "req_"+exampleULID)
	if reason == postern.ValidationFailed {
		p.Errors = []postern.Field{{
			Pointer: "/to",
			Detail:  "write the recipient as + and 7 to 15 digits, or use a chatId from an event",
		}}
	}
	return &huma.Example{Summary: p.Title, Description: e.Means, Value: p}
}

// AnswerTypes returns the media types of an operation's successful answer; none
// when it has no body, or is a file.
func AnswerTypes(op *huma.Operation) (list []string) {
	for t := range op.Responses[strconv.Itoa(op.DefaultStatus)].Content {
		if t != Any {
			list = append(list, t)
		}
	}
	return list
}

// TakesKey tells whether an operation honours idempotency keys.
func TakesKey(op *huma.Operation) bool {
	return slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool {
		return p.In == "header" && p.Name == IdempotencyKey
	})
}
