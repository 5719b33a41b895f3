package whatsapp

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/internal/network/whatsapp/content"
	"postern/internal/postern"
	"postern/vendorsim"
)

func requestOf(m network.Inbound) network.MediaRequest {
	return network.MediaRequest{NetworkID: m.NetworkID, ChatID: m.ChatID, Ref: m.File}
}

func offerOf(m network.Inbound) func(network.Offered) bool {
	return func(o network.Offered) bool { return o.NetworkID == m.NetworkID }
}

func TestPhoneUploadsAFileAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	data := bytesOf(70_000)
	for name, nameChat := range map[string]func(network.Inbound) string{
		"chat":       func(m network.Inbound) string { return m.ChatID },
		"LID":        func(m network.Inbound) string { return postern.ChatOfLID(m.FromLID) },
		"other name": func(m network.Inbound) string { return m.ChatID },
	} {
		if name == "other name" {
			fault(t, w, vendorsim.FaultOtherNames)
		}
		m := received(t, w, c, data)
		fault(t, w, vendorsim.FaultMediaExpired)
		if _, err := download(t, c, m.File); !errors.Is(err, network.ErrMediaGone) {
			t.Fatalf("download = %v, want ErrMediaGone", err)
		}
		request := requestOf(m)
		request.ChatID = nameChat(m)
		if err := c.RequestMedia(t.Context(), request); err != nil {
			t.Fatalf("request: %v", err)
		}
		offer := networktest.Wait(t, c.Host, 1, offerOf(m))
		if got, err := download(t, c, offer.Ref); err != nil || !bytes.Equal(got, data) {
			t.Errorf("by %s: the file has %d bytes, %v", name, len(got), err)
		}
	}
}

func TestPhoneUploadsAFileOfItsOwnAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	data := bytesOf(100)
	id, err := w.vendor.TypeContent(t.Context(), ownNumber, friendNumber, vendorsim.Content{
		Type: vendorsim.TypeAudio, Media: &vendorsim.Media{Data: data},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := networktest.Wait(t, c.Host, 1, func(e network.Echo) bool { return e.NetworkID == id })
	fault(t, w, vendorsim.FaultMediaExpired)
	request := network.MediaRequest{NetworkID: id, ChatID: m.ChatID, FromMe: true, Ref: m.File}
	if err := c.RequestMedia(t.Context(), request); err != nil {
		t.Fatalf("request: %v", err)
	}
	offer := networktest.Wait(t, c.Host, 1, func(o network.Offered) bool { return o.NetworkID == id })
	if got, err := download(t, c, offer.Ref); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the file has %d bytes, %v", len(got), err)
	}
}

func TestPhoneHasNotGotAFileEither(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	gone, silent, other := received(t, w, c, bytesOf(10)), received(t, w, c, bytesOf(10)), received(t, w, c, bytesOf(10))
	for _, step := range []struct {
		f vendorsim.Fault
		m network.Inbound
	}{{vendorsim.FaultMediaSilent, silent}, {vendorsim.FaultMediaGone, gone}} {
		fault(t, w, step.f)
		if err := c.RequestMedia(t.Context(), requestOf(step.m)); err != nil {
			t.Fatalf("request: %v", err)
		}
	}
	if offer := networktest.Wait(t, c.Host, 1, offerOf(gone)); offer.Ref != nil {
		t.Errorf("the phone offers %q", offer.Ref)
	}
	wrong := requestOf(other) // with another file's key the phone cannot read the request
	wrong.Ref = gone.File
	if err := c.RequestMedia(t.Context(), wrong); err != nil {
		t.Fatalf("request: %v", err)
	}
	if err := c.RequestMedia(t.Context(), requestOf(silent)); err != nil {
		t.Fatalf("request again: %v", err)
	}
	if offer := networktest.Wait(t, c.Host, 1, offerOf(silent)); offer.Ref == nil {
		t.Error("a phone that has the file does not offer it")
	}
	if got := networktest.All(c.Host, offerOf(other)); len(got) != 0 {
		t.Errorf("an answer that cannot be read is %+v", got)
	}
	useless := requestOf(other)
	useless.Ref = nil
	if err := c.RequestMedia(t.Context(), useless); !errors.Is(err, network.ErrMediaUseless) {
		t.Errorf("request of nothing = %v, want ErrMediaUseless", err)
	}
}

func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	var r requests
	for i := range 3 * maxRequested {
		r.add(fmt.Sprint(i), content.File{})
	}
	if _, ok := r.get(fmt.Sprint(3*maxRequested - 1)); !ok || len(r.files) != maxRequested {
		t.Errorf("%d requests are remembered, the last one: %v", len(r.files), ok)
	}
}
