package networktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"postern/internal/network"
)

func testLink(t *testing.T, w World) {
	rec := &Recorder{}
	done := goLink(t.Context(), w, rec)
	code := Wait(t, rec, 1, Any[network.Code])
	if code.Text == "" || time.Until(code.Expires) <= 0 {
		t.Fatalf("code is empty or expired already: %v", time.Until(code.Expires))
	}
	if err := w.Vendor.Scan(t.Context(), code.Text, ownNumber); err != nil {
		t.Fatalf("scan: %v", err)
	}
	if err := within(t, done); err != nil {
		t.Fatalf("link: %v", err)
	}
	scanned, paired := Wait(t, rec, 1, Any[network.Scanned]), Wait(t, rec, 1, Any[network.Paired])
	if scanned.Number != ownNumber || paired.Number != ownNumber || paired.Account == "" ||
		scanned.Account != paired.Account {
		t.Errorf("scanned %+v, paired %+v, want both to be one account of %s", scanned, paired, ownNumber)
	}
	if _, err := w.Driver.Open(t.Context(), paired.Account); err != nil {
		t.Errorf("open: %v", err)
	}
}

// refuses is a rule that refuses one kind of update.
func refuses[U network.Update](u network.Update) error {
	if _, ok := u.(U); ok {
		return ErrRefused
	}
	return nil
}

// failLink scans while the host follows a rule, and returns the account's name
// if the host was told one.
func failLink(t *testing.T, w World, rule func(network.Update) error) (*network.LinkError, string) {
	t.Helper()
	var account string
	rec := &Recorder{}
	rec.Rule(func(u network.Update) error {
		if s, ok := u.(network.Scanned); ok {
			account = s.Account
		}
		return rule(u)
	})
	done := goLink(t.Context(), w, rec)
	code := Wait(t, rec, 1, Any[network.Code])
	scan := w.Vendor.Scan(t.Context(), code.Text, ownNumber)
	var failed *network.LinkError
	if err := within(t, done); !errors.As(err, &failed) {
		t.Fatalf("link = %v, want a *LinkError", err)
	}
	if scan == nil && failed.Reason == "refused" {
		t.Error("the phone was told that the link succeeded")
	}
	return failed, account
}

func mustBeGone(t *testing.T, w World, account string) {
	t.Helper()
	if _, err := w.Driver.Open(t.Context(), account); !errors.Is(err, network.ErrUnknownAccount) {
		t.Errorf("open = %v, want ErrUnknownAccount", err)
	}
}

func testLinkRefused(t *testing.T, w World) {
	failed, account := failLink(t, w, refuses[network.Scanned])
	if failed.Reason != "refused" || failed.Expired {
		t.Errorf("link failed with %+v, want refused", failed)
	}
	mustBeGone(t, w, account)
}

func testLinkPanic(t *testing.T, w World) {
	failed, account := failLink(t, w, func(u network.Update) error {
		if _, ok := u.(network.Scanned); ok {
			panic("the host is broken")
		}
		return nil
	})
	if failed.Reason != "refused" {
		t.Errorf("link failed with %+v, want refused", failed)
	}
	mustBeGone(t, w, account)
}

func testLinkNotStored(t *testing.T, w World) {
	failed, account := failLink(t, w, refuses[network.Paired])
	if failed.Expired {
		t.Errorf("link failed with %+v, want no expiry", failed)
	}
	mustBeGone(t, w, account)
}

func testLinkCanceled(t *testing.T, w World) {
	check := leaks()
	ctx, cancel := context.WithCancel(t.Context())
	rec := &Recorder{}
	done := goLink(ctx, w, rec)
	Wait(t, rec, 1, Any[network.Code])
	cancel()
	var failed *network.LinkError
	if err := within(t, done); !errors.As(err, &failed) || failed.Expired {
		t.Errorf("link = %v, want a *LinkError without expiry", err)
	}
	check(t)
}

func testUnknownAccount(t *testing.T, w World) {
	for _, account := range []string{"", "nobody", "15550009999:7@s.whatsapp.net"} {
		mustBeGone(t, w, account)
	}
}

func testForget(t *testing.T, w World) {
	account := Link(t, w, ownNumber)
	for range 2 {
		if err := w.Driver.Forget(t.Context(), account); err != nil {
			t.Fatalf("forget: %v", err)
		}
	}
	mustBeGone(t, w, account)
}

func testCode(t *testing.T, w World) {
	rec := &Recorder{}
	done := goLinkTo(t.Context(), w, rec, ownNumber)
	code := Wait(t, rec, 1, Any[network.Code])
	if code.Text == "" || time.Until(code.Expires) <= 0 {
		t.Fatalf("code is empty or expired already: %v", time.Until(code.Expires))
	}
	if err := w.Vendor.EnterCode(t.Context(), code.Text, ownNumber); err != nil {
		t.Fatalf("enter the code: %v", err)
	}
	if err := within(t, done); err != nil {
		t.Fatalf("link: %v", err)
	}
	paired := Wait(t, rec, 1, Any[network.Paired])
	if paired.Number != ownNumber {
		t.Errorf("paired %+v, want %s", paired, ownNumber)
	}
	Connect(t, w, paired.Account, &Recorder{}).Live(t, 1)
}

func testWrongCode(t *testing.T, w World) {
	rec := &Recorder{}
	done := goLinkTo(t.Context(), w, rec, ownNumber)
	Wait(t, rec, 1, Any[network.Code])
	if err := w.Vendor.EnterCode(t.Context(), "AAAA-AAAA", ownNumber); err == nil {
		t.Error("the phone took a wrong code")
	}
	var failed *network.LinkError
	if err := within(t, done); !errors.As(err, &failed) || failed.Reason != "wrong-code" || failed.Expired {
		t.Errorf("link = %v, want wrong-code", err)
	}
	if n := len(All(rec, Any[network.Scanned])); n != 0 {
		t.Errorf("%d accounts were reported as scanned", n)
	}
}
