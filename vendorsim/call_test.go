package vendorsim_test

import (
	"errors"
	"testing"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow/types/events"
)

// A call rings once at each companion, also at one that was offline, and its end follows.
func TestPhonesCall(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	id, err := v.Call(t.Context(), alice, bob, vendorsim.Call{Video: true})
	if err != nil {
		t.Fatal(err)
	}
	offer := await[*events.CallOffer](a, "the call", nil)
	if _, video := offer.Data.GetOptionalChildByTag("video"); !video || offer.CallID != id ||
		offer.CallCreatorAlt.User != bob[1:] {
		t.Errorf("the offer is %+v", offer)
	}
	if err := v.HangUp(t.Context(), alice, bob, id); err != nil {
		t.Fatal(err)
	}
	if end := await[*events.CallTerminate](a, "the end of the call", nil); end.CallID != id {
		t.Errorf("the end is that of %s, want %s", end.CallID, id)
	}
	acknowledged := func() bool { return v.Accounts()[0].Queued == 0 }
	until(t, v, "the call is acknowledged", acknowledged)
	a.wa.Disconnect()
	if _, err := v.Call(t.Context(), alice, carol, vendorsim.Call{Group: true}); err != nil {
		t.Fatal(err)
	}
	if err := a.wa.Connect(); err != nil {
		t.Fatal(err)
	}
	if notice := await[*events.CallOfferNotice](a, "the call to several", nil); notice.Type != "group" || notice.Media != "audio" {
		t.Errorf("the notice is %+v", notice)
	}
	write(t, v, bob, "hello")
	a.message("hello") // the calls block nothing
	until(t, v, "everything is acknowledged", acknowledged)
	if n := count[*events.CallOffer](a); n != 0 {
		t.Errorf("the first call came %d times more", n)
	}
	if _, err := v.Call(t.Context(), carol, bob, vendorsim.Call{}); !errors.Is(err, vendorsim.ErrUnknownAccount) {
		t.Errorf("a call to nobody = %v", err)
	}
}
