package networktest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"postern/internal/network"
	"postern/internal/postern"
)

// sample returns a file that is longer than a buffer and no multiple of one.
func sample() []byte { return bytes.Repeat([]byte("a file of the conformance suite "), 5001)[:160_001] }

// onDisk makes a file with content.
func onDisk(t *testing.T, data []byte) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err == nil {
		_, err = f.Write(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// fetched returns the content of a file that a session can download.
func fetched(t *testing.T, s network.Session, ref network.Ref) []byte {
	t.Helper()
	dst := onDisk(t, nil)
	if err := s.Download(t.Context(), ref, dst); err != nil {
		t.Fatalf("download: %v", err)
	}
	data, err := io.ReadAll(dst)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// attached lets the friend send a file, and returns the message that arrives.
func attached(t *testing.T, w World, c *Connection) network.Inbound {
	t.Helper()
	id, err := w.Vendor.Attach(t.Context(), ownNumber, friendNumber, sample())
	if err != nil {
		t.Fatalf("contact sends a file: %v", err)
	}
	return Wait(t, c.Host, 1, byID(id))
}

// fileOf is a file on the disk to upload, which may be copied beside it.
func fileOf(t *testing.T, kind postern.Kind, f *os.File) network.File {
	t.Helper()
	stat, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return network.File{Kind: kind, Body: f, Size: stat.Size(), Scratch: filepath.Dir(f.Name())}
}

func testUpload(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	src := onDisk(t, sample())
	ref, err := c.Upload(t.Context(), fileOf(t, postern.KindDocument, src))
	if err != nil {
		t.Fatalf("upload: %v", err)
	}
	const id = "3EB000000000000000BA"
	m := outbound(id, friendNumber, "a caption")
	m.Content.Kind, m.Content.Media = postern.KindDocument, &postern.Media{MIMEType: "text/plain", Filename: "a.txt"}
	m.File = &network.Attachment{Ref: ref, MIMEType: "text/plain"}
	if _, err := c.Send(t.Context(), m); err != nil {
		t.Fatalf("send: %v", err)
	}
	mustShow(t, w, friendNumber, id, "a caption")
	if got, err := w.Vendor.File(friendNumber, id); err != nil || !bytes.Equal(got, sample()) {
		t.Errorf("the phone reads %d bytes, %v, want %d", len(got), err, len(sample()))
	}
	var rejected *network.Rejected
	if _, err := c.Upload(t.Context(), fileOf(t, postern.KindText, src)); !errors.As(err, &rejected) {
		t.Errorf("upload for a text = %v, want Rejected", err)
	}
	m.NetworkID, m.File = "3EB000000000000000BB", nil
	if _, err := c.Send(t.Context(), m); !errors.As(err, &rejected) || rejected.Code != postern.MediaUnusable {
		t.Errorf("send without the file = %v, want Rejected with %s", err, postern.MediaUnusable)
	}
}

func testDownload(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	m := attached(t, w, c)
	media := m.Content.Media
	if m.Content.Kind != postern.KindDocument || media == nil || media.Size != int64(len(sample())) ||
		media.Status != postern.MediaPending || media.ID != "" || media.SHA256 != "" {
		t.Errorf("inbound = %+v with %+v, want a pending document", m.Content, media)
	}
	if got := fetched(t, c, m.File); !bytes.Equal(got, sample()) {
		t.Errorf("the file has %d bytes, want %d", len(got), len(sample()))
	}
	for _, ref := range []network.Ref{nil, network.Ref("nothing")} {
		if err := c.Download(t.Context(), ref, onDisk(t, nil)); !errors.Is(err, network.ErrMediaUseless) {
			t.Errorf("download of %q = %v, want ErrMediaUseless", ref, err)
		}
	}
}

func testFailedTransfers(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	m := attached(t, w, c)
	fault(t, w, FaultUpload)
	src := fileOf(t, postern.KindImage, onDisk(t, sample()))
	var rejected *network.Rejected
	if _, err := c.Upload(t.Context(), src); err == nil || errors.As(err, &rejected) {
		t.Errorf("refused upload = %v, want an error that does not last", err)
	}
	if ref, err := c.Upload(t.Context(), src); err != nil || !bytes.Equal(fetched(t, c, ref), sample()) {
		t.Errorf("upload again: %v", err)
	}
	fault(t, w, FaultMedia)
	if err := c.Download(t.Context(), m.File, onDisk(t, nil)); !errors.Is(err, network.ErrMediaGone) {
		t.Errorf("download of nothing = %v, want ErrMediaGone", err)
	}
	if got := fetched(t, c, m.File); !bytes.Equal(got, sample()) {
		t.Errorf("the file has %d bytes after a failure, want %d", len(got), len(sample()))
	}
}

// ask asks the phone for the file of a message.
func ask(t *testing.T, s network.Session, m network.Inbound) {
	t.Helper()
	request := network.MediaRequest{NetworkID: m.NetworkID, ChatID: m.ChatID, Ref: m.File}
	if err := s.RequestMedia(t.Context(), request); err != nil {
		t.Fatalf("request: %v", err)
	}
}

func offerFor(m network.Inbound) func(network.Offered) bool {
	return func(o network.Offered) bool { return o.NetworkID == m.NetworkID }
}

func testOffer(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	m := attached(t, w, c)
	fault(t, w, FaultMediaExpired)
	if err := c.Download(t.Context(), m.File, onDisk(t, nil)); !errors.Is(err, network.ErrMediaGone) {
		t.Errorf("download of an expired file = %v, want ErrMediaGone", err)
	}
	fault(t, w, FaultMediaSilent)
	ask(t, c, m)
	ask(t, c, m)
	offer := Wait(t, c.Host, 1, offerFor(m))
	if got := fetched(t, c, offer.Ref); !bytes.Equal(got, sample()) {
		t.Errorf("the file has %d bytes, want %d", len(got), len(sample()))
	}
	fault(t, w, FaultMediaGone)
	ask(t, c, m)
	if offer := Wait(t, c.Host, 2, offerFor(m)); offer.Ref != nil {
		t.Errorf("a phone without the file offers %q", offer.Ref)
	}
}

func testOfferRefused(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	m := attached(t, w, c)
	c.Host.Rule(refuses[network.Offered])
	ask(t, c, m)
	c.EndedAs(t, postern.Disconnected, "store-unavailable")
	c.Host.Rule(nil)
	c = Reconnect(t, c.Session, c.Host).Live(t, 2)
	if offer := Wait(t, c.Host, 1, offerFor(m)); !bytes.Equal(fetched(t, c, offer.Ref), sample()) {
		t.Error("the offered file is another one")
	}
}

func testMediaOffline(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	m := attached(t, w, c)
	c.Stop(t)
	f := onDisk(t, sample())
	_, uploaded := c.Upload(t.Context(), fileOf(t, postern.KindImage, f))
	for did, err := range map[string]error{
		"upload": uploaded, "download": c.Download(t.Context(), m.File, f),
		"request": c.RequestMedia(t.Context(), network.MediaRequest{
			NetworkID: m.NetworkID, ChatID: m.ChatID, Ref: m.File,
		}),
	} {
		if !errors.Is(err, network.ErrNotConnected) {
			t.Errorf("%s = %v, want ErrNotConnected", did, err)
		}
	}
}
