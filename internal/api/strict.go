package api

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// checkJSON walks over a body beside its schema. It refuses, as malformed, what
// two readers could read differently: duplicate members, members in another
// case, broken UTF-8, NUL, text after the value, and deep nesting; and, naming
// the places, what the schema does not allow. Huma's own check is not used: it
// repeats values, and loses its way at a member whose name has a dot.
func (a *API) checkJSON(body []byte, s *huma.Schema) error {
	w := walker{dec: jsontext.NewDecoder(bytes.NewReader(body)), registry: a.huma.OpenAPI().Components.Schemas}
	switch err := w.value(s, ""); {
	case errors.Is(err, errEnough):
		return merge(w.bad)
	case err != nil:
		return malformed(err)
	}
	if _, err := w.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return postern.Errorf(postern.MalformedRequest, "the body has more than one JSON value")
	}
	return merge(w.bad)
}

// malformed keeps our own words and replaces the decoder's, which quote.
func malformed(err error) error {
	if own, ok := errors.AsType[*postern.Error](err); ok {
		return own
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return postern.Errorf(postern.MalformedRequest, "the body names a member twice, at byte %d", syntax.ByteOffset)
		}
		return postern.Errorf(postern.MalformedRequest, "the body is not JSON in UTF-8, at byte %d", syntax.ByteOffset)
	}
	return postern.Errorf(postern.MalformedRequest, "the body is not JSON in UTF-8")
}

// pointerTo is the step of a JSON pointer to a member (RFC 6901). A name that
// is no name is cut: a pointer tells a place and is no way to send text back.
func pointerTo(name string) string {
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	return "/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
