package browsertest

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"testing"

	. "postern/internal/dash/page"
	"postern/internal/testkit"

	"github.com/chromedp/chromedp"
)

// Conversations show messages of every kind, and forms in every state, without the server
// behind them.
func TestEveryKindIsForEverybody(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle("/assets/", Assets())
	mux.HandleFunc("/media/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(picture(t, 640, 360))
	})
	for _, s := range samples() {
		mux.HandleFunc("/samples/"+s.name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Security-Policy", Policy)
			_, _ = w.Write([]byte(render(t, s.page)))
		})
	}
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	b := open(t, srv.URL)
	for _, name := range []string{
		"chat-kinds", "chat-options", "chat-reply", "chat-edit", "chat-vote", "chat-vote-many", "chat-delete", "message-kind",
		"chats", "phone", "messages", "message-refused", "devices", "device-health", "webhook-form", "webhook-form-details",
		"webhook-active", "delivery",
	} {
		b.goTo("/samples/" + name)
		b.looks(name)
		b.byKeyboard()
	}
}

// picture is a PNG file with a gradient.
func picture(t *testing.T, width, height int) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for x := range width {
		for y := range height {
			img.Set(x, y, color.RGBA{uint8(255 * x / width), 120, uint8(255 * y / height), 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A file is dropped onto a conversation and sent with a caption. The contact's phone shows it,
// and the contact sends one back.
func TestFilesAreSentAndReceived(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	device := b.device(k)
	b.goTo(device + "/phone")
	b.do(chromedp.Evaluate[chromedp.Void](chosen("file"), chromedp.EvalAwaitPromise))
	b.fill("#body", "Is this the gate?")
	b.press(`form[action$="/write"] button`)
	b.sees("The contact's message was sent.")
	b.sees("Is this the gate?")
	b.looks("phone-picture")
	b.goTo("/messages/chats")
	b.awaits("Photo: Is this the gate?")
	b.press(`main li a`)
	b.awaits("Is this the gate?")
	loaded, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](`new Promise((done) => {
		const look = () => { const i = document.querySelector('#talk img'); i?.complete && i.naturalWidth ? done(i.naturalWidth) : setTimeout(look, 50) }
		look()
	})`, chromedp.EvalAwaitPromise))
	if b.must(err); loaded != 320 {
		t.Errorf("the picture is %d pixels wide, want 320", loaded)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`(async () => {
		`+drawing+`
		const transfer = new DataTransfer()
		transfer.items.add(file)
		const to = document.querySelector('[data-drops]')
		for (const kind of ['dragover', 'drop']) to.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }))
	})()`, chromedp.EvalAwaitPromise))
	b.fill("#body", "No, this is.")
	b.press("#write button.btn-primary")
	b.awaits("No, this is.")
	b.awaits("Delivered")
	b.looks("chat-picture")
	b.press(`#talk li:first-of-type a[href*="message="]`)
	b.sees("Another emoji")
	b.looks("chat-reaction")
	b.press(`#write button[name="emoji"]`)
	b.awaits("from You")
}

// drawing makes a picture in the browser.
const drawing = `const canvas = new OffscreenCanvas(320, 200)
	const paint = canvas.getContext('2d')
	paint.fillStyle = '#0b6e4f'
	paint.fillRect(20, 20, 280, 160)
	const file = new File([await canvas.convertToBlob()], 'gate.png', { type: 'image/png' })`

// chosen puts a picture into a field.
func chosen(field string) string {
	return `(async () => {
		` + drawing + `
		const transfer = new DataTransfer()
		transfer.items.add(file)
		document.getElementById('` + field + `').files = transfer.files
	})()`
}
