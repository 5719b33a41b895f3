package blob_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"postern/internal/media/blob"
)

// agedBucket is a bucket on a server whose clock a test can move.
type agedBucket struct {
	blob.Store
	clock gofakes3.TimeSourceAdvancer
}

func (b agedBucket) Age(by time.Duration) { b.clock.Advance(by) }

func oldBucket(t *testing.T) blob.Store {
	t.Helper()
	clock := gofakes3.FixedTimeSource(time.Now())
	back := s3mem.New(s3mem.WithTimeSource(clock))
	if err := back.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(back).Server())
	t.Cleanup(server.Close)
	return agedBucket{bucketAt(t, server, t.TempDir()), clock}
}

// brokenBucket is a bucket whose server answers some requests otherwise. The
// function returns true if it did.
func brokenBucket(t *testing.T, fault func(w http.ResponseWriter, r *http.Request) bool) storage {
	t.Helper()
	back := s3mem.New()
	if err := back.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	handler, scratch := gofakes3.New(back).Server(), t.TempDir()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !fault(w, r) {
			handler.ServeHTTP(w, r)
		}
	})
	return storage{
		Store: bucketAt(t, server, scratch),
		left:  func() []string { return append(objects(t, back), files(t, scratch)...) },
	}
}

func isUpload(r *http.Request) bool {
	return r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") == ""
}

func TestBucketThatFailsInTheMiddleOfAnUpload(t *testing.T) {
	t.Parallel()
	s := brokenBucket(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if isUpload(r) {
			_, _ = io.CopyN(io.Discard, r.Body, 100_000)
			panic(http.ErrAbortHandler)
		}
		return false
	})
	if _, _, err := s.Put(t.Context(), workspace, bytes.NewReader(noise(1, 1<<20))); err == nil {
		t.Error("Put succeeded although the upload was cut")
	}
	if left := s.left(); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}

func TestUploadIsRepeatedAfterAFault(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	s := brokenBucket(t, func(w http.ResponseWriter, r *http.Request) bool {
		if isUpload(r) && tries.Add(1) == 1 {
			_, _ = io.CopyN(io.Discard, r.Body, 100_000)
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	content := noise(2, 300_000)
	name := put(t, s, workspace, content)
	if got := get(t, s, name, 0, -1); !bytes.Equal(got, content) {
		t.Errorf("stored %d bytes that differ", len(got))
	}
	if tries.Load() != 2 {
		t.Errorf("%d uploads, want 2", tries.Load())
	}
}

func TestDownloadThatIsCutEndsWithAnError(t *testing.T) {
	t.Parallel()
	s := brokenBucket(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return false
		}
		w.Header().Set("Content-Length", "1000000")
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		_, _ = w.Write(noise(3, 5000))
		panic(http.ErrAbortHandler)
	})
	body, err := s.Open(t.Context(), blob.Name{Workspace: workspace}, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); err == nil {
		t.Errorf("read %d bytes without an error", len(got))
	}
}

func TestMissingBucketIsNoMissingBlob(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(gofakes3.New(s3mem.New()).Server())
	t.Cleanup(server.Close)
	s := bucketAt(t, server, t.TempDir())
	if err := s.Check(t.Context()); err == nil {
		t.Error("Check did not notice that the bucket does not exist")
	}
	_, err := s.Open(t.Context(), blob.Name{Workspace: workspace}, 0, -1)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open = %v, want another error than for a missing blob", err)
	}
}

func TestErrorsOfABucketShowNoSecret(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	s := bucketAt(t, server, t.TempDir())
	_, _, putErr := s.Put(t.Context(), workspace, strings.NewReader("x"))
	server.Close()
	for _, err := range []error{putErr, s.Check(t.Context()), s.Delete(t.Context(), blob.Name{Workspace: workspace})} {
		if err == nil || strings.Contains(err.Error(), "very") {
			t.Errorf("error %v, want one without the secret", err)
		}
	}
}
