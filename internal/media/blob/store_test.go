package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"postern/internal/media/blob"
	"postern/internal/postern"
)

func TestBlobIsReadAsWritten(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, s storage) {
		for _, size := range []int{0, 1, 1000, 1 << 20} {
			content := noise(uint64(size), size)
			name := put(t, s, workspace, content)
			if got := get(t, s, name, 0, -1); !bytes.Equal(got, content) {
				t.Errorf("read %d bytes that differ from the %d written", len(got), size)
			}
			info, err := s.Stat(t.Context(), name)
			if err != nil || info.Size != int64(size) || info.Name != name || info.Modified.IsZero() {
				t.Errorf("Stat = %+v, %v; want %d bytes", info, err, size)
			}
		}
	})
}

func TestSameContentIsStoredOnce(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, s storage) {
		content := noise(1, 5000)
		name := put(t, s, workspace, content)
		put(t, s, workspace, content)
		if left := s.left(); len(left) != 1 {
			t.Errorf("stored %q, want one copy", left)
		}
		other := put(t, s, neighbour, content)
		if left := s.left(); len(left) != 2 {
			t.Errorf("stored %q, want one copy per workspace", left)
		}
		if err := s.Delete(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if got := get(t, s, name, 0, -1); !bytes.Equal(got, content) {
			t.Error("the copy of one workspace was lost with that of the other")
		}
	})
}

func TestAdoptedFileIsABlobLikeAnyOther(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, s storage) {
		content := noise(9, 100_000)
		f := created(t, s, content)
		hash, size, err := blob.Sum(t.Context(), f)
		name := blob.Name{Workspace: workspace, Hash: hash}
		if err = errors.Join(err, s.Adopt(t.Context(), name, f)); err != nil || size != 100_000 ||
			name != put(t, s, workspace, content) {
			t.Errorf("Adopt of %v, %d bytes = %v", name, size, err)
		}
		if got, err := io.ReadAll(io.NewSectionReader(f, 0, size)); err != nil || !bytes.Equal(got, content) {
			t.Errorf("the file cannot be read any more: %v", err)
		}
		if err := s.Adopt(t.Context(), name, created(t, s, content)); err != nil {
			t.Errorf("Adopt of the same content = %v", err)
		}
		if left := s.left(); len(left) != 1 {
			t.Errorf("stored %q, want one copy", left)
		}
		if got := get(t, s, name, 0, -1); !bytes.Equal(got, content) {
			t.Error("the copy differs from the file")
		}
	})
}

func TestFileThatIsNotAdoptedIsNotStored(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, s storage) {
		f := created(t, s, noise(9, 100_000))
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Adopt(canceled, blob.Name{Workspace: workspace}, f); !errors.Is(err, context.Canceled) {
			t.Errorf("Adopt = %v, want context.Canceled", err)
		}
		if _, _, err := blob.Sum(canceled, f); !errors.Is(err, context.Canceled) {
			t.Errorf("Sum = %v, want context.Canceled", err)
		}
		if err := s.Adopt(t.Context(), blob.Name{Workspace: "ws_../x"}, f); err == nil {
			t.Error("a hostile workspace was taken")
		}
		if len(walk(t, s)) != 0 {
			t.Error("the file was stored")
		}
	})
}

// created is a file for Adopt. It is removed at the end, unless it was adopted.
func created(t *testing.T, s blob.Store, content []byte) *os.File {
	t.Helper()
	f, err := s.Create()
	if err == nil {
		_, err = f.Write(content)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) })
	return f
}

