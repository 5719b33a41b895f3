package vendorsim_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// askedForPasskey connects a fresh client, has its code scanned by the phone of alice, who has a passkey, and
// returns what the client is asked for.
func askedForPasskey(t *testing.T, v *vendorsim.Vendor) (*client, []byte) {
	t.Helper()
	if err := v.Passkeys().Require(alice); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, v, newContainer(t).NewDevice())
	c.number = alice
	if err := c.wa.Connect(); err != nil {
		t.Fatal(err)
	}
	code := await[*events.QR](c, "QR", nil).Codes[0]
	if err := v.Scan(t.Context(), code, alice); !errors.Is(err, vendorsim.ErrPasskey) {
		t.Fatalf("Scan = %v, want %v", err, vendorsim.ErrPasskey)
	}
	if err := v.Scan(t.Context(), code, bob); !errors.Is(err, vendorsim.ErrStaleQR) {
		t.Errorf("another phone scans the code: %v, want %v", err, vendorsim.ErrStaleQR)
	}
	return c, c.passkeyRequest()
}

// passkeyRequest waits until the client is asked for the passkey.
func (c *client) passkeyRequest() []byte {
	c.t.Helper()
	request, err := json.Marshal(await[*events.PairPasskeyRequest](c, "PairPasskeyRequest", nil).PublicKey)
	if err != nil {
		c.t.Fatal(err)
	}
	return request
}

// answerPasskey answers with the passkey of alice.
func (c *client) answerPasskey(v *vendorsim.Vendor, request []byte, mistake vendorsim.PasskeyMistake) error {
	c.t.Helper()
	p, err := v.Passkeys().Of(c.number)
	if err != nil {
		c.t.Fatal(err)
	}
	credential, err := p.Answer(request, mistake)
	if err != nil {
		c.t.Fatal(err)
	}
	var answer types.WebAuthnResponse
	if err := json.Unmarshal(credential, &answer); err != nil {
		c.t.Fatal(err)
	}
	return c.wa.SendPasskeyResponse(c.t.Context(), &answer)
}

