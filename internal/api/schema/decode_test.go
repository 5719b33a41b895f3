package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

var errLimit = errors.New("a limit")

// decodeLimited makes plain values of a body for a library, under the limits that
// the walker has.
func decodeLimited(body []byte) (any, error) {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	return decodeValue(d)
}

func decodeValue(d *jsontext.Decoder) (any, error) {
	tok, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	if d.StackDepth() > maxDepth {
		return nil, errLimit
	}
	switch tok.Kind() {
	case jsontext.KindBeginObject:
		return decodeObject(d)
	case jsontext.KindBeginArray:
		return decodeArray(d)
	case jsontext.KindString:
		s := tok.String()
		if strings.Contains(s, "\x00") {
			return nil, errLimit
		}
		return s, nil
	case jsontext.KindNumber:
		s := tok.String()
		if len(s) > 32 {
			return nil, errLimit
		}
		return json.Number(s), nil
	case jsontext.KindTrue, jsontext.KindFalse:
		return tok.Bool(), nil
	}
	return nil, nil
}

func decodeObject(d *jsontext.Decoder) (any, error) {
	m := map[string]any{}
	for d.PeekKind() != jsontext.KindEndObject {
		if len(m) == maxMembers {
			return nil, errLimit
		}
		tok, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name := tok.String()
		if strings.Contains(name, "\x00") {
			return nil, errLimit
		}
		if m[name], err = decodeValue(d); err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return m, err
}

func decodeArray(d *jsontext.Decoder) (any, error) {
	list := []any{}
	for d.PeekKind() != jsontext.KindEndArray {
		v, err := decodeValue(d)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.ReadToken()
	return list, err
}
