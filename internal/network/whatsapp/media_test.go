package whatsapp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/internal/postern"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"
)

// bytesOf returns content of a size that looks like no other.
func bytesOf(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i * i >> 3)
	}
	return b
}

// onDisk writes a file, alone in its directory.
func onDisk(tb testing.TB, data []byte) *os.File {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.Close() })
	return f
}

// fileOf is a file on the disk to upload, which may be copied beside it.
func fileOf(tb testing.TB, kind postern.Kind, f *os.File) network.File {
	tb.Helper()
	stat, err := f.Stat()
	if err != nil {
		tb.Fatal(err)
	}
	return network.File{Kind: kind, Body: f, Size: stat.Size(), Scratch: filepath.Dir(f.Name())}
}

// upload uploads a file for messages of a kind, and checks that nothing stays beside it.
func upload(tb testing.TB, s network.Session, kind postern.Kind, data []byte) network.Ref {
	tb.Helper()
	f := onDisk(tb, data)
	ref, err := s.Upload(tb.Context(), fileOf(tb, kind, f))
	if err != nil {
		tb.Fatalf("upload: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(f.Name())); err != nil || len(left) != 1 {
		tb.Errorf("%d files are in the directory, %v, want 1", len(left), err)
	}
	return ref
}

// download returns the content of a file.
func download(tb testing.TB, s network.Session, ref network.Ref) ([]byte, error) {
	tb.Helper()
	dst := onDisk(tb, []byte("what an earlier attempt left"))
	if err := s.Download(tb.Context(), ref, dst); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(dst)
	if err != nil {
		tb.Fatal(err)
	}
	return data, nil
}

// shown waits until a phone shows a message.
func shown(tb testing.TB, w world, number, id string) vendorsim.Shown {
	tb.Helper()
	for {
		change := w.vendor.Watch()
		if m, err := w.vendor.ShownMessage(number, id); err == nil {
			return m
		}
		<-change
	}
}

// opened returns the file of a message as the phone decrypts it.
func openedBy(tb testing.TB, w world, m vendorsim.Shown) []byte {
	tb.Helper()
	if m.Media == nil {
		tb.Fatalf("the phone shows a %s without a file", m.Type)
	}
	r, err := w.vendor.OpenMedia(*m.Media)
	if err != nil {
		tb.Fatalf("the phone opens the file: %v", err)
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		tb.Fatalf("the phone reads the file: %v", err)
	}
	return data
}

// mediaCase is a message with a file on both sides.
type mediaCase struct {
	content postern.Content
	file    network.Attachment
	phone   vendorsim.Content // without where the file is
}

func mediaCases() map[string]mediaCase {
	thumb, wave := []byte("\xff\xd8 a small picture"), bytes.Repeat([]byte{40}, 64)
	type media = vendorsim.Media
	once := postern.Extra{ViewOnce: true}
	small := network.Attachment{Thumbnail: thumb}
	return map[string]mediaCase{
		"image": {
			postern.Content{Kind: postern.KindImage, Text: "look", Media: &postern.Media{
				MIMEType: "image/png", Width: 40, Height: 30,
			}},
			small,
			vendorsim.Content{Type: vendorsim.TypeImage, Body: "look", Media: &media{
				MimeType: "image/png", Width: 40, Height: 30,
			}},
		},
		"image to see once": {
			postern.Content{Kind: postern.KindImage, Media: &postern.Media{MIMEType: "image/jpeg"}, Extra: once},
			small,
			vendorsim.Content{Type: vendorsim.TypeImage, Media: &media{MimeType: "image/jpeg", ViewOnce: true}},
		},
		"video": {
			postern.Content{Kind: postern.KindVideo, Text: "see", Media: &postern.Media{MIMEType: "video/mp4", Duration: 7}},
			small,
			vendorsim.Content{Type: vendorsim.TypeVideo, Body: "see", Media: &media{MimeType: "video/mp4", Seconds: 7}},
		},
		"gif": {
			postern.Content{
				Kind: postern.KindVideo, Media: &postern.Media{MIMEType: "video/mp4", Duration: 1},
				Extra: postern.Extra{GIF: true},
			},
			small,
			vendorsim.Content{Type: vendorsim.TypeVideo, Media: &media{MimeType: "video/mp4", Seconds: 1, GIF: true}},
		},
		"round video": {
			postern.Content{
				Kind: postern.KindVideo, Media: &postern.Media{MIMEType: "video/mp4", Duration: 5},
				Extra: postern.Extra{Round: true},
			},
			small,
			vendorsim.Content{Type: vendorsim.TypeVideo, Media: &media{MimeType: "video/mp4", Seconds: 5, Round: true}},
		},
		"audio": {
			postern.Content{Kind: postern.KindAudio, Media: &postern.Media{MIMEType: "audio/mpeg", Duration: 3}},
			network.Attachment{},
			vendorsim.Content{Type: vendorsim.TypeAudio, Media: &media{MimeType: "audio/mpeg", Seconds: 3}},
		},
		"voice": {
			postern.Content{Kind: postern.KindVoice, Media: &postern.Media{MIMEType: "audio/ogg; codecs=opus", Duration: 3}},
			network.Attachment{Waveform: wave},
			vendorsim.Content{Type: vendorsim.TypeVoice, Media: &media{
				MimeType: "audio/ogg; codecs=opus", Seconds: 3, Waveform: wave,
			}},
		},
		"voice to hear once": {
			postern.Content{Kind: postern.KindVoice, Media: &postern.Media{MIMEType: "audio/ogg; codecs=opus"}, Extra: once},
			network.Attachment{},
			vendorsim.Content{Type: vendorsim.TypeVoice, Media: &media{MimeType: "audio/ogg; codecs=opus", ViewOnce: true}},
		},
		"document": {
			postern.Content{Kind: postern.KindDocument, Media: &postern.Media{
				MIMEType: "application/pdf", Filename: "Größe 1.pdf",
			}},
			small,
			vendorsim.Content{Type: vendorsim.TypeDocument, Media: &media{
				MimeType: "application/pdf", FileName: "Größe 1.pdf",
			}},
		},
		"document with a caption": {
			postern.Content{Kind: postern.KindDocument, Text: "read", Media: &postern.Media{
				MIMEType: "text/plain", Filename: "a.txt",
			}},
			network.Attachment{},
			vendorsim.Content{Type: vendorsim.TypeDocument, Body: "read", Media: &media{
				MimeType: "text/plain", FileName: "a.txt",
			}},
		},
		"sticker": {
			postern.Content{Kind: postern.KindSticker, Media: &postern.Media{MIMEType: "image/webp", Width: 512, Height: 512}},
			network.Attachment{Animated: true},
			vendorsim.Content{Type: vendorsim.TypeSticker, Media: &media{
				MimeType: "image/webp", Width: 512, Height: 512, Animated: true,
			}},
		},
	}
}

// sizes are those of files around a block of the cipher and around what is read at once.
var sizes = []int{0, 1, 15, 16, 17, 32<<10 - 16, 32 << 10, 32<<10 + 1, 300_001}

func TestMediaReachesThePhone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	i := 0
	for name, tt := range mediaCases() {
		data := bytesOf(sizes[i%len(sizes)])
		i++
		m := network.Outbound{NetworkID: fmt.Sprintf("3EB00000000000000B%02d", i), ChatID: friendNumber, Content: tt.content}
		m.File = &tt.file
		m.File.Ref, m.File.MIMEType = upload(t, c, tt.content.Kind, data), tt.content.Media.MIMEType
		if _, err := c.Send(t.Context(), m); err != nil {
			t.Errorf("send %s: %v", name, err)
			continue
		}
		got := shown(t, w, friendNumber, m.NetworkID)
		if !bytes.Equal(openedBy(t, w, got), data) {
			t.Errorf("the file of %s is not what was sent", name)
		}
		if thumb := thumbnailOf(t, got.Raw); !bytes.Equal(thumb, tt.file.Thumbnail) {
			t.Errorf("the thumbnail of %s is %q", name, thumb)
		}
		want := *tt.phone.Media
		if rest := described(*got.Media); got.Type != tt.phone.Type || got.Body != tt.phone.Body || rest != described(want) {
			t.Errorf("%s is shown as %s %q %v, want %v", name, got.Type, got.Body, rest, described(want))
		}
	}
}

