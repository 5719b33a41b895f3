package bench

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

const (
	fileDevices   = 10
	filesByDevice = 20
)

// files measures pictures of two sizes, sent and received by ten devices, beside whatsmeow clients
// that upload or download each picture in memory. Each picture that is sent is another one, with a
// thumbnail that the bare clients do not make; a second figure is for one picture to many people.
func files(t *testing.T) (list []figure) {
	k := testkit.StartAsServed(t, "")
	c := k.Workspace("enterprise")
	hooks := c.Receive("media.ready")
	var devices []postern.Device
	for n := range fileDevices {
		devices = append(devices, c.Link(fmt.Sprintf(ourNumber, n)))
	}
	clients := bareClientsOf(t, k, fileDevices)
	clients.Fetch(t.Context())
	const total = fileDevices * filesByDevice
	ready := 0
	for _, size := range []int{100_000, 1 << 20} {
		name := fmt.Sprintf("pictures of %d kB ", size/1000)
		sent := pictureFigure{name: name + "sent", extra: "each another one, with a thumbnail"}
		same := pictureFigure{name: name + "sent, the same to all", extra: "uploaded once for each device"}
		got := pictureFigure{name: name + "received", extra: "written to media.ready at the receiver"}
		for range rounds {
			pictures, ids := make([][]byte, total), make([]postern.MediaID, total)
			for i := range pictures {
				pictures[i] = noisy(size)
				var m postern.Media
				c.Upload("a.jpg", bytes.NewReader(pictures[i]), &m)
				ids[i] = m.ID
			}
			sent.bare.add(t, total, func() {
				inParallel(fileDevices, func(n int) error {
					for i := range filesByDevice {
						if err := clients.SendImage(t.Context(), n, "15005550002", pictures[n*filesByDevice+i]); err != nil {
							return err
						}
					}
					return nil
				}, t)
			})
			sent.ours.add(t, total, func() { sendPictures(t, c, k, devices, ids) })
			var one postern.Media
			c.Upload("b.jpg", bytes.NewReader(noisy(size)), &one)
			same.ours.add(t, total, func() { sendPictures(t, c, k, devices, repeat(one.ID, total)) })
			same.bare = sent.bare
			ready += total
			got.ours.add(t, total, func() {
				writePictures(t, k, ourNumber, pictures)
				hooks.AwaitCount(postern.MediaReadyEv, ready)
			})
			got.bare.add(t, total, func() {
				writePictures(t, k, bareNumber, pictures)
				if err := clients.AwaitFetched(t.Context(), ready); err != nil {
					t.Fatal(err)
				}
			})
		}
		list = append(list, sent.figure(), same.figure(), got.figure())
	}
	return list
}

// pictureFigure is a figure about pictures, with the processor time of each. Both sides include
// the simulated vendor, which takes the files or hands them out.
type pictureFigure struct {
	name, extra string
	ours, bare  pieces
}

func (p pictureFigure) figure() figure {
	extra := fmt.Sprintf("%s; processor time %.2f ms, bare %.2f", p.extra, median(p.ours.costs), median(p.bare.costs))
	return figure{name: p.name, unit: "/s", extra: extra, ours: p.ours.rates, bare: p.bare.rates}
}

// pieces are samples of the pieces per second and of the processor time of each, in milliseconds.
type pieces struct{ rates, costs []float64 }

// add measures do, which does n pieces.
func (p *pieces) add(t *testing.T, n int, do func()) {
	t.Helper()
	before := processorTime(t)
	p.rates = append(p.rates, timed(n, do))
	p.costs = append(p.costs, (processorTime(t)-before).Seconds()*1000/float64(n))
}

func repeat(id postern.MediaID, n int) []postern.MediaID {
	list := make([]postern.MediaID, n)
	for i := range list {
		list[i] = id
	}
	return list
}

// noisy is a JPEG file of about a size that is like no other.
func noisy(size int) []byte {
	side := 16
	for ; side*side < size*2/3; side += 16 {
		continue
	}
	img := image.NewGray(image.Rect(0, 0, side, side))
	for i := range img.Pix {
		img.Pix[i] = color.Gray{uint8(rand.Uint32())}.Y
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 90}); err != nil {
		panic(err) // cannot happen: a buffer takes everything
	}
	return append(b.Bytes(), make([]byte, max(0, size-b.Len()))...)
}

func sendPictures(t *testing.T, c *testkit.Client, k *testkit.Kit, list []postern.Device, ids []postern.MediaID) {
	t.Helper()
	inParallel(len(list), func(n int) error {
		for i := range filesByDevice {
			call := caller(c.Key, "POST", k.URL()+"/v1/messages", `{"deviceId":"`+string(list[n].ID)+
				`","to":"+15005550002","type":"image","media":{"id":"`+string(ids[n*filesByDevice+i])+`"}}`, 202)
			if err := call(); err != nil {
				return err
			}
		}
		return nil
	}, t)
	for _, d := range list {
		awaitNewestSent(t, c, d.ID)
	}
}

// awaitNewestSent waits until the vendor has confirmed the newest message of a device, which has
// a single chat, and so sends its messages in order. Looking for any message that waits would take
// as long as sending a few.
func awaitNewestSent(t *testing.T, c *testkit.Client, device postern.DeviceID) {
	t.Helper()
	var newest struct{ Data []postern.Message }
	c.Call("GET", "/v1/messages?limit=1&deviceId="+string(device), nil, 200, &newest)
	id := string(newest.Data[0].ID)
	testkit.Eventually(t, "the newest message to be sent", func() (bool, any) {
		var m postern.Message
		c.Call("GET", "/v1/messages/"+id, nil, 200, &m)
		return m.Status != postern.Queued && m.Status != postern.Sending, m.Status
	})
}

// writePictures lets a contact send its pictures to the accounts.
func writePictures(t *testing.T, k *testkit.Kit, number string, pictures [][]byte) {
	t.Helper()
	inParallel(fileDevices, func(n int) error {
		for i := range filesByDevice {
			_, err := k.Vendor.SendContent(t.Context(), fmt.Sprintf(number, n), "+15551234567", vendorsim.Content{
				Type: vendorsim.TypeImage, Media: &vendorsim.Media{MimeType: "image/jpeg", Data: pictures[n*filesByDevice+i]},
			})
			if err != nil {
				return err
			}
		}
		return nil
	}, t)
}
