package api

import (
	"net/http"
	"strings"

	"postern/internal/api/schema"
	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
)

// fromHuma converts huma's errors about parameters. Their texts come from the
// schema; the values beside them are dropped.
func fromHuma(m *huma.ErrorModel) error {
	if m.Status != http.StatusUnprocessableEntity || len(m.Errors) == 0 {
		return postern.Errorf(postern.MalformedRequest, "the parameters of the request cannot be read")
	}
	bad := make([]error, len(m.Errors))
	for i, e := range m.Errors {
		words := e.Message
		if !strings.HasPrefix(words, "expected ") && words != "invalid integer" {
			words = "the value cannot be accepted" // other texts may quote the value
		}
		if value, _ := e.Value.(string); strings.HasPrefix(e.Location, "query.") {
			words += plusHint(value)
		}
		bad[i] = postern.Invalid("/"+strings.Replace(e.Location, ".", "/", 1), "%s", words)
	}
	return schema.Merge(bad)
}