// described returns what a message says of a file beside where it is.
func described(m vendorsim.Media) string {
	return fmt.Sprint(
		m.MimeType, m.FileName, m.Seconds, m.Width, m.Height, m.GIF, m.Round, m.Animated, string(m.Waveform), m.ViewOnce,
	)
}

func thumbnailOf(tb testing.TB, raw []byte) []byte {
	tb.Helper()
	m := &waE2E.Message{}
	if err := proto.Unmarshal(raw, m); err != nil {
		tb.Fatal(err)
	}
	for _, w := range []*waE2E.FutureProofMessage{m.ViewOnceMessageV2, m.DocumentWithCaptionMessage} {
		if w != nil {
			m = w.GetMessage()
		}
	}
	return slices.Concat(m.GetImageMessage().GetJPEGThumbnail(), m.GetVideoMessage().GetJPEGThumbnail(),
		m.GetPtvMessage().GetJPEGThumbnail(), m.GetDocumentMessage().GetJPEGThumbnail())
}

func TestMediaOfPhonesArrives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	i := 0
	for name, tt := range mediaCases() {
		data := bytesOf(sizes[i%len(sizes)])
		i++
		tt.phone.Media.Data = data
		id, err := w.vendor.SendContent(t.Context(), ownNumber, friendNumber, tt.phone)
		if err != nil {
			t.Fatal(err)
		}
		m := networktest.Wait(t, c.Host, 1, byID(id))
		want := tt.content
		want.Media = new(*tt.content.Media)
		want.Media.Size, want.Media.Status = int64(len(data)), postern.MediaPending
		if got := m.Content; got.Kind != want.Kind || got.Text != want.Text || *got.Media != *want.Media ||
			got.ViewOnce != want.ViewOnce || got.GIF != want.GIF || got.Round != want.Round {
			t.Errorf("%s arrives as %+v %+v", name, got, got.Media)
		}
		if got, err := download(t, c, m.File); err != nil || !bytes.Equal(got, data) {
			t.Errorf("the file of %s has %d bytes, %v, want %d", name, len(got), err, len(data))
		}
	}
}

