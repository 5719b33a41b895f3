package networktest_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/internal/postern"
)

func TestFakeConforms(t *testing.T) {
	networktest.TestDriver(t, func(*testing.T) networktest.World {
		fake := networktest.NewFake()
		return networktest.World{Driver: fake, Vendor: fake}
	})
}

func TestFakeLinkExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := networktest.NewFake()
		rec := &networktest.Recorder{}
		var failed *network.LinkError
		if err := fake.Link(t.Context(), rec, ""); !errors.As(err, &failed) || !failed.Expired ||
			failed.Reason != "timeout" {
			t.Errorf("link = %v, want an expired *LinkError", err)
		}
		if codes := networktest.All(rec, networktest.Any[network.Code]); len(codes) != 3 {
			t.Errorf("%d codes were shown, want 3", len(codes))
		}
	})
}

func TestFakeAnswersAsScripted(t *testing.T) {
	fake := networktest.NewFake()
	w := networktest.World{Driver: fake, Vendor: fake}
	const number = "+15550001111"
	c := networktest.Connect(t, w, networktest.Link(t, w, number), &networktest.Recorder{}).Live(t, 1)
	refusal := &network.Rejected{Code: "RESTRICTED"}
	if err := fake.Answer(number, refusal, nil); err != nil {
		t.Fatal(err)
	}
	m := network.Outbound{NetworkID: "A", ChatID: "+15550002222", Content: postern.Text("hello")}
	if _, err := c.Send(t.Context(), m); !errors.Is(err, refusal) {
		t.Errorf("first send = %v, want the refusal", err)
	}
	if at, err := c.Send(t.Context(), m); err != nil || at.IsZero() {
		t.Errorf("second send = %v, %v, want now", at, err)
	}
	if shown := fake.Shown("+15550002222"); len(shown) != 1 {
		t.Errorf("the phone shows %d messages, want 1", len(shown))
	}
}

func TestFakeKeepsFiles(t *testing.T) {
	fake := networktest.NewFake()
	w := networktest.World{Driver: fake, Vendor: fake}
	const number, friend = "+15550001111", "+15550002222"
	c := networktest.Connect(t, w, networktest.Link(t, w, number), &networktest.Recorder{}).Live(t, 1)
	ref := fake.Store(number, []byte("a picture"))
	id, err := fake.Inbound(number, network.Inbound{
		Sender: friend, ChatID: friend, From: friend, File: ref,
		Content: postern.Content{Kind: postern.KindImage, Media: &postern.Media{Status: postern.MediaPending}},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := networktest.Wait(t, c.Host, 1, networktest.Any[network.Inbound])
	if got, ok := fake.Stored(m.File); m.NetworkID != id || !ok || string(got) != "a picture" {
		t.Errorf("the file of message %s is %q, %v", m.NetworkID, got, ok)
	}
	out := network.Outbound{NetworkID: "A", ChatID: friend, Content: m.Content, File: &network.Attachment{
		Ref: m.File, MIMEType: "image/png",
	}}
	if _, err := c.Send(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	if got, ok := fake.Sent("A"); !ok || got.File.MIMEType != "image/png" {
		t.Errorf("the sent message is %+v, %v", got, ok)
	}
	if data, err := fake.File(friend, "A"); err != nil || string(data) != "a picture" {
		t.Errorf("the phone reads %q, %v", data, err)
	}
	if _, err := fake.File(friend, "B"); !errors.Is(err, networktest.ErrNoSuch) {
		t.Errorf("the file of no message = %v, want ErrNoSuch", err)
	}
	if _, ok := fake.Stored(network.Ref("other")); ok {
		t.Error("there is a file that was never stored")
	}
}
