package testkit_test

import (
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
)

func create(c *testkit.Client) (d postern.Device) {
	c.Call("POST", "/v1/devices", map[string]any{"name": "support"}, 201, &d)
	return d
}

func enter(c *testkit.Client, d postern.Device, body map[string]any) testkit.Answer {
	return c.Scan(d.ID, body)
}

// awaitLink waits until the newest attempt has a status, or shows a code.
func awaitLink(t *testing.T, c *testkit.Client, d postern.Device, good func(postern.Link) bool) (l postern.Link) {
	t.Helper()
	testkit.Eventually(t, "the link attempt", func() (bool, any) {
		l = postern.Link{}
		c.Call("GET", path(d, "/link"), nil, 200, &l)
		return good(l), l
	})
	return l
}

func ended(status postern.LinkStatus) func(postern.Link) bool {
	return func(l postern.Link) bool { return l.Status == status }
}

func TestPairingCodeEnteredOnThePhoneLinksTheDevice(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := create(c)
	c.Call("POST", path(d, "/link"), map[string]any{"method": "code", "phoneNumber": "call me"}, 422, nil)
	var l postern.Link
	c.Call("POST", path(d, "/link"), map[string]any{"method": "code", "phoneNumber": phone}, 201, &l)
	if l.Method != "code" {
		t.Errorf("the attempt's method is %s", l.Method)
	}
	if len(l.PairingCode) != 9 || l.QR != "" || l.QRExpiresAt != 0 {
		t.Errorf("the attempt shows %q, and the QR code %q", l.PairingCode, l.QR)
	}
	if a := c.Do("GET", path(d, "/link/qr.svg"), nil); a.Status != 404 {
		t.Errorf("a picture of a code to enter = %d", a.Status)
	}
	if err := k.Vendor.EnterCode(t.Context(), strings.ToLower(string(l.PairingCode)), phone); err != nil {
		t.Fatal(err)
	}
	d = c.Await(d.ID, postern.Connected)
	if d.PhoneNumber != phone {
		t.Errorf("the device has the number %s, want %s", d.PhoneNumber, phone)
	}
	m := send(c, d, reader, "linked by a code")
	c.AwaitMessage(m.ID, postern.Read)
	if strings.Contains(k.Log.String(), string(l.PairingCode)) {
		t.Error("the pairing code is in the log")
	}
	c.Call("POST", path(d, "/unlink"), nil, 200, nil)
	c.Call("POST", path(d, "/link"), map[string]any{"method": "code", "phoneNumber": phone}, 201, nil)
	if a := enter(c, d, map[string]any{}); a.Status != 200 ||
		!strings.Contains(string(a.Body), phone) { // the sandbox's way
		t.Fatalf("scan = %d %s", a.Status, a.Body)
	}
	c.Await(d.ID, postern.Connected)
}

// The response to a new attempt has the first code to show.
func TestNewLinkAttemptHasItsCode(t *testing.T) {
	t.Parallel()
	c := testkit.Start(t).Workspace("growth")
	d := create(c)
	var l postern.Link
	c.Call("POST", path(d, "/link"), nil, 201, &l)
	if l.QR == "" || l.QRExpiresAt == 0 || l.Status != postern.LinkPending {
		t.Errorf("the attempt is %+v", l)
	}
}

func TestWrongPairingCodeFailsTheAttempt(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := create(c)
	c.Call("POST", path(d, "/link"), map[string]any{"method": "code", "phoneNumber": phone}, 201, nil)
	if a := enter(c, d, map[string]any{"code": "AAAA-AAAA"}); a.Status != 409 {
		t.Errorf("a wrong code = %d %s", a.Status, a.Body)
	}
	l := awaitLink(t, c, d, ended(postern.LinkFailed))
	if l.Reason != "wrong-code" || l.PairingCode != "" {
		t.Errorf("the attempt ended with %q and shows %q", l.Reason, l.PairingCode)
	}
	if d := c.Await(d.ID, postern.Unlinked); d.StatusReason != "wrong-code" {
		t.Errorf("the device is unlinked for %q", d.StatusReason)
	}
	c.Call("POST", path(d, "/link"), map[string]any{"method": "code", "phoneNumber": "+15005550001"}, 201, nil)
	if l := awaitLink(t, c, d, ended(postern.LinkFailed)); l.Reason != "number-unknown" {
		t.Errorf("a number that is not on the network: %q", l.Reason)
	}
}

func TestMethodAndNumberOfALinkBelongTogether(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := create(c)
	for body, pointer := range map[string]string{
		`{"method":"code"}`:                            "/phoneNumber",
		`{"method":"qr","phoneNumber":"+15550001111"}`: "/phoneNumber",
		`{"phoneNumber":"+15550001111"}`:               "/phoneNumber",
		`{"method":"code","phoneNumber":"x"}`:          "/phoneNumber",
		`{"method":"code","phoneNumber":"+15550001111","expectedPhoneNumber":"+155522222"}`: "/expectedPhoneNumber",
		`{"method":"sms"}`: "/method",
	} {
		if a := c.Do("POST", path(d, "/link"), body); a.Status != 422 ||
			!strings.Contains(string(a.Body), `"`+pointer+`"`) {
			t.Errorf("%s = %d %s, want 422 at %s", body, a.Status, a.Body, pointer)
		}
	}
}