func TestConcurrentPutsOfTheSameContentAgree(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, s storage) {
		content := noise(2, 200_000)
		var done sync.WaitGroup
		for range 8 {
			done.Go(func() {
				if _, _, err := s.Put(t.Context(), workspace, bytes.NewReader(content)); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		if left := s.left(); len(left) != 1 {
			t.Errorf("stored %q, want one copy", left)
		}
		for name := range walk(t, s) {
			if got := get(t, s, name, 0, -1); !bytes.Equal(got, content) {
				t.Error("the copy differs from what was put")
			}
		}
	})
}

func TestInterruptedReaderLeavesNothing(t *testing.T) {
	t.Parallel()
	broken := errors.New("the client hung up")
	everyStore(t, func(t *testing.T, s storage) {
		r := io.MultiReader(bytes.NewReader(noise(3, 300_000)), iotest.ErrReader(broken))
		if _, _, err := s.Put(t.Context(), workspace, r); !errors.Is(err, broken) {
			t.Errorf("Put = %v, want the reader's error", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r = io.MultiReader(bytes.NewReader(noise(3, 300_000)), callback(cancel), bytes.NewReader(noise(4, 300_000)))
		if _, _, err := s.Put(ctx, workspace, r); !errors.Is(err, context.Canceled) {
			t.Errorf("Put = %v, want context.Canceled", err)
		}
		if left := s.left(); len(left) != 0 {
			t.Errorf("left %q", left)
		}
	})
}

// callback is a reader that is empty and calls a function when it is read.
type callback func()

func (f callback) Read([]byte) (int, error) { f(); return 0, io.EOF }

func TestRanges(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, s storage) {
		content := noise(5, 1000)
		name := put(t, s, workspace, content)
		for _, tt := range []struct{ offset, length, from, to int64 }{
			{0, -1, 0, 1000},
			{0, 1, 0, 1},
			{0, 1000, 0, 1000},
			{999, 1, 999, 1000},
			{500, -1, 500, 1000},
			{500, 100, 500, 600},
			{900, 5000, 900, 1000},
			{400, 0, 400, 400},
			{1000, -1, 1000, 1000},
			{1000, 10, 1000, 1000},
			{5000, 10, 1000, 1000},
		} {
			if got := get(t, s, name, tt.offset, tt.length); !bytes.Equal(got, content[tt.from:tt.to]) {
				t.Errorf("range %d+%d has %d bytes, want [%d:%d]", tt.offset, tt.length, len(got), tt.from, tt.to)
			}
		}
		if _, err := s.Open(t.Context(), name, -1, 10); err == nil {
			t.Error("a negative offset was accepted")
		}
	})
}

func TestMissingBlob(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, s storage) {
		name := blob.Name{Workspace: workspace, Hash: blob.Hash{1, 2, 3}}
		for _, length := range []int64{-1, 0, 5} {
			if _, err := s.Open(t.Context(), name, 0, length); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Open(0, %d) = %v, want fs.ErrNotExist", length, err)
			}
		}
		if _, err := s.Stat(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Stat = %v, want fs.ErrNotExist", err)
		}
		if err := s.Delete(t.Context(), name); err != nil {
			t.Errorf("Delete = %v, want nil", err)
		}
	})
}

func TestDeleteWhileOpen(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, s storage) {
		content := noise(6, 4<<20)
		name := put(t, s, workspace, content)
		body, err := s.Open(t.Context(), name, 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		if err := s.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(body)
		if err == nil && !bytes.Equal(got, content) {
			t.Errorf("read %d bytes without an error, want all %d or an error", len(got), len(content))
		}
		if left := s.left(); len(left) != 0 {
			t.Errorf("left %q", left)
		}
	})
}

func TestHostileWorkspaceIDsAreRefused(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, s storage) {
		for _, ws := range []postern.WorkspaceID{
			"", ".", "..", "tmp", "ws_", "../ws_A", "ws_A/../../etc", "ws_/etc", "/etc", `ws_A\..\B`, "ws_A\x00",
			"ws_é", "ws_A B", "ws_..", "ws_01JARZ3NDEKTSV4RRFFQ69G5FA01JARZ3NDEKTSV4RRFFQ69G5FA01JARZ3NDEKTSV",
		} {
			name := blob.Name{Workspace: ws}
			_, _, putErr := s.Put(t.Context(), ws, bytes.NewReader([]byte("x")))
			_, openErr := s.Open(t.Context(), name, 0, -1)
			_, statErr := s.Stat(t.Context(), name)
			for _, err := range []error{putErr, openErr, statErr, s.Delete(t.Context(), name)} {
				if err == nil || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("workspace %q: %v, want a refusal", ws, err)
				}
			}
		}
		if left := s.left(); len(left) != 0 {
			t.Errorf("left %q", left)
		}
	})
}

func TestWalkShowsEveryBlobAndNothingElse(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, s storage) {
		want := map[blob.Name]int64{}
		for i := range 30 {
			want[put(t, s, workspace, noise(uint64(i), 10+i))] = int64(10 + i)
		}
		want[put(t, s, neighbour, noise(1, 11))] = 11
		for _, name := range []string{"lost+found", "ws_A/notes.txt", "ws_A/00/" + blob.Hash{1}.String(), "tmp/X"} {
			s.foul(name)
		}
		got := walk(t, s)
		for name, size := range want {
			if got[name].Size != size || got[name].Modified.IsZero() {
				t.Errorf("Walk shows %+v, want %d bytes", got[name], size)
			}
		}
		if len(got) != len(want) {
			t.Errorf("Walk shows %d blobs, want %d", len(got), len(want))
		}
		for _, err := range s.Walk(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			break // must neither hang nor go on
		}
	})
}

