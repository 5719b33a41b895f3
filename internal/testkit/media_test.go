package testkit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// sample reads a recording.
func sample(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "media", "ogg", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// picture is a PNG or JPEG file.
func picture(t *testing.T, encode func(io.Writer, image.Image) error) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 64, 48))
	for i := range 64 * 48 {
		img.Set(i%64, i/64, color.RGBA{uint8(i), uint8(i >> 3), uint8(i >> 5), 255})
	}
	var b bytes.Buffer
	if err := encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asJPEG(w io.Writer, img image.Image) error { return jpeg.Encode(w, img, nil) }

// fileCase is a file, and a kind of message that carries it.
type fileCase struct {
	members  map[string]any
	filename string
	content  []byte
	sentAs   string // MIME type that the phone gets
	changed  bool   // the phone gets another file
}

// fileKinds are the kinds of messages with files. Videos are made by package media's tests.
func fileKinds(t *testing.T) map[string]fileCase {
	photo := picture(t, asJPEG)
	return map[string]fileCase{
		"image":           {map[string]any{"type": "image", "body": "look"}, "a.jpg", photo, "image/jpeg", false},
		"image, one view": {map[string]any{"type": "image", "viewOnce": true}, "a.jpg", photo, "image/jpeg", false},
		"audio":           {map[string]any{"type": "audio"}, "a.ogg", sample(t, "stereo.ogg"), "audio/ogg; codecs=opus", false},
		"voice":           {map[string]any{"type": "voice"}, "a.ogg", sample(t, "voice.ogg"), "audio/ogg; codecs=opus", true},
		"document": {
			map[string]any{"type": "document", "body": "our offer"}, "offer.txt", []byte("17 apples\n"), "text/plain", false,
		},
		"sticker": {map[string]any{"type": "sticker"}, "a.png", picture(t, png.Encode), "image/webp", true},
	}
}

// upload uploads a file through the API.
func uploadFile(t *testing.T, c *testkit.Client, name string, content []byte) (m postern.Media) {
	t.Helper()
	c.Upload(name, bytes.NewReader(content), &m)
	sum := sha256.Sum256(content)
	if m.SHA256 != hex.EncodeToString(sum[:]) || m.Size != int64(len(content)) || m.Status != postern.MediaReady {
		t.Errorf("the upload of %s is %+v", name, m)
	}
	return m
}

// TestFilesGoBothWays sends a file of each kind to a phone that decrypts it, and lets a phone send
// one, which arrives by webhook and is downloaded.
func TestFilesGoBothWays(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("enterprise")
		hooks := c.Receive("message.received", "media.*")
		d := c.Link(phone)
		ready := 0
		for name, tt := range fileKinds(t) {
			t.Run(name, func(t *testing.T) {
				file := uploadFile(t, c, tt.filename, tt.content)
				sendFile(t, k, c, d, file, tt)
				if tt.members["viewOnce"] != nil {
					return
				}
				ready++
				receiving{c, d, hooks, ready}.file(t, file, tt)
			})
		}
	})
}

func withFile(file postern.Media, members map[string]any, more map[string]any) map[string]any {
	body := map[string]any{"media": map[string]any{"id": file.ID}}
	for _, list := range []map[string]any{members, more} {
		for name, value := range list {
			body[name] = value
		}
	}
	return body
}

// sendFile sends a message with a file, and reads it on the recipient's phone.
func sendFile(t *testing.T, k *testkit.Kit, c *testkit.Client, d postern.Device, file postern.Media, tt fileCase) {
	t.Helper()
	var m postern.Message
	c.Call("POST", "/v1/messages", withFile(file, tt.members, map[string]any{"deviceId": d.ID, "to": reader}), 202, &m)
	m = c.AwaitMessage(m.ID, postern.Read)
	if m.Content.Media == nil || m.Content.Media.ID != file.ID || m.Content.Media.Filename != tt.filename {
		t.Errorf("the message's file is %+v", m.Content.Media)
	}
	shown, err := k.Vendor.ShownMessage(reader, m.NetworkID)
	if err != nil || shown.Media == nil {
		t.Fatalf("the phone shows %+v, %v", shown, err)
	}
	if shown.Type != tt.members["type"] || shown.Media.MimeType != tt.sentAs ||
		shown.Media.ViewOnce != (tt.members["viewOnce"] != nil) ||
		tt.members["body"] != nil && shown.Body != tt.members["body"] {
		t.Errorf("the phone shows a %s, %q with %+v", shown.Type, shown.Body, shown.Media)
	}
	if tt.members["type"] == "sticker" && (shown.Media.Width != 512 || shown.Media.Height != 512) {
		t.Errorf("the sticker has %d × %d pixels", shown.Media.Width, shown.Media.Height)
	}
	r, err := k.Vendor.OpenMedia(*shown.Media)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil || len(got) == 0 || !tt.changed && !bytes.Equal(got, tt.content) {
		t.Errorf("the phone gets %d bytes, %v, want %d", len(got), err, len(tt.content))
	}
}

