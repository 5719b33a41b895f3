package blob_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"postern/internal/media/blob"
	"postern/internal/postern"
	"postern/internal/seal"
)

const (
	workspace = postern.WorkspaceID("ws_01JARZ3NDEKTSV4RRFFQ69G5FA")
	neighbour = postern.WorkspaceID("ws_01JARZ3NDEKTSV4RRFFQ69G5FB")
	bucket    = "media"
)

// storage is a Store with what a test needs to look behind it.
type storage struct {
	blob.Store
	left func() []string // names of all files and objects, temporary ones included
	foul func(name string)
}

// everyStore runs a test on each implementation.
func everyStore(t *testing.T, test func(t *testing.T, s storage)) {
	t.Run("directory", func(t *testing.T) { t.Parallel(); test(t, newDirectory(t)) })
	t.Run("bucket", func(t *testing.T) { t.Parallel(); test(t, newBucket(t)) })
}

func newDirectory(t *testing.T) storage {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "media")
	s, err := blob.Parse(seal.Secret("file://"+dir), "")
	if err != nil {
		t.Fatal(err)
	}
	return storage{
		Store: s,
		left:  func() []string { return files(t, dir) },
		foul:  func(name string) { writeFile(t, filepath.Join(dir, name)) },
	}
}

func newBucket(t *testing.T) storage {
	t.Helper()
	back := s3mem.New()
	if err := back.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(back).Server())
	t.Cleanup(server.Close)
	scratch := t.TempDir()
	return storage{
		Store: bucketAt(t, server, scratch),
		left:  func() []string { return append(objects(t, back), files(t, scratch)...) },
		foul: func(name string) {
			if _, err := back.PutObject(bucket, "some/prefix/"+name, nil, strings.NewReader("x"), 1, nil); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// bucketAt is a client of a server that speaks the protocol of S3.
func bucketAt(t *testing.T, server *httptest.Server, scratch string) blob.Store {
	t.Helper()
	host := strings.TrimPrefix(server.URL, "http://")
	s, err := blob.Parse(seal.Secret("s3://key:very%2Fsecret@"+host+"/"+bucket+"/some/prefix?tls=off"), scratch)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func objects(t *testing.T, back *s3mem.Backend) []string {
	t.Helper()
	list, err := back.ListBucket(bucket, &gofakes3.Prefix{}, gofakes3.ListBucketPage{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range list.Contents {
		names = append(names, object.Key)
	}
	return names
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func writeFile(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// put stores content and fails the test if its name or size is wrong.
func put(t *testing.T, s blob.Store, ws postern.WorkspaceID, content []byte) blob.Name {
	t.Helper()
	name, size, err := s.Put(t.Context(), ws, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if want := (blob.Name{Workspace: ws, Hash: sha256.Sum256(content)}); name != want || size != int64(len(content)) {
		t.Errorf("Put = %v, %d; want %v, %d", name, size, want, len(content))
	}
	return name
}

// get reads a part of a blob.
func get(t *testing.T, s blob.Store, name blob.Name, offset, length int64) []byte {
	t.Helper()
	body, err := s.Open(t.Context(), name, offset, length)
	if err != nil {
		t.Fatalf("Open(%d, %d): %v", offset, length, err)
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		t.Fatalf("read(%d, %d): %v", offset, length, err)
	}
	return content
}

// walk lists all blobs.
func walk(t *testing.T, s blob.Store) map[blob.Name]blob.Info {
	t.Helper()
	found := map[blob.Name]blob.Info{}
	for info, err := range s.Walk(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		found[info.Name] = info
	}
	return found
}

// noise returns bytes that no two seeds share.
func noise(seed uint64, size int) []byte {
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	content := make([]byte, size)
	_, _ = source.Read(content)
	return content
}

// serve runs a handler in front of a server, so that a test may make it fail.
func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}
