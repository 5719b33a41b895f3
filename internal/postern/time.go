package postern

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Time is an instant in milliseconds since the Unix epoch. The zero Time means
// "not yet" and is null in JSON; any other is RFC 3339 in UTC with
// milliseconds and Z.
type Time int64

const timeLayout = "2006-01-02T15:04:05.000Z"

// TimeOf truncates t to milliseconds. The zero time.Time becomes the zero Time.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMilli())
}

// Std returns t as a time.Time in UTC. The zero Time becomes the zero time.Time.
func (t Time) Std() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)).UTC()
}

// Add returns t plus d.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Milliseconds()) }

// String formats t as in RFC 3339; the zero Time is "".
func (t Time) String() string {
	if t == 0 {
		return ""
	}
	return t.Std().Format(timeLayout)
}

// MarshalJSONTo writes the RFC 3339 form, or null for the zero Time.
func (t Time) MarshalJSONTo(e *jsontext.Encoder) error {
	if t == 0 {
		return e.WriteToken(jsontext.Null)
	}
	b := t.Std().AppendFormat(append(e.AvailableBuffer(), '"'), timeLayout)
	return e.WriteValue(append(b, '"'))
}

// MarshalJSON is MarshalJSONTo for encoding/json.
func (t Time) MarshalJSON() ([]byte, error) { return EncodeJSON(t) }

// UnmarshalJSON reads the output of MarshalJSON.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = 0
		return nil
	}
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return fmt.Errorf("a time is a string in RFC 3339 form")
	}
	return t.UnmarshalText(b[1 : len(b)-1])
}

// UnmarshalText reads an RFC 3339 time in any zone.
func (t *Time) UnmarshalText(b []byte) error {
	std, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil {
		return fmt.Errorf("a time is in RFC 3339 form, such as 2026-12-01T09:00:00.000Z")
	}
	*t = TimeOf(std)
	return nil
}

// Maybe is a text that may be absent: "" is null in JSON.
type Maybe string

// MarshalJSONTo writes a string, or null when m is empty.
func (m Maybe) MarshalJSONTo(e *jsontext.Encoder) error {
	if m == "" {
		return e.WriteToken(jsontext.Null)
	}
	return e.WriteToken(jsontext.String(string(m)))
}

// MarshalJSON is MarshalJSONTo for encoding/json.
func (m Maybe) MarshalJSON() ([]byte, error) { return EncodeJSON(m) }

// Sleep waits for d. If ctx has ended or ends before that, it returns the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
