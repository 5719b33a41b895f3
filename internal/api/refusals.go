package api

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
)

// reasonsOf are all reasons for which an operation refuses: those that follow
// from its form, and those of its row in [notes].
func (a *API) reasonsOf(op *huma.Operation) []postern.Reason {
	list := []postern.Reason{
		postern.MalformedRequest, postern.Unauthorized, postern.InsecureTransport, postern.PlanWithoutAPI, postern.MissingScope,
		postern.ValidationFailed, postern.RateLimited, postern.HeadersTooLarge, postern.Internal, postern.Unavailable,
	}
	if len(contentTypes(op)) > 0 {
		list = append(list, postern.NotAcceptable)
	}
	if op.RequestBody != nil {
		list = append(list, postern.PayloadTooLarge, postern.UnsupportedMediaType)
	}
	if strings.Contains(op.Path, "{") {
		list = append(list, postern.NotFound, postern.ResourceNotAllowed)
	}
	if takesKey(op) {
		list = append(list, postern.IdempotencyRunning, postern.IdempotencyReused)
	}
	list = append(list, notes()[op.OperationID].refuses...)
	slices.Sort(list)
	return slices.Compact(list)
}

// documentRefusals writes an answer for each status an operation refuses with,
// with an example for each reason.
func (a *API) documentRefusals(c *huma.Components, op *huma.Operation) {
	delete(op.Responses, "default") // huma's own; every answer is listed
	byStatus := map[int][]postern.Reason{}
	for _, r := range a.reasonsOf(op) {
		status := a.kinds[r].status
		byStatus[status] = append(byStatus[status], r)
	}
	for status, reasons := range byStatus {
		op.Responses[strconv.Itoa(status)] = a.refusalOf(c, status, reasons)
	}
}

// refusalOf describes one status. What has one reason is the same wherever it
// is, and is described once.
func (a *API) refusalOf(c *huma.Components, status int, reasons []postern.Reason) *huma.Response {
	r := a.describeRefusal(c, status, reasons)
	if len(reasons) > 1 {
		return r
	}
	name := string(reasons[0])
	c.Responses[name] = r
	return &huma.Response{Ref: "#/components/responses/" + name}
}

func (a *API) describeRefusal(c *huma.Components, status int, reasons []postern.Reason) *huma.Response {
	r := &huma.Response{Description: http.StatusText(status) + ":", Headers: maps.Clone(commonHeaders()), Content: map[string]*huma.MediaType{}}
	content := &huma.MediaType{Schema: c.Schemas.Schema(reflect.TypeFor[Problem](), true, ""), Examples: map[string]*huma.Example{}}
	r.Content[problemType] = content
	for i, reason := range reasons {
		if i > 0 {
			r.Description += ","
		}
		r.Description += " `" + string(reason) + "`"
		c.Examples[string(reason)] = a.refusalExample(reason)
		content.Examples[string(reason)] = &huma.Example{Ref: "#/components/examples/" + string(reason)}
	}
	for _, name := range headersOf(status) {
		r.Headers[name] = &huma.Param{Ref: "#/components/headers/" + name}
	}
	return r
}

// headersOf are the headers that only answers of this status have.
func headersOf(status int) []string {
	switch status {
	case http.StatusUnauthorized:
		return []string{"WWW-Authenticate"}
	case http.StatusMethodNotAllowed:
		return []string{"Allow"}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return []string{"Retry-After"}
	}
	return nil
}

// refusalExample is a problem document with this reason.
func (a *API) refusalExample(reason postern.Reason) *huma.Example {
	k, e := a.kinds[reason], explanations()[reason]
	p := Problem{
		Type: a.baseURL + problemPath + string(reason), Title: k.title, Status: k.status, Detail: e.Shown, Code: k.code,
		RequestID: "req_" + exampleULID,
	}
	if reason == postern.ValidationFailed {
		p.Errors = []postern.Field{{Pointer: "/to", Detail: "write the recipient as + and 7 to 15 digits, or use a chatId from an event"}}
	}
	return &huma.Example{Summary: k.title, Description: e.Means, Value: p}
}
