package vendorsim_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types/events"
)

// askCode connects a fresh client and asks for the code of a number.
func askCode(t *testing.T, v *vendorsim.Vendor, number string) (*client, string, error) {
	t.Helper()
	c := newClient(t, v, newContainer(t).NewDevice())
	c.number = number
	if err := c.wa.Connect(); err != nil {
		t.Fatal(err)
	}
	await[*events.QR](c, "QR", nil)
	code, err := c.wa.PairPhone(t.Context(), number, true, whatsmeow.PairClientChrome, "Chrome (Linux)")
	return c, code, err
}

func TestCodeEnteredOnThePhoneLinks(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c, code, err := askCode(t, v, alice)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.EnterCode(t.Context(), strings.ToLower(strings.ReplaceAll(code, "-", "")), alice); err != nil {
		t.Fatal(err)
	}
	await[*events.Connected](c, "Connected", nil)
	c.send(bob, "linked by a code")
	write(t, v, bob, "and back")
	c.message("and back")
}

func TestWrongCodeEndsThePairing(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c, code, err := askCode(t, v, alice)
	if err != nil {
		t.Fatal(err)
	}
	wrong := "AAAA-AAAA"
	if code == wrong {
		t.Fatal("by chance the code is the wrong one")
	}
	if err := v.EnterCode(t.Context(), code, bob); !errors.Is(err, vendorsim.ErrNoCode) {
		t.Errorf("on another phone: %v, want %v", err, vendorsim.ErrNoCode)
	}
	if err := v.EnterCode(t.Context(), wrong, alice); !errors.Is(err, vendorsim.ErrWrongCode) {
		t.Errorf("a wrong code: %v, want %v", err, vendorsim.ErrWrongCode)
	}
	if err := v.EnterCode(t.Context(), code, alice); !errors.Is(err, vendorsim.ErrNoCode) {
		t.Errorf("the right code afterwards: %v, want %v", err, vendorsim.ErrNoCode)
	}
	if c.wa.Store.ID != nil || len(v.Accounts()) != 0 {
		t.Errorf("the client is linked to %v", c.wa.Store.ID)
	}
}

func TestNoCodeForANumberThatDoesNotExist(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	if _, code, err := askCode(t, v, vendorsim.NumberUnknown); err == nil {
		t.Errorf("got the code %s", code)
	}
	if err := v.EnterCode(t.Context(), "AAAA-AAAA", alice); !errors.Is(err, vendorsim.ErrNoCode) {
		t.Errorf("a code that nobody shows: %v, want %v", err, vendorsim.ErrNoCode)
	}
}

func TestCodeIsEnteredOverTheControlInterface(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c, code, err := askCode(t, v, alice)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/scan",
		strings.NewReader(`{"code":"`+code+`","phoneNumber":"`+alice+`"}`))
	w := httptest.NewRecorder()
	v.Control().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("answer is %d %s", w.Code, w.Body)
	}
	await[*events.Connected](c, "Connected", nil)
}