func TestRepeatedPutMakesABlobYoungAgain(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]blob.Store{"directory": oldDirectory(t), "bucket": oldBucket(t)} {
		content := noise(7, 100)
		first := put(t, s, workspace, content)
		before := walk(t, s)[first]
		age(t, s)
		put(t, s, workspace, content)
		if after := walk(t, s)[first]; !after.Modified.After(before.Modified) {
			t.Errorf("%s: modified %v, then %v", name, before.Modified, after.Modified)
		}
	}
}

func TestCanceledWalkEndsWithAnError(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, s storage) {
		put(t, s, workspace, []byte("a"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var last error
		for _, err := range s.Walk(ctx) {
			last = err
		}
		if !errors.Is(last, context.Canceled) {
			t.Errorf("Walk ended with %v, want context.Canceled", last)
		}
	})
}

func TestReaderServesRangesOfHTTP(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, s storage) {
		content := noise(8, 100_000)
		name := put(t, s, workspace, content)
		for _, tt := range []struct {
			header   string
			status   int
			from, to int
		}{
			{"", 200, 0, 100_000},
			{"bytes=0-0", 206, 0, 1},
			{"bytes=50000-", 206, 50_000, 100_000},
			{"bytes=-10", 206, 99_990, 100_000},
		} {
			got := serveContent(t, s, name, int64(len(content)), tt.header)
			if got.Code != tt.status || !bytes.Equal(got.Body.Bytes(), content[tt.from:tt.to]) {
				t.Errorf("Range %q: %d with %d bytes", tt.header, got.Code, got.Body.Len())
			}
		}
		r := blob.NewReader(t.Context(), s, name, 200_000)
		defer r.Close()
		if _, err := io.Copy(io.Discard, r); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a blob that is too short ends with %v", err)
		}
	})
}

func TestReadinessNoticesALostStorage(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, s storage) {
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("Check = %v", err)
		}
		if left := s.left(); len(left) != 0 {
			t.Errorf("Check left %q", left)
		}
	})
}

func TestLimitRefusesOneByteTooMany(t *testing.T) {
	t.Parallel()
	for size, ok := range map[int]bool{0: true, 99: true, 100: true, 101: false, 5000: false} {
		for _, wrap := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader} {
			got, err := io.ReadAll(blob.Limit(wrap(bytes.NewReader(noise(9, size))), 100))
			if ok && (err != nil || len(got) != size) {
				t.Errorf("%d bytes: read %d, %v", size, len(got), err)
			}
			if !ok && (postern.ReasonOf(err) != postern.PayloadTooLarge || len(got) > 100) {
				t.Errorf("%d bytes: read %d, %v; want too large", size, len(got), err)
			}
		}
	}
}

func TestHashesHaveOneForm(t *testing.T) {
	t.Parallel()
	want := blob.Hash{0xab, 31: 0xcd}
	if got, err := blob.ParseHash(want.String()); err != nil || got != want {
		t.Errorf("ParseHash(%q) = %v, %v", want, got, err)
	}
	upper := fmt.Sprintf("%X", want[:])
	for _, text := range []string{"", "ab", upper, want.String() + "00", "../" + want.String()[3:]} {
		if _, err := blob.ParseHash(text); err == nil {
			t.Errorf("ParseHash(%q) was accepted", text)
		}
	}
}

// age lets a tick of the storage's clock pass without waiting for it.
func age(t *testing.T, s blob.Store) {
	t.Helper()
	s.(interface{ Age(d time.Duration) }).Age(time.Hour)
}

// serveContent answers one request as a server does.
func serveContent(t *testing.T, s blob.Store, name blob.Name, size int64, header string) *httptest.ResponseRecorder {
	t.Helper()
	r := blob.NewReader(t.Context(), s, name, size)
	defer r.Close()
	w := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	if header != "" {
		request.Header.Set("Range", header)
	}
	http.ServeContent(w, request, "", time.Time{}, r)
	return w
}

// A storage keeps the first mark that it gets, which is no blob.
func TestMarkStays(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, s storage) {
		if got, err := s.Mark(t.Context(), ""); got != "" || err != nil {
			t.Errorf("a new storage has the mark %q, %v", got, err)
		}
		var all sync.WaitGroup
		marks := make([]string, 8)
		for i := range marks {
			all.Go(func() {
				var err error
				if marks[i], err = s.Mark(t.Context(), fmt.Sprint("mark ", i)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		got, err := s.Mark(t.Context(), "another")
		if err != nil || !slices.Contains(marks, got) {
			t.Errorf("the mark is %q, %v, of %q", got, err, marks)
		}
		if len(walk(t, s)) != 0 {
			t.Error("the mark is a blob")
		}
	})
}
