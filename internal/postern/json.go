package postern

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// wire is how JSON for the outside is written: text as it came in, without the
// escapes for HTML; maps in order, so that equal values have equal bytes; what
// is nil is null.
var wire = json.JoinOptions(jsontext.AllowInvalidUTF8(true), json.Deterministic(true), json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true)) //nolint:gochecknoglobals // made once, never changed

// EncodeJSON is the one way JSON for the outside is written. Bytes in texts
// that are not UTF-8 become U+FFFD.
func EncodeJSON(v any) ([]byte, error) { return json.Marshal(v, wire) }
