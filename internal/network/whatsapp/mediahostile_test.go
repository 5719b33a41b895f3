package whatsapp

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/internal/network/whatsapp/content"
	"postern/internal/postern"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"
)

// hostile lets the friend send what no app writes. change changes the message of a document
// that is really there.
func hostile(
	tb testing.TB, w world, c *networktest.Connection, data []byte, change func(*waE2E.DocumentMessage),
) network.Inbound {
	tb.Helper()
	stored, err := w.vendor.Upload(ownNumber, vendorsim.TypeDocument, bytes.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	doc := &waE2E.DocumentMessage{
		DirectPath: &stored.Path, MediaKey: stored.Key, FileSHA256: stored.SHA256, FileEncSHA256: stored.EncSHA256,
		FileLength: new(uint64(len(data))), Mimetype: new("application/pdf"), FileName: new("a.pdf"),
	}
	change(doc)
	raw, err := proto.Marshal(&waE2E.Message{DocumentMessage: doc})
	if err != nil {
		tb.Fatal(err)
	}
	id, err := w.vendor.SendContent(tb.Context(), ownNumber, friendNumber, vendorsim.Content{
		Type: vendorsim.TypeDocument, Raw: raw,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return networktest.Wait(tb, c.Host, 1, byID(id))
}

func TestHostileMedia(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	data := bytesOf(5000)
	sum := sha256.Sum256([]byte("another file"))
	for name, tt := range map[string]struct {
		change func(*waE2E.DocumentMessage)
		size   int64 // that is shown
		want   error // of the download
	}{
		"nothing hostile": {func(*waE2E.DocumentMessage) {}, 5000, nil},
		"no length":       {func(m *waE2E.DocumentMessage) { m.FileLength = nil }, 0, nil},
		"larger length":   {func(m *waE2E.DocumentMessage) { m.FileLength = new(uint64(6000)) }, 6000, nil},
		"length of 2^60":  {func(m *waE2E.DocumentMessage) { m.FileLength = new(uint64(1 << 60)) }, 0, nil},
		"smaller length": {
			func(m *waE2E.DocumentMessage) { m.FileLength = new(uint64(4000)) }, 4000,
			network.ErrMediaGone,
		},
		"length of a DVD": {
			func(m *waE2E.DocumentMessage) { m.FileLength = new(uint64(4 << 30)) }, 4 << 30,
			network.ErrMediaUseless,
		},
		"another hash":        {func(m *waE2E.DocumentMessage) { m.FileSHA256 = sum[:] }, 5000, network.ErrMediaGone},
		"another sealed hash": {func(m *waE2E.DocumentMessage) { m.FileEncSHA256 = sum[:] }, 5000, network.ErrMediaGone},
		"another key":         {func(m *waE2E.DocumentMessage) { m.MediaKey = sum[:] }, 5000, network.ErrMediaGone},
		"no key":              {func(m *waE2E.DocumentMessage) { m.MediaKey = nil }, 5000, network.ErrMediaUseless},
		"no path":             {func(m *waE2E.DocumentMessage) { m.DirectPath = nil }, 5000, network.ErrMediaUseless},
		"no sealed hash":      {func(m *waE2E.DocumentMessage) { m.FileEncSHA256 = nil }, 5000, network.ErrMediaUseless},
		"path to nowhere":     {func(m *waE2E.DocumentMessage) { m.DirectPath = new("/v/x?y") }, 5000, network.ErrMediaGone},
		"path without a query": {func(m *waE2E.DocumentMessage) {
			m.DirectPath = new(strings.TrimSuffix(m.GetDirectPath(), "?x=1"))
		}, 5000, nil},
	} {
		m := hostile(t, w, c, data, tt.change)
		if m.Content.Kind != postern.KindDocument || m.Content.Media.Size != tt.size || m.File == nil {
			t.Errorf("%s: it arrives as %+v %+v", name, m.Content, m.Content.Media)
		}
		got, err := download(t, c, m.File)
		if !errors.Is(err, tt.want) || tt.want == nil && !bytes.Equal(got, data) {
			t.Errorf("%s: download = %d bytes, %v, want %v", name, len(got), err, tt.want)
		}
	}
}

// TestPathStaysOnItsHost gives paths that could lead elsewhere: the vendor gets them all.
func TestPathStaysOnItsHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	for _, path := range []string{"//example.com/x?y", "/../x", "/@example.com/x"} {
		m := hostile(t, w, c, []byte("x"), func(m *waE2E.DocumentMessage) { m.DirectPath = &path })
		const want = "download: the vendor answered with status 426"
		if _, err := download(t, c, m.File); err == nil || err.Error() != want {
			t.Errorf("download of %s = %v, want %s", path, err, want)
		}
	}
}

func TestHostileTextsOfMedia(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	m := hostile(t, w, c, []byte("x"), func(m *waE2E.DocumentMessage) {
		m.Caption, m.FileName = new(strings.Repeat("x", 1<<20)), new("../../\u202efdp.exe")
		m.Mimetype = new("text/html\r\nX: y")
	})
	media := m.Content.Media
	if len(m.Content.Text) != postern.MaxText || !m.Content.Truncated || media.Filename != "fdp.exe" ||
		media.MIMEType != "application/octet-stream" {
		t.Errorf("it arrives with %d characters, cut: %v, and %+v", len(m.Content.Text), m.Content.Truncated, media)
	}
	id, err := w.vendor.SendContent(t.Context(), ownNumber, friendNumber, vendorsim.Content{Raw: []byte{0x1a, 0x00}})
	if err != nil {
		t.Fatal(err)
	}
	empty := networktest.Wait(t, c.Host, 1, byID(id))
	if empty.Content.Kind != postern.KindImage {
		t.Errorf("an image of nothing arrives as %+v", empty.Content)
	}
	for _, ref := range []network.Ref{empty.File, nil, network.Ref("{}"), network.Ref("\xff")} {
		if _, err := download(t, c, ref); !errors.Is(err, network.ErrMediaUseless) {
			t.Errorf("download of %q = %v, want ErrMediaUseless", ref, err)
		}
	}
}

func TestHostThatSendsTooMuchIsStopped(t *testing.T) {
	t.Parallel()
	for _, declared := range []int64{0, 100} {
		dst := onDisk(t, []byte("left"))
		limit := sealedSize(content.File{Size: declared})
		to := &sink{File: dst, limit: limit}
		n, err := io.Copy(to, io.LimitReader(zeros{}, 1<<40))
		info, statErr := dst.Stat()
		if statErr != nil || n > limit+1 || info.Size() > limit+1 || !errors.Is(err, errTooMuch) {
			t.Errorf("%d bytes were written, %v, want at most %d", n, err, limit)
		}
		want := network.ErrMediaGone
		if declared == 0 {
			want = network.ErrMediaUseless
		}
		if got := notDownloaded(err, to, content.File{Size: declared}); !errors.Is(got, want) {
			t.Errorf("a file larger than the declared %d bytes is %v, want %v", declared, got, want)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestLaterHostBeginsAtTheStart writes what two hosts send, as whatsmeow does.
func TestLaterHostBeginsAtTheStart(t *testing.T) {
	t.Parallel()
	dst := onDisk(t, nil)
	to := &sink{File: dst, limit: 1000}
	for _, sent := range []string{"a part of the wrong", "file"} {
		if _, err := io.Copy(to, io.TeeReader(strings.NewReader(sent), io.Discard)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(dst.Name()); err != nil || string(got) != "file" {
		t.Errorf("the file is %q, %v", got, err)
	}
	if err := notDownloaded(whatsmeow.ErrInvalidMediaHMAC, to, content.File{}); errors.Is(err, network.ErrMediaGone) {
		t.Error("a file whose hash was never right is gone")
	}
}
