package api

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"postern/internal/api/schema"
	"postern/internal/api/spec"
	"postern/internal/gateway"
	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
)

// checkBody reads the body of an operation that takes one, checks it against its
// schema, and leaves it for huma to decode. It returns the hash of the body.
func (a *API) checkBody(w http.ResponseWriter, r *http.Request, op *huma.Operation) (hash [32]byte, err error) {
	if op.RequestBody == nil || spec.TakesFile(op) {
		return hash, nil
	}
	body, err := readBody(w, r)
	if err != nil {
		return hash, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch {
	case len(body) == 0 && op.RequestBody.Required:
		return hash, postern.Errorf(postern.MalformedRequest, "the body is empty; send a JSON object")
	case len(body) > 0:
		if err := checkType(r.Header, spec.BodyTypes(op)); err != nil {
			return hash, err
		}
		r.Header.Set("Content-Type", spec.JSON) // decided; huma knows this one spelling only
		err = a.bodies.Check(body, op.RequestBody.Content[spec.JSON].Schema)
	}
	return sha256.Sum256(body), err
}

// prepareBodies prepares the checks of all bodies. It fails for a schema that
// promises more than is checked.
func (a *API) prepareBodies() error {
	for path, item := range a.huma.OpenAPI().Paths {
		for method, op := range spec.Operations(item) {
			if op.RequestBody == nil || spec.TakesFile(op) {
				continue
			}
			if err := a.bodies.Prepare(op.RequestBody.Content[spec.JSON].Schema); err != nil {
				return fmt.Errorf("%s %s: %w", method, path, err)
			}
		}
	}
	return nil
}

// readBody reads at most [MaxBodyBytes], and waits at most [bodyTimeout].
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	ctl := http.NewResponseController(w)
	_ = ctl.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every transport has deadlines
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBodyBytes+1))
	_ = ctl.SetReadDeadline(time.Time{}) // one left behind would end a handler that takes longer
	switch {
	case len(body) > MaxBodyBytes:
		w.Header().Set("Connection", "close") // the rest is not read
		return nil, postern.Errorf(postern.PayloadTooLarge,
			"the body is too large; a body may have at most %d bytes", MaxBodyBytes)
	case err != nil:
		w.Header().Set("Connection", "close")
		return nil, postern.Errorf(postern.MalformedRequest,
			"the body did not arrive completely within %d seconds", int(bodyTimeout.Seconds()))
	}
	return body, nil
}

// checkType refuses what is not plain JSON in UTF-8, of one of the types.
func checkType(h http.Header, types []string) error {
	if err := plainCoding(h); err != nil {
		return err
	}
	bad := postern.Errorf(postern.UnsupportedMediaType,
		"the body is not sent as JSON; send it with Content-Type: %s", strings.Join(types, " or "))
	if len(h["Content-Type"]) != 1 {
		return bad
	}
	name, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || !slices.Contains(types, name) {
		return bad
	}
	if charset, given := params["charset"]; given && !strings.EqualFold(charset, "utf-8") {
		return bad
	}
	return nil
}

// plainCoding refuses a body that is compressed.
func plainCoding(h http.Header) error {
	for _, coding := range h["Content-Encoding"] {
		if !strings.EqualFold(strings.TrimSpace(coding), "identity") {
			return postern.Errorf(postern.UnsupportedMediaType,
				"the body is encoded; send it without a Content-Encoding")
		}
	}
	return nil
}

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

// member is one member of a merge patch (RFC 7396): left out, null, or a value.
type member[T any] struct {
	given bool
	value *T
}

// UnmarshalJSON notes that the member was given.
func (m *member[T]) UnmarshalJSON(b []byte) error {
	m.given, m.value = true, nil
	if string(b) == "null" {
		return nil
	}
	m.value = new(T)
	return json.Unmarshal(b, m.value)
}

// Schema returns the schema of the value, or null.
func (member[T]) Schema(r huma.Registry) *huma.Schema {
	s := huma.SchemaFromType(r, reflect.TypeFor[T]())
	s.Nullable = true
	return s
}

func (m member[T]) change() gateway.Change[T] {
	return gateway.Change[T]{Given: m.given, Value: m.value}
}

// changed converts a member whose parts are changes themselves.
func changed[T, C any](m member[T], parts func(T) C) gateway.Change[C] {
	if m.value == nil {
		return gateway.Change[C]{Given: m.given}
	}
	return gateway.Change[C]{Given: true, Value: new(parts(*m.value))}
}
