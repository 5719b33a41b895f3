package blob_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"postern/internal/media/blob"
)

const (
	large     = 100 << 20
	maxGrowth = 8 << 20 // of the heap while a large blob passes
)

// stream is a reader of many bytes that measures the heap on the way.
type stream struct {
	left  int64
	piece []byte
	reads int
	heap  uint64 // the most that was in use
}

func (s *stream) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	if s.reads++; s.reads%512 == 0 {
		s.heap = max(s.heap, heapInUse())
	}
	n := copy(p, s.piece[(large-s.left)%int64(len(s.piece)):])
	n = int(min(int64(n), s.left))
	s.left -= int64(n)
	return n, nil
}

// heapInUse is what is left in use after a collection.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// sink is a server that takes one object and gives it back, and keeps only its size.
func sink(t *testing.T, piece []byte) (handler http.HandlerFunc, hash func() []byte) {
	t.Helper()
	sum := sha256.New()
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Amz-Copy-Source") != "":
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodPut:
			copyChunks(t, sum, r.Body)
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Length", fmt.Sprint(large))
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			_, _ = io.Copy(w, &stream{left: large, piece: piece, reads: 1 << 40})
		}
	}, func() []byte { return sum.Sum(nil) }
}

// copyChunks reads the form in which S3 takes signed streams: the size of a chunk in hex
// with its signature, the chunk, and so on.
func copyChunks(t *testing.T, w io.Writer, r io.Reader) {
	t.Helper()
	for {
		var size int64
		var signature string
		if _, err := fmt.Fscanf(r, "%x;chunk-signature=%s\r\n", &size, &signature); err != nil {
			t.Errorf("chunk: %v", err)
			return
		}
		if size == 0 {
			_, _ = io.Copy(io.Discard, r)
			return
		}
		if _, err := io.CopyN(w, r, size); err != nil {
			t.Errorf("chunk: %v", err)
			return
		}
		_, _ = io.CopyN(io.Discard, r, 2)
	}
}

// TestLargeBlobsNeedLittleMemory runs alone, because it measures the whole process.
func TestLargeBlobsNeedLittleMemory(t *testing.T) { //nolint:paralleltest // see above
	piece := noise(1, 64<<10)
	handler, received := sink(t, piece)
	dir := t.TempDir()
	for name, s := range map[string]blob.Store{
		"directory": openDirectory(t, dir), "bucket": bucketAt(t, serve(t, handler), t.TempDir()),
	} {
		before := heapInUse()
		in := &stream{left: large, piece: piece}
		stored, size, err := s.Put(t.Context(), workspace, in)
		if err != nil || size != large {
			t.Fatalf("%s: stored %d bytes, %v", name, size, err)
		}
		if in.heap == 0 || in.heap > before+maxGrowth {
			t.Errorf("%s: the heap grew from %d to %d bytes while storing", name, before, in.heap)
		}
		if name == "bucket" && !bytes.Equal(received(), stored.Hash[:]) {
			t.Error("the bucket received something else")
		}
		readLarge(t, s, stored)
	}
}

// readLarge reads a large blob and compares it with its name.
func readLarge(t *testing.T, s blob.Store, name blob.Name) {
	t.Helper()
	body, err := s.Open(t.Context(), name, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	before, most, sum := heapInUse(), uint64(0), sha256.New()
	for range large / (4 << 20) {
		if _, err := io.CopyN(sum, body, 4<<20); err != nil {
			t.Fatal(err)
		}
		most = max(most, heapInUse())
	}
	if most > before+maxGrowth {
		t.Errorf("the heap grew from %d to %d bytes while reading", before, most)
	}
	if got := fmt.Sprintf("%x", sum.Sum(nil)); !strings.EqualFold(got, name.Hash.String()) {
		t.Errorf("read content with the hash %s, want %s", got, name.Hash)
	}
}
