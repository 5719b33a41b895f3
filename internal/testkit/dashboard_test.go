package testkit_test

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"postern/internal/testkit"
)

// T16: an address that a caller invents for itself begins no new count of guesses.
func TestT16InventedAddressBeginsNoNewCount(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	limited := false
	for i := range 12 {
		form := url.Values{"email": {"ada@example.com"}, "password": {"not the right one"}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.URL()+"/signin",
			strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i))
		req.Header.Set("Forwarded", fmt.Sprintf("for=198.51.100.%d", i))
		res, err := (&http.Client{Transport: testkit.Transport}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		limited = limited || res.StatusCode == http.StatusTooManyRequests
		if limited && res.StatusCode != http.StatusTooManyRequests {
			t.Errorf("with another address the next guess is answered %d", res.StatusCode)
		}
	}
	if !limited {
		t.Error("twelve guesses are let through")
	}
}

// What people do is in the log by page and user, and nothing that they typed.
func TestLogOfTheDashboardNamesPagesAndUsers(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: testkit.Transport}
	const password, email = "canary words of a password", "canary@example.com"
	link := k.SetUpURL()
	post := func(to string, form url.Values) { posts(t, browser, to, form) }
	post(link, url.Values{"workspace": {"canary"}, "email": {email}, "password": {password}})
	post(k.URL()+"/devices", url.Values{"name": {"canary"}})
	post(k.URL()+"/signin", url.Values{"email": {email}, "password": {"not the canary"}})
	var log string
	testkit.Eventually(t, "the last request is in the log", func() (bool, any) {
		log = k.Log.String() // a line is written after its response
		return strings.Contains(log, `"route":"/signin"`), log
	})
	for _, want := range []string{
		`"route":"/setup/{token}"`, `"method":"POST","route":"/devices"`, `"user_id":"usr_`,
		`"workspace":"ws_`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	if secret := link[strings.LastIndex(link, "/")+1:]; strings.Contains(log, "canary") ||
		strings.Contains(log, secret) {
		t.Error("the log shows what was typed, or the set-up link")
	}
}

// posts sends a form, as a browser does.
func posts(t *testing.T, browser *http.Client, to string, form url.Values) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
}

// A link that somebody was told of is mailed, also when the gateway stops meanwhile.
func TestGatewayStopsWhenItsMailIsSent(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	m := k.BootWithMail()
	const email = "ada@example.com"
	posts(t, &http.Client{Transport: testkit.Transport}, k.SetUpURL(),
		url.Values{"workspace": {"acme"}, "email": {email}, "password": {"four plain words here"}})
	time.AfterFunc(time.Second, m.Hold())
	posts(t, &http.Client{Transport: testkit.Transport}, k.URL()+"/signin/forgotten", url.Values{"email": {email}})
	k.Stop()
	if list := m.Mails(); len(list) != 1 || list[0].To != email {
		t.Errorf("when it has stopped, there are the mails %+v", list)
	}
}
