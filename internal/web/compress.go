package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/andybalholm/brotli/matchfinder"
)

// encode returns what to write instead of the body of a response that is written in one
// piece: nothing when the client's copy is current, the compressed body when the handler
// allows that and the client accepts it, and the body itself in all other cases.
//
// A handler allows compression by "Vary: Accept-Encoding". Without that header nothing is
// compressed, because the size of a compressed response tells something about a secret in
// it to those who see the traffic and can put text of their own beside the secret (BREACH).
func (r *recorder) encode(body []byte) []byte {
	h := r.Header()
	if r.status != http.StatusOK || h.Get("Content-Length") != strconv.Itoa(len(body)) {
		return body
	}
	if r.isCurrent() {
		r.status = http.StatusNotModified
		h.Del("Content-Type")
		h.Del("Content-Length")
		h.Del("Content-Encoding")
		return nil
	}
	if len(body) < compressFrom || len(h["Content-Encoding"]) > 0 || !slices.Contains(h["Vary"], "Accept-Encoding") {
		return body
	}
	return r.compress(coding(r.request.Header["Accept-Encoding"]), body)
}

// isCurrent tells whether the client has the response already. Entity tags are weak, so
// that one stands for all codings of a response.
func (r *recorder) isCurrent() bool {
	tag := r.Header().Get("ETag")
	return tag != "" && hasTag(r.request.Header["If-None-Match"], tag) &&
		(r.request.Method == http.MethodGet || r.request.Method == http.MethodHead)
}

// compress returns the body in a coding, with the headers that say so, or the body itself
// when that is not smaller.
func (r *recorder) compress(coding string, body []byte) []byte {
	if coding == "" {
		return body
	}
	h := r.Header()
	small, kept := r.door.archive.get(coding, h.Get("ETag"), body)
	if !kept {
		small = r.door.compressors.compress(coding, body)
	}
	if len(small) == 0 || len(small) >= len(body) {
		return body
	}
	h.Set("Content-Encoding", coding)
	h.Set("Content-Length", strconv.Itoa(len(small)))
	return small
}

// compressors are shared by all responses. They bound the memory and the processors that
// compression takes.
type compressors chan *compressor

func newCompressors() compressors {
	c := make(compressors, maxCompressors)
	for range maxCompressors {
		c <- &compressor{}
	}
	return c
}

// compress waits for a compressor. It returns nil on an error.
func (c compressors) compress(coding string, text []byte) []byte {
	z := <-c // those in use wait for nothing but a processor
	defer func() { c <- z }()
	var b bytes.Buffer
	return written(&b, z.to(&b, coding), text)
}

// written returns what a writer makes of a text, or nil.
func written(b *bytes.Buffer, z io.WriteCloser, text []byte) []byte {
	if _, err := z.Write(text); err != nil || z.Close() != nil {
		return nil
	}
	return b.Bytes()
}

// compressor is a writer for each coding, made when it is first needed.
type compressor struct {
	gzip   *gzip.Writer
	brotli *matchfinder.Writer
}

// to returns the writer of a coding, which writes to b.
func (c *compressor) to(b *bytes.Buffer, coding string) io.WriteCloser {
	if coding == gzipCoding {
		if c.gzip == nil {
			c.gzip = gzip.NewWriter(b)
		}
		c.gzip.Reset(b)
		return c.gzip
	}
	if c.brotli == nil {
		c.brotli = brotli.NewWriterV2(b, brotliLevel)
	}
	c.brotli.Reset(b)
	return c.brotli
}

// archive keeps the compressed form of files, which do not change while the server runs.
// These are the responses with an entity tag.
type archive struct {
	mu    sync.Mutex
	files map[string]func() []byte // by coding and entity tag
}

// get compresses a file for the first client that asks for it. Others wait. It returns
// false for what is not kept: without a tag, or when too much is.
func (a *archive) get(coding, tag string, text []byte) (small []byte, kept bool) {
	if tag == "" {
		return nil, false
	}
	a.mu.Lock()
	file, kept := a.files[coding+tag]
	if !kept && len(a.files) < maxArchived {
		file, kept = sync.OnceValue(func() []byte { return compressFile(coding, text) }), true
		if a.files == nil {
			a.files = map[string]func() []byte{}
		}
		a.files[coding+tag] = file
	}
	a.mu.Unlock()
	if !kept {
		return nil, false
	}
	return file(), true
}

// compressFile takes more time than a response may, for a smaller file.
func compressFile(coding string, text []byte) []byte {
	var b bytes.Buffer
	if coding == brotliCoding {
		return written(&b, brotli.NewWriterOptions(&b, brotli.WriterOptions{Quality: fileQuality, LGWin: fileWindow}), text)
	}
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil
	}
	return written(&b, z, text)
}
