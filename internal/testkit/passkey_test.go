package testkit_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// askPasskey opens an attempt, lets a phone scan its code that has a passkey, and returns the attempt.
func askPasskey(t *testing.T, c *testkit.Client, d postern.Device) postern.Link {
	t.Helper()
	c.Call("POST", path(d, "/link"), nil, 201, nil)
	if a := enter(c, d, map[string]any{"phoneNumber": vendorsim.NumberPasskey}); a.Status != 200 {
		t.Fatalf("scan = %d %s", a.Status, a.Body)
	}
	l := awaitLink(t, c, d, ended(postern.LinkPasskey))
	if l.Passkey == nil || l.QR != "" || l.ConfirmationCode != "" {
		t.Fatalf("the attempt is %+v", l)
	}
	return l
}

// passkeyOf returns the answer of the phone's passkey.
func passkeyOf(c *testkit.Client, d postern.Device, body any) (out map[string]any) {
	c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/passkey", body, 200, &out)
	return out
}

func TestPasskeyLinksADevice(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("device.linking", "device.linked")
		d := create(c)
		l := askPasskey(t, c, d)
		if o := l.Passkey.PublicKey; o.Domain != "whatsapp.com" || o.UserVerification != "required" || o.Timeout != 600_000 {
			t.Errorf("the network asks for %+v of %s", o, o.Domain)
		}
		if left := l.ExpiresAt.Std().Sub(d.CreatedAt.Std()).Minutes(); left < 10 {
			t.Errorf("the attempt ends after %.1f minutes, want 10", left)
		}
		answer := passkeyOf(c, d, nil)
		var after postern.Link
		c.Call("POST", path(d, "/link/passkey"), answer, 202, &after)
		if after.Status != postern.LinkPasskey || after.Passkey != nil {
			t.Errorf("after the answer the attempt is %+v", after)
		}
		d = c.Await(d.ID, postern.Connected)
		if d.PhoneNumber != vendorsim.NumberPasskey {
			t.Errorf("the device has the number %s", d.PhoneNumber)
		}
		awaitLink(t, c, d, ended(postern.LinkLinked))
		m := send(c, d, reader, "linked by a passkey")
		c.AwaitMessage(m.ID, postern.Read)
		events := hooks.AwaitCount(postern.DeviceLinking, 2) // the first says that the attempt was opened
		if body := string(events[1].Body); !strings.Contains(body, `"status":"linking"`) ||
			!strings.Contains(body, `"statusReason":"passkey-required"`) {
			t.Errorf("the event is %s", body)
		}
		credential, _ := answer["credential"].(map[string]any)
		response, _ := credential["response"].(map[string]any)
		signature, _ := response["signature"].(string)
		for what, secret := range map[string]string{"challenge": l.Passkey.PublicKey.Challenge, "signature": signature} {
			if secret == "" || strings.Contains(k.Log.String(), secret) {
				t.Errorf("the %s is in the log, or empty", what)
			}
		}
	})
}

// The owner of a pairing code has a passkey, too.
func TestPasskeyAfterAPairingCode(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := create(c)
		c.Call("POST", path(d, "/link"), map[string]any{"method": "code", "phoneNumber": vendorsim.NumberPasskey}, 201, nil)
		if a := enter(c, d, map[string]any{}); a.Status != 200 {
			t.Fatalf("scan = %d %s", a.Status, a.Body)
		}
		if l := awaitLink(t, c, d, ended(postern.LinkPasskey)); l.PairingCode != "" {
			t.Errorf("the attempt shows %s", l.PairingCode)
		}
		c.Call("POST", path(d, "/link/passkey"), passkeyOf(c, d, nil), 202, nil)
		c.Await(d.ID, postern.Connected)
	})
}