// receiving is a device to which a contact sends its nth message.
type receiving struct {
	c     *testkit.Client
	d     postern.Device
	hooks *testkit.Receiver
	n     int
}

// file lets the contact send a message with a file, and downloads it.
func (r receiving) file(t *testing.T, file postern.Media, tt fileCase) {
	t.Helper()
	r.c.Call("POST", "/v1/sandbox/devices/"+string(r.d.ID)+"/inbound",
		withFile(file, tt.members, map[string]any{"from": customer}), 200, nil)
	arrived, _ := r.hooks.AwaitCount(postern.MessageReceived, r.n)[r.n-1].Event["message"].(map[string]any)
	before, _ := arrived["media"].(map[string]any)
	if arrived["type"] != tt.members["type"] || before["status"] != "pending" || before["sha256"] != nil {
		t.Errorf("message.received = %v", arrived)
	}
	message, _ := r.hooks.AwaitCount(postern.MediaReadyEv, r.n)[r.n-1].Event["message"].(map[string]any)
	after, _ := message["media"].(map[string]any)
	if message["id"] != arrived["id"] || after["id"] != before["id"] || after["sha256"] != file.SHA256 ||
		after["status"] != "ready" {
		t.Errorf("media.ready = %v", message)
	}
	id, _ := after["id"].(string)
	if got := r.c.Download(postern.MediaID(id)); !bytes.Equal(got, tt.content) {
		t.Errorf("the file has %d bytes, want %d", len(got), len(tt.content))
	}
}

// TestFilesOfBothEndsMayFail: what happens when a file cannot be fetched, or only later.
func TestFilesOfBothEndsMayFail(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("enterprise")
		hooks := c.Receive("media.*", "message.failed")
		d := c.Link(phone)
		content := []byte("17 apples\n")
		fault := func(list ...vendorsim.Fault) {
			for _, f := range list {
				if err := k.Vendor.Fault(t.Context(), phone, f); err != nil {
					t.Fatal(err)
				}
			}
		}
		receive := func() {
			c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound", map[string]any{
				"from": customer, "type": "document",
				"media": map[string]any{"data": content, "mimeType": "text/plain", "filename": "a.txt"},
			}, 200, nil)
		}
		for i, f := range []vendorsim.Fault{"media:410", "media:404", "media:403", vendorsim.FaultMediaDamaged} {
			fault(f)
			receive() // the phone uploads it again
			hooks.AwaitCount(postern.MediaReadyEv, i+1)
		}
		fault(vendorsim.FaultMedia, vendorsim.FaultMediaGone)
		receive()
		failed, _ := hooks.Await(postern.MediaFailedEv)[0].Event["message"].(map[string]any)
		media, _ := failed["media"].(map[string]any)
		if media["status"] != "failed" || media["recoverable"] != nil || media["detail"] == "" {
			t.Errorf("media.failed = %v", failed)
		}
		id, _ := media["id"].(string)
		c.Call("GET", "/v1/media/"+id+"/content", nil, 404, nil)

		fault("upload:503") // is tried again
		var m postern.Message
		c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": d.ID, "to": reader, "type": "document",
			"media": map[string]any{"data": content, "mimeType": "text/plain", "filename": "a.txt"},
		}, 202, &m)
		c.AwaitMessage(m.ID, postern.Read)
		used := usedMessages(c)
		c.Call("POST", "/v1/messages", map[string]any{ // a picture in name only
			"deviceId": d.ID, "to": reader, "type": "image",
			"media": map[string]any{"data": picture(t, asJPEG)[:300], "mimeType": "image/jpeg"},
		}, 202, &m)
		if m = c.AwaitMessage(m.ID, postern.Failed); m.Error.Code != postern.MediaUnusable {
			t.Errorf("the message failed with %+v", m.Error)
		}
		if now := usedMessages(c); now != used {
			t.Errorf("a message that was never sent costs %d", now-used)
		}
	})
}

func usedMessages(c *testkit.Client) (n int) {
	var u struct{ Messages struct{ Used int } }
	c.Call("GET", "/v1/usage", nil, 200, &u)
	return u.Messages.Used
}

