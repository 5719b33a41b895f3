package testkit_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"postern/internal/testkit"
)

// The simulated phone of the dashboard goes away and comes back, with what was
// written to it meanwhile, and its contacts confirm messages one step at a time.
func TestSandboxPhoneGoesOfflineAndContactsConfirm(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	v := newVisitor(t)
	v.fill(k.SetUpURL(),
		url.Values{"workspace": {"acme"}, "email": {"ada@example.com"}, "password": {"four plain words here"}})
	device, _ := v.fill(k.URL()+"/devices", url.Values{"name": {"Support"}})
	v.fill(device+"/link", nil)
	v.fill(device+"/phone/scan", nil)
	awaitPage(t, v, device+"/phone", "state badge-success")

	v.fill(device+"/phone/offline", url.Values{"seconds": {"600"}})
	awaitPage(t, v, device+"/phone", "Disconnected")
	v.fill(device+"/phone/write", url.Values{"from": {customer}, "body": {"while it was away"}})
	if _, body := v.fill(device+"/phone/offline", url.Values{"seconds": {"0"}}); !strings.Contains(body,
		"The device can reconnect") {
		t.Error("the page does not say what follows")
	}
	awaitPage(t, v, device+"/phone", "state badge-success")
	awaitPage(t, v, device+"/phone", "while it was away")

	v.sends(k.URL(), device, "+15005550002") // never confirms by itself
	delivered := regexp.MustCompile(`action="(/devices/[^"]+/phone/delivered/msg_[^"]+)"`)
	_, body := v.fill(k.URL()+delivered.FindStringSubmatch(awaitPage(t, v, device+"/phone", "Mark as delivered"))[1],
		nil)
	if !strings.Contains(body, "was delivered to the contact") {
		t.Error("the page does not say that the message has arrived")
	}
	body = awaitPage(t, v, device+"/phone", "Delivered")
	if strings.Contains(body, "Mark as delivered") {
		t.Error("a message that has arrived may arrive again")
	}
	read := regexp.MustCompile(`action="(/devices/[^"]+/phone/read/msg_[^"]+)"`)
	v.fill(k.URL()+read.FindStringSubmatch(body)[1], nil)
	awaitPage(t, v, device+"/phone", "<bdi>Read</bdi>")

	for _, form := range []url.Values{{"seconds": {"-1"}}, {"seconds": {"3601"}}, {"seconds": {"x"}}, {}} {
		if status, _, _ := v.post(device+"/phone/offline", form); status != http.StatusUnprocessableEntity {
			t.Errorf("%v is answered %d", form, status)
		}
	}
	for _, kind := range []string{"", "none", "offline:5", "refuse:503"} {
		if status, _, _ := v.post(device+"/phone/fault",
			url.Values{"kind": {kind}}); status != http.StatusUnprocessableEntity {
			t.Errorf("the fault %q is answered %d", kind, status)
		}
	}
}

// awaitPage asks for a page until it says something.
func awaitPage(t *testing.T, v *visitor, page, text string) (body string) {
	t.Helper()
	testkit.Eventually(t, "the page says "+text, func() (bool, any) {
		_, _, body = v.do("GET", page)
		return strings.Contains(body, text), body
	})
	return body
}

// sends makes an API key in the dashboard and sends a message with it.
func (v *visitor) sends(base, device, to string) {
	v.t.Helper()
	_, _, body := v.post(base+"/keys", url.Values{"name": {"ci"}, "scope": {"messages:write"}})
	key := regexp.MustCompile(`pst_[0-9A-Za-z]{38}`).FindString(body)
	text := `{"deviceId":"` + device[strings.LastIndex(device, "/")+1:] + `","to":"` + to + `","body":"Hello"}`
	req, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, base+"/v1/messages", strings.NewReader(text))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := testkit.Transport.RoundTrip(req)
	if err != nil {
		v.t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		v.t.Fatalf("the message is answered %d", res.StatusCode)
	}
}
