package apilog

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"io"
	"sync"
)

// A compressor is large. The pool lets the garbage collector have it while nothing is written.
var compressors = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // fails for an unknown level only
	return w
}}

// pack returns requests as compressed lines of JSON.
func pack(list []Request) ([]byte, error) {
	var out bytes.Buffer
	w, _ := compressors.Get().(*flate.Writer)
	defer compressors.Put(w)
	w.Reset(&out)
	lines := json.NewEncoder(w)
	for _, r := range list {
		if err := lines.Encode(r); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// unpack returns the requests of a block.
func unpack(body []byte) (list []Request, err error) {
	lines := json.NewDecoder(flate.NewReader(bytes.NewReader(body)))
	for {
		var r Request
		if err := lines.Decode(&r); err == io.EOF {
			return list, nil
		} else if err != nil {
			return list, err
		}
		list = append(list, r)
	}
}