// A credential that the network would refuse does not end the attempt, and is explained.
func TestPasskeyWithAMistakeIsExplained(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := create(c)
		refused := func(body any, status int, what string) {
			t.Helper()
			if a := c.Do("POST", path(d, "/link/passkey"), body); a.Status != status || !strings.Contains(string(a.Body), what) {
				t.Errorf("%v = %d %s, want %d with %s", body, a.Status, a.Body, status, what)
			}
		}
		good := map[string]any{"id": "aWQ", "rawId": "aWQ", "type": "public-key", "response": map[string]any{
			"clientDataJSON": "e30", "authenticatorData": "AQ", "signature": "AQ", "userHandle": nil,
		}}
		refused(map[string]any{"credential": good}, 409, "no-open-link")
		c.Call("POST", path(d, "/link"), nil, 201, nil)
		refused(map[string]any{"credential": good}, 409, "no-passkey-wanted")
		c.Call("DELETE", path(d, "/link"), nil, 204, nil)
		askPasskey(t, c, d)
		for mistake, pointer := range map[string]string{
			"origin": "/credential/response/clientDataJSON", "challenge": "/credential/response/clientDataJSON",
			"domain": "/credential/response/authenticatorData", "unverified": "/credential/response/authenticatorData",
		} {
			refused(passkeyOf(c, d, map[string]any{"mistake": mistake}), 422, pointer)
		}
		refused(map[string]any{}, 422, `"/credential"`)
		refused(map[string]any{"credential": good}, 422, "clientDataJSON")
		for member, bad := range map[string]any{"id": "%%%", "rawId": "eA", "type": "password", "response": map[string]any{}} {
			changed := maps.Clone(good)
			changed[member] = bad
			refused(map[string]any{"credential": changed}, 422, "/credential/")
		}
		refused("not JSON", 400, "malformed-request")
		if a := c.Do("POST", path(d, "/link/confirm"), nil); a.Status != 409 ||
			!strings.Contains(string(a.Body), "nothing-to-confirm") {
			t.Errorf("confirm = %d %s", a.Status, a.Body)
		}
		c.Call("POST", path(d, "/link/passkey"), passkeyOf(c, d, nil), 202, nil)
		c.Await(d.ID, postern.Connected)
	})
}

// What the network refuses ends the attempt with a reason.
func TestPasskeyThatTheNetworkRefuses(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := create(c)
		for body, reason := range map[string]string{
			`{"mistake":"signature"}`: "passkey-refused", `{"fault":"refused"}`: "passkey-refused",
			`{"fault":"expired"}`: "passkey-refused", `{"fault":"commitment"}`: "pairing-failed",
		} {
			askPasskey(t, c, d)
			var in map[string]any
			if err := json.Unmarshal([]byte(body), &in); err != nil {
				t.Fatal(err)
			}
			c.Call("POST", path(d, "/link/passkey"), passkeyOf(c, d, in), 202, nil)
			if l := awaitLink(t, c, d, ended(postern.LinkFailed)); string(l.Reason) != reason {
				t.Errorf("%s: the attempt ended with %q, want %q", body, l.Reason, reason)
			}
			c.Await(d.ID, postern.Unlinked)
		}
		askPasskey(t, c, d)
		c.Call("POST", path(d, "/link/passkey"), passkeyOf(c, d, map[string]any{"fault": "declined"}), 202, nil)
		if a := c.Do("POST", path(d, "/link/passkey"), map[string]any{"credential": map[string]any{
			"id": "aWQ", "rawId": "aWQ", "type": "public-key",
			"response": map[string]any{"clientDataJSON": "e30", "authenticatorData": "AQ", "signature": "AQ"},
		}}); a.Status != 409 || !strings.Contains(string(a.Body), "no-passkey-wanted") {
			t.Errorf("a second answer = %d %s", a.Status, a.Body)
		}
		c.Call("DELETE", path(d, "/link"), nil, 204, nil)
		c.Await(d.ID, postern.Unlinked)
	})
}

// compareCodes restarts the gateway so that owners always compare a code.
func compareCodes(k *testkit.Kit) {
	k.Stop()
	k.ComparePasskeys = true
	k.Boot()
}

// Once the network has the passkey, the owner may have to compare a code.
func TestPasskeyWithACodeToCompare(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		compareCodes(k)
		c := k.Workspace("growth")
		d := create(c)
		askPasskey(t, c, d)
		c.Call("POST", path(d, "/link/passkey"), passkeyOf(c, d, nil), 202, nil)
		l := awaitLink(t, c, d, ended(postern.LinkConfirm))
		if code := k.Vendor.Passkeys().Code(vendorsim.NumberPasskey); code == "" || string(l.ConfirmationCode) != code {
			t.Errorf("the attempt shows %q, and the phone %q", l.ConfirmationCode, code)
		}
		if strings.Contains(k.Log.String(), string(l.ConfirmationCode)) {
			t.Error("the code is in the log")
		}
		c.Call("POST", path(d, "/link/confirm"), nil, 202, nil)
		c.Await(d.ID, postern.Connected)
	})
}

// The connection of an attempt is on one server. The owner talks to another.
func TestPasskeyFromAnotherServer(t *testing.T) {
	t.Parallel()
	first, second := twoServers(t)
	c := first.Workspace("growth")
	for _, at := range []*testkit.Client{c, c.At(second)} { // one of them has the connection
		d := create(c)
		askPasskey(t, c, d)
		answer := passkeyOf(at, d, nil)
		at.Call("POST", path(d, "/link/passkey"), answer, 202, nil)
		at.Await(d.ID, postern.Connected)
		c.Call("POST", path(d, "/unlink"), nil, 200, nil)
	}
}
