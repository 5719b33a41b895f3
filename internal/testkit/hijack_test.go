package testkit_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// post posts a form of the dashboard, and gives the page that follows.
func (v *visitor) post(to string, form url.Values) (status int, at, body string) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := v.http.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return res.StatusCode, res.Request.URL.String(), string(text)
}

// fill is post of a form that is right.
func (v *visitor) fill(to string, form url.Values) (at, body string) {
	v.t.Helper()
	status, at, body := v.post(to, form)
	if status != http.StatusOK {
		v.t.Fatalf("POST %s is answered %d: %s", to, status, body)
	}
	return at, body
}

// unusable reports whether a code led to no link: the network does not know it any more, or
// the gateway refuses it, or closes its connection, because the attempt has just ended.
func unusable(err error) bool {
	return slices.ContainsFunc([]error{vendorsim.ErrStaleQR, vendorsim.ErrPairingRefused, vendorsim.ErrPairingLost},
		func(target error) bool { return errors.Is(err, target) })
}

// T18: the code on the page of a device may not be kept, is in no log, and opens
// nothing once its attempt is over.
func TestT18CodeOnThePageIsGoodForItsAttemptAlone(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	v := newVisitor(t)
	v.fill(k.SetUpURL(),
		url.Values{"workspace": {"acme"}, "email": {"ada@example.com"}, "password": {"four plain words here"}})
	device, _ := v.fill(k.URL()+"/devices", url.Values{"name": {"Support"}})
	first := shownCode(t, v, device)
	v.fill(device+"/link/cancel", nil)
	k.Vendor = k.VendorOfSetUp()
	if err := k.Vendor.Scan(t.Context(), first, phone); !unusable(err) {
		t.Errorf("the code of an attempt that has ended is answered %v", err)
	}
	second := shownCode(t, v, device)
	if err := k.Vendor.Scan(t.Context(), first, phone); !unusable(err) {
		t.Errorf("the code of the attempt before is answered %v", err)
	}
	if got := accountsOf(k); len(got) != 0 {
		t.Errorf("the network has companions of %q", got)
	}
	if err := k.Vendor.Scan(t.Context(), second, phone); err != nil {
		t.Errorf("the code that is shown: %v", err)
	}
	if err := k.Vendor.Scan(t.Context(), second, "+15550009999"); !errors.Is(err, vendorsim.ErrStaleQR) {
		t.Errorf("the code that was used is answered %v", err)
	}
	v.sees("GET", k.URL()+"/people/audit", 200, "Started to link a phone", "Support", "ada@example.com", "127.0.0.1")
	k.Stop()
	log := k.Log.String()
	for _, code := range []string{first, second} {
		for _, part := range append(strings.Split(code, ","), code) {
			if len(part) > 4 && strings.Contains(log, part) {
				t.Errorf("the log shows %q of a code", part)
			}
		}
	}
}

// shownCode opens a link attempt and reads the code off the page, as a camera
// does.
func shownCode(t *testing.T, v *visitor, device string) (code string) {
	t.Helper()
	picture, body := regexp.MustCompile(`(?s)<div class="qr"[^>]*>\s*(<svg.*?</svg>)`), ""
	v.fill(device+"/link", nil)
	testkit.Eventually(t, "a code", func() (bool, any) {
		status, header, text := v.do("GET", device)
		if header.Get("Cache-Control") != "no-store" {
			t.Fatalf("the page may be kept: %v", header["Cache-Control"])
		}
		body = text
		return picture.MatchString(text), status
	})
	return scan(t, "svg", []byte(picture.FindStringSubmatch(body)[1]))
}

// T18: a phone with another number than is expected is unlinked again by the
// vendor, and nothing of it is kept.
func TestT18PhoneOfAnotherNumberLeavesNothing(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	status, l := relink(t, c, create(c), "+15550009999", map[string]any{"expectedPhoneNumber": phone})
	if status != 409 || l.Status != postern.LinkFailed || l.Reason != "unexpected-number" {
		t.Errorf("the phone got %d, the attempt is %s (%s)", status, l.Status, l.Reason)
	}
	if got := accountsOf(k); len(got) != 0 {
		t.Errorf("the network has companions of %q", got)
	}
	if keys := k.SessionAccounts(); len(keys) != 0 {
		t.Errorf("keys are kept for %q", keys)
	}
}

// T18: nobody opens attempt after attempt in the hope that somebody scans one.
func TestT18ManyLinkAttemptsOfOneDeviceAreRefused(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := create(c)
	for n := range 20 {
		a := c.Do("POST", path(d, "/link"), nil)
		if a.Status == http.StatusTooManyRequests {
			var problem struct{ Code string }
			if a.JSON(k, &problem); problem.Code != "RATE_LIMITED" || a.Header.Get("Retry-After") == "" || n < 5 {
				t.Errorf("attempt %d is refused with %s and Retry-After %q", n, a.Body, a.Header.Get("Retry-After"))
			}
			c.Call("POST", path(create(c), "/link"), nil, 201, nil) // another device is not held up
			return
		}
		if a.Status != http.StatusCreated {
			t.Fatalf("attempt %d is answered %d %s", n, a.Status, a.Body)
		}
		c.Call("DELETE", path(d, "/link"), nil, 204, nil)
	}
	t.Error("twenty attempts are let through")
}