// TestFilesAtURLsAreFetched: after the message was accepted, and only from where that is allowed.
func TestFilesAtURLsAreFetched(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("enterprise")
		d := c.Link(phone)
		hold := make(chan struct{})
		mux := http.NewServeMux()
		mux.HandleFunc("/slow/offer.txt", func(w http.ResponseWriter, _ *http.Request) {
			<-hold
			_, _ = io.WriteString(w, "17 apples\n")
		})
		mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/slow/offer.txt", http.StatusFound)
		})
		srv := httptest.NewServer(mux)
		t.Cleanup(srv.Close)
		ask := func(to, url string) (m postern.Message) {
			c.Call("POST", "/v1/messages", map[string]any{
				"deviceId": d.ID, "to": to, "type": "document", "media": map[string]any{"url": url, "filename": "offer.txt"},
			}, 202, &m)
			return m
		}
		slow, moved := ask(reader, srv.URL+"/slow/offer.txt"), ask(customer, srv.URL+"/moved")
		behind := send(c, d, reader, "in the same chat")
		other := send(c, d, "+15551234599", "in another chat")
		c.AwaitMessage(other.ID, postern.Delivered) // does not wait
		var m postern.Message
		if c.Call("GET", "/v1/messages/"+string(behind.ID), nil, 200, &m); m.Status != postern.Queued {
			t.Errorf("a message behind one whose file is not there is %s", m.Status)
		}
		close(hold)
		c.AwaitMessage(slow.ID, postern.Read)
		c.AwaitMessage(behind.ID, postern.Read)
		c.AwaitMessage(moved.ID, postern.Delivered)
		mux.HandleFunc("/ftp", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "ftp://example.com/offer.txt", http.StatusFound)
		})
		elsewhere := c.AwaitMessage(ask(reader, srv.URL+"/ftp").ID, postern.Failed)
		if !strings.Contains(elsewhere.Error.Detail, "redirects to a URL that is not allowed") {
			t.Errorf("the message with a redirection failed with %+v", elsewhere.Error)
		}
		gone := ask(reader, srv.URL+"/gone")
		if m := c.AwaitMessage(gone.ID, postern.Failed); m.Error.Code != postern.MediaUnusable ||
			!strings.Contains(m.Error.Detail, "404") {
			t.Errorf("the message failed with %+v", m.Error)
		}
		var later, held postern.Message
		lost := map[string]any{
			"deviceId": d.ID, "to": reader, "type": "document",
			"media":  map[string]any{"url": srv.URL + "/gone", "filename": "offer.txt"},
			"sendAt": postern.TimeOf(time.Now().Add(24 * time.Hour)),
		}
		c.Call("POST", "/v1/messages", lost, 202, &later)
		c.Call("POST", "/v1/devices/"+string(d.ID)+"/pause", nil, 200, nil)
		delete(lost, "sendAt")
		lost["whenDisconnected"] = "queue"
		c.Call("POST", "/v1/messages", lost, 202, &held)
		for _, m := range []postern.Message{later, held} {
			if m = c.AwaitMessage(m.ID, postern.Failed); m.Error.Code != postern.MediaUnusable || m.Content.Media == nil ||
				m.Content.Media.Status != postern.MediaFailed {
				t.Errorf("a message that cannot be sent yet failed with %+v and the file %+v", m.Error, m.Content.Media)
			}
		}
		if n := usedMessages(c); n != 4 {
			t.Errorf("%d messages count, want those that were sent", n)
		}
	})
}

var largest = flag.Int("largest", 8, "MiB of the file that goes there and back")

// TestLargeFileGoesBothWays: much noise, byte-equal at the phone and back.
func TestLargeFileGoesBothWays(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("enterprise")
	hooks := c.Receive("media.*")
	d := c.Link(phone)
	content := make([]byte, *largest<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	file := uploadFile(t, c, "noise.bin", content)
	sendFile(t, k, c, d, file, fileCase{
		map[string]any{"type": "document"}, "noise.bin", content, "application/octet-stream", false,
	})
	c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound",
		withFile(file, map[string]any{"type": "document"}, map[string]any{"from": customer}), 200, nil)
	message, _ := hooks.Await(postern.MediaReadyEv)[0].Event["message"].(map[string]any)
	media, _ := message["media"].(map[string]any)
	id, _ := media["id"].(string)
	if got := c.Download(postern.MediaID(id)); !bytes.Equal(got, content) {
		t.Errorf("the file came back with %d bytes, or changed", len(got))
	}
}