func TestMediaThatTheOwnerSendsIsEchoed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	data := bytesOf(5000)
	id, err := w.vendor.TypeContent(t.Context(), ownNumber, friendNumber, vendorsim.Content{
		Type: vendorsim.TypeImage, Body: "mine", Media: &vendorsim.Media{Data: data, ViewOnce: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := networktest.Wait(t, c.Host, 1, func(e network.Echo) bool { return e.NetworkID == id })
	if m.Content.Kind != postern.KindImage || m.Content.Text != "mine" || !m.Content.ViewOnce {
		t.Errorf("it is echoed as %+v", m.Content)
	}
	if got, err := download(t, c, m.File); err != nil || !bytes.Equal(got, data) {
		t.Errorf("its file has %d bytes, %v", len(got), err)
	}
}

// received lets the friend send a file, and returns the message that arrives.
func received(tb testing.TB, w world, c *networktest.Connection, data []byte) network.Inbound {
	tb.Helper()
	id, err := w.vendor.SendContent(tb.Context(), ownNumber, friendNumber, vendorsim.Content{
		Type: vendorsim.TypeDocument, Media: &vendorsim.Media{Data: data, FileName: "a.bin"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return networktest.Wait(tb, c.Host, 1, byID(id))
}

func fault(tb testing.TB, w world, f vendorsim.Fault) {
	tb.Helper()
	if err := w.vendor.Fault(tb.Context(), ownNumber, f); err != nil {
		tb.Fatal(err)
	}
}

func TestFailedDownloads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	data := bytesOf(100_000)
	for f, gone := range map[vendorsim.Fault]bool{
		"media:403": true, "media:404": true, "media:410": true, vendorsim.FaultMediaDamaged: true,
		vendorsim.FaultMediaCut: false, "media:500": false, "media:401": false,
	} {
		m := received(t, w, c, data)
		fault(t, w, f)
		_, err := download(t, c, m.File)
		if err == nil || errors.Is(err, network.ErrMediaGone) != gone || errors.Is(err, network.ErrMediaUseless) {
			t.Errorf("download with %s = %v, gone: %v", f, err, gone)
		}
		if got, err := download(t, c, m.File); err != nil || !bytes.Equal(got, data) {
			t.Errorf("download after %s = %d bytes, %v", f, len(got), err)
		}
	}
}

// TestSilentFailuresAreNoLossOfTheFile lets all downloads fail in the way after which
// whatsmeow continues as if it had the file. It takes 15 s, because whatsmeow waits.
func TestSilentFailuresAreNoLossOfTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	m := received(t, w, c, bytesOf(1000))
	fault(t, w, "media-every:503")
	_, err := download(t, c, m.File)
	if err == nil || errors.Is(err, network.ErrMediaGone) || errors.Is(err, network.ErrMediaUseless) {
		t.Errorf("download = %v, want an error that does not last", err)
	}
}

func TestEndOfAConnectionEndsItsTransfers(t *testing.T) {
	t.Parallel()
	log := &lines{}
	w := newWorld(t, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	c := w.live(t, ownNumber)
	m := received(t, w, c, bytesOf(1000))
	fault(t, w, "media-every:503")
	ended := make(chan error, 1)
	dst := onDisk(t, nil)
	go func() { ended <- c.Download(t.Context(), m.File, dst) }()
	log.await("retrying in") // whatsmeow waits before its next attempt
	promptly(t, func() {
		c.Stop(t)
		if err := <-ended; err == nil || errors.Is(err, network.ErrMediaGone) {
			t.Errorf("download = %v, want an error that does not last", err)
		}
	})
	if err := c.Download(t.Context(), m.File, dst); !errors.Is(err, network.ErrNotConnected) {
		t.Errorf("download without a connection = %v, want ErrNotConnected", err)
	}
	f := fileOf(t, postern.KindImage, dst)
	if _, err := c.Upload(t.Context(), f); !errors.Is(err, network.ErrNotConnected) {
		t.Errorf("upload without a connection = %v, want ErrNotConnected", err)
	}
	if err := c.RequestMedia(t.Context(), requestOf(m)); !errors.Is(err, network.ErrNotConnected) {
		t.Errorf("request without a connection = %v, want ErrNotConnected", err)
	}
}

func TestFailedUploads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	f := fileOf(t, postern.KindImage, onDisk(t, bytesOf(100_000)))
	for status, final := range map[int]bool{401: false, 403: false, 413: true, 503: false} {
		fault(t, w, vendorsim.Fault(fmt.Sprintf("upload:%d", status)))
		var rejected *network.Rejected
		if _, err := c.Upload(t.Context(), f); err == nil || asRejected(err, &rejected) != final {
			t.Errorf("upload refused with %d = %v, final: %v", status, err, final)
		}
		if _, err := c.Upload(t.Context(), f); err != nil {
			t.Errorf("upload after %d: %v", status, err)
		}
	}
	f.Kind = postern.KindText
	var rejected *network.Rejected
	if _, err := c.Upload(t.Context(), f); !asRejected(err, &rejected) {
		t.Errorf("upload for a text = %v, want Rejected", err)
	}
}

// TestPermissionToUploadIsRenewed lets an upload be refused, and looks for a new query.
func TestPermissionToUploadIsRenewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	upload(t, c, postern.KindImage, bytesOf(10))
	cli := c.Session.(*session).liveConn().cli
	known := func() *whatsmeow.MediaConn {
		//nolint:staticcheck // nothing else tells
		found, err := cli.DangerousInternals().RefreshMediaConn(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	first := known()
	upload(t, c, postern.KindImage, bytesOf(10))
	if known() != first {
		t.Error("a permission that is valid was renewed")
	}
	fault(t, w, "upload:401")
	if _, err := c.Upload(t.Context(), fileOf(t, postern.KindImage, onDisk(t, nil))); err == nil {
		t.Fatal("the upload was not refused")
	}
	upload(t, c, postern.KindImage, bytesOf(10))
	second := known()
	if second == first {
		t.Error("a permission that was refused was not renewed")
	}
	second.FetchedAt = second.FetchedAt.Add(-time.Duration(second.AuthTTL+1) * time.Second)
	second.TTL *= 10
	upload(t, c, postern.KindImage, bytesOf(10))
	if known() == second {
		t.Error("a permission that is over was not renewed")
	}
}

// TestTransfersUseLittleMemory sends and fetches a file that is far larger than what may be
// allocated meanwhile, by the vendor in the same process too.
func TestTransfersUseLittleMemory(t *testing.T) {
	vendor, err := vendorsim.Open(vendorsim.Options{Keys: vendorKeys, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(t, vendor.Close) })
	w := worldOf(t, vendor, Network{Dial: dialing(vendor)}, nil)
	c := w.live(t, ownNumber)
	const size = 64 << 20
	f := onDisk(t, nil)
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	dst := onDisk(t, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ref, err := c.Upload(t.Context(), fileOf(t, postern.KindDocument, f))
	if err == nil {
		err = c.Download(t.Context(), ref, dst)
	}
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
	if info, err := dst.Stat(); err != nil || info.Size() != size {
		t.Errorf("the file is %v, %v", info, err)
	}
}

// TestRetryOfMediaIsAnswered lets a recipient ask again for messages with a file.
func TestRetryOfMediaIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	conn := c.Session.(*session).liveConn()
	v := &run{conn: conn, session: c.Session.(*session)}
	lid, err := conn.recipient(t.Context(), friendNumber)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range mediaCases() {
		m := network.Outbound{NetworkID: "3EB0000000000000RETRY", ChatID: friendNumber, Content: tt.content, File: &tt.file}
		m.File.Ref, m.File.MIMEType = upload(t, c, tt.content.Kind, bytesOf(100)), tt.content.Media.MIMEType
		c.Host.Keep(m)
		first, err := conn.form(t.Context(), lid, m)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again := v.messageForRetry(lid, lid, m.NetworkID); !proto.Equal(first, again) {
			t.Errorf("the answer for %s is %v, want %v", name, again, first)
		}
	}
	m := network.Outbound{NetworkID: "3EB00000000000000BFF", ChatID: friendNumber, Content: postern.Content{
		Kind: postern.KindImage, Text: "look", Media: &postern.Media{MIMEType: "image/png"},
	}, File: &network.Attachment{Ref: upload(t, c, postern.KindImage, bytesOf(100))}}
	c.Host.Keep(m)
	fault(t, w, vendorsim.FaultRetry)
	if _, err := c.Send(t.Context(), m); err != nil {
		t.Fatalf("send: %v", err)
	}
	if got := openedBy(t, w, shown(t, w, friendNumber, m.NetworkID)); !bytes.Equal(got, bytesOf(100)) {
		t.Error("the file is not what was sent")
	}
}

func TestMediaCanBeQuoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	m := received(t, w, c, bytesOf(10))
	reply := outbound("3EB00000000000000BFE", friendNumber, "thanks")
	reply.Quote = &network.Quote{NetworkID: m.NetworkID, Content: m.Content}
	if _, err := c.Send(t.Context(), reply); err != nil {
		t.Fatalf("reply: %v", err)
	}
	if got := shown(t, w, friendNumber, reply.NetworkID); got.ReplyTo != m.NetworkID || got.Body != "thanks" {
		t.Errorf("the phone shows %+v", got)
	}
}
