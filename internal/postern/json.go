package postern

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// wire contains the options for JSON that leaves the process: text without HTML escapes,
// maps in order, so that equal values have equal bytes, and null for nil.
var wire = json.JoinOptions( //nolint:gochecknoglobals // made once, never changed
	jsontext.AllowInvalidUTF8(true), json.Deterministic(true), json.FormatNilSliceAsNull(true),
	json.FormatNilMapAsNull(true))

// EncodeJSON is the only way to write JSON that leaves the process. Invalid UTF-8 in
// texts becomes U+FFFD.
func EncodeJSON(v any) ([]byte, error) { return json.Marshal(v, wire) }
