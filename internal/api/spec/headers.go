package spec

import (
	"maps"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// documentHeaders adds the headers that every answer has. Refusals have them already.
func documentHeaders(op *huma.Operation) {
	for code, r := range op.Responses {
		if code >= "400" {
			continue
		}
		if r.Headers == nil {
			r.Headers = map[string]*huma.Param{}
		}
		maps.Copy(r.Headers, commonHeaders())
	}
}

// commonHeaders are those of every answer, as references.
func commonHeaders() map[string]*huma.Param {
	list := map[string]*huma.Param{}
	for _, name := range []string{"Request-Id", "RateLimit-Policy", "RateLimit"} {
		list[name] = &huma.Param{Ref: "#/components/headers/" + name}
	}
	return list
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

// headers describes the headers that many answers have.
func headers() map[string]*huma.Param {
	text := func(doc, pattern, example string) *huma.Param {
		return &huma.Param{
			Description: doc, Required: true, Schema: &huma.Schema{Type: huma.TypeString, Pattern: pattern},
			Example: example,
		}
	}
	return map[string]*huma.Param{
		"Request-Id":       text("Identifies the request in the server's log.", `^req_[0-9A-Z]{26}$`, "req_"+exampleULID),
		"RateLimit-Policy": text(`The rate: "default";q=300;w=60 means 300 requests in 60 seconds, for the key and for all keys of the workspace together. In a response to a request without a valid key, the policy is "address", which counts refused credentials from the caller's address.`, `^"(default|address)";q=[0-9]+;w=60$`, `"default";q=300;w=60`),
		"RateLimit":        text(`What is left: "default";r=42;t=17 means 42 requests now, and the full rate again in 17 seconds.`, `^"(default|address)";r=[0-9]+;t=[0-9]+$`, `"default";r=42;t=17`),
		"Retry-After":      text("How many seconds to wait.", `^[1-9][0-9]*$`, "17"),
		"WWW-Authenticate": text("How to authenticate.", `^Bearer$`, "Bearer"),
	}
}