// confirm waits for the code that both sides show, and confirms it.
func (c *client) confirm(v *vendorsim.Vendor, proven bool) {
	c.t.Helper()
	asked := await[*events.PairPasskeyConfirmation](c, "PairPasskeyConfirmation", nil)
	if asked.Code != v.Passkeys().Code(c.number) || asked.SkipHandoffUX != proven {
		c.t.Errorf("the client shows %+v, and the phone %q", asked, v.Passkeys().Code(c.number))
	}
	if err := c.wa.SendPasskeyConfirmation(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	await[*events.Connected](c, "Connected", nil)
	c.send(bob, "linked by a passkey")
}

func TestPasskeyLinks(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c, request := askedForPasskey(t, v)
	if err := c.answerPasskey(v, request, ""); err != nil {
		t.Fatal(err)
	}
	c.confirm(v, true)
}

// A client whose proof is older than five minutes sends none.
func TestPasskeyLinksWithoutAProof(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c, request := askedForPasskey(t, v)
	key := reflect.ValueOf(c.wa).Elem().FieldByName("passkeyHandoffKey")
	(*atomic.Pointer[struct{}])(unsafe.Pointer(key.UnsafeAddr())).Store(nil) //nolint:gosec // nothing else forgets it sooner
	if err := c.answerPasskey(v, request, ""); err != nil {
		t.Fatal(err)
	}
	c.confirm(v, false)
}

func TestPasskeyLinksAfterACode(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	if err := v.Passkeys().Require(alice); err != nil {
		t.Fatal(err)
	}
	c, code, err := askCode(t, v, alice)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.EnterCode(t.Context(), code, alice); !errors.Is(err, vendorsim.ErrPasskey) {
		t.Fatalf("EnterCode = %v, want %v", err, vendorsim.ErrPasskey)
	}
	if err := c.answerPasskey(v, c.passkeyRequest(), ""); err != nil {
		t.Fatal(err)
	}
	c.confirm(v, true)
}

// The vendor accepts no answer in which anything is wrong, and the right one afterwards.
func TestWrongPasskeyIsRefused(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c, request := askedForPasskey(t, v)
	for _, mistake := range []vendorsim.PasskeyMistake{
		vendorsim.MistakeSignature, vendorsim.MistakeOrigin, vendorsim.MistakeChallenge, vendorsim.MistakeDomain,
		vendorsim.MistakeUnverified,
	} {
		if err := c.answerPasskey(v, request, mistake); !errors.Is(err, whatsmeow.ErrIQForbidden) {
			t.Errorf("a wrong %s: %v, want %v", mistake, err, whatsmeow.ErrIQForbidden)
		}
	}
	if err := v.Passkeys().Require(bob); err != nil {
		t.Fatal(err)
	}
	c.number = bob
	if err := c.answerPasskey(v, request, ""); !errors.Is(err, whatsmeow.ErrIQForbidden) {
		t.Errorf("somebody else's passkey: %v, want %v", err, whatsmeow.ErrIQForbidden)
	}
	c.number = alice
	if err := c.answerPasskey(v, request, ""); err != nil {
		t.Errorf("the right answer: %v", err)
	}
}

// The proof has to be made with the secret of the code that the phone has scanned.
func TestWrongProofIsRefused(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c, request := askedForPasskey(t, v)
	field := reflect.ValueOf(c.wa).Elem().FieldByName("passkeyHandoffKey")
	key := (*atomic.Pointer[struct{ hmac []byte }])(unsafe.Pointer(field.UnsafeAddr())).Load() //nolint:gosec // as above
	key.hmac[0] ^= 1
	if err := c.answerPasskey(v, request, ""); !errors.Is(err, whatsmeow.ErrIQForbidden) {
		t.Errorf("a wrong proof: %v, want %v", err, whatsmeow.ErrIQForbidden)
	}
}

func TestPasskeyFaults(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	fail := func(f vendorsim.PasskeyFault) {
		t.Helper()
		if err := v.Passkeys().Fail(alice, f); err != nil {
			t.Fatal(err)
		}
	}
	c, request := askedForPasskey(t, v)
	fail(vendorsim.PasskeyRefused)
	if err := c.answerPasskey(v, request, ""); !errors.Is(err, whatsmeow.ErrIQForbidden) {
		t.Errorf("refused: %v", err)
	}
	fail(vendorsim.PasskeyExpired)
	if err := c.answerPasskey(v, request, ""); !errors.Is(err, whatsmeow.ErrIQGone) {
		t.Errorf("expired: %v", err)
	}
	fail(vendorsim.PasskeyCommitment)
	if err := c.answerPasskey(v, request, ""); err != nil {
		t.Fatal(err)
	}
	if e := await[*events.PairPasskeyError](c, "PairPasskeyError", nil); !e.Continuation {
		t.Errorf("another number than committed to: %+v", e)
	}
	if err := v.Passkeys().Fail(alice, "unknown"); err == nil {
		t.Error("a fault that does not exist was armed")
	}
	declined, request := askedForPasskey(t, v)
	fail(vendorsim.PasskeyDeclined)
	if err := declined.answerPasskey(v, request, ""); err != nil {
		t.Fatal(err)
	}
	if err := declined.wa.SendPasskeyConfirmation(t.Context()); err == nil || v.Passkeys().Code(alice) != "" {
		t.Errorf("the phone has declined, and shows %q (%v)", v.Passkeys().Code(alice), err)
	}
}

func TestPasskeyOverTheControlInterface(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	ask := func(method, path, body string) (out map[string]any) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		w := httptest.NewRecorder()
		v.Control().ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("%s %s = %d %s", path, body, w.Code, w.Body)
		}
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			t.Error(err)
		}
		return out
	}
	if p := ask("POST", "/passkeys", `{"number":"`+alice+`"}`); p["rpId"] != "whatsapp.com" || p["privateKey"] == "" {
		t.Errorf("the passkey is %v", p)
	}
	_, request := askedForPasskey(t, v)
	answer := ask("POST", "/passkeys/answer", `{"number":"`+alice+`","publicKey":`+string(request)+`}`)
	if c, ok := answer["credential"].(map[string]any); !ok || c["type"] != "public-key" {
		t.Errorf("the answer is %v", answer)
	}
	ask("POST", "/passkeys/faults", `{"number":"`+alice+`","kind":"refused"}`)
	if code := ask("GET", "/passkeys/code?number=%2B15550001111", ""); code["code"] != "" {
		t.Errorf("the phone shows %v", code)
	}
}
