package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"postern/internal/postern"
)

// shape is what a merge patch may change of a device, as it is shown.
func (a *answerT) shape() string {
	a.t.Helper()
	var d struct {
		Name     string            `json:"name"`
		Metadata map[string]string `json:"metadata"`
		Pace     json.RawMessage   `json:"pace"`
		Receive  json.RawMessage   `json:"receive"`
	}
	if err := json.Unmarshal(a.Body.Bytes(), &d); err != nil {
		a.t.Fatal(err)
	}
	b, err := json.Marshal(d)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(b)
}

func TestMergePatchOfADevice(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	target := "/v1/devices/" + string(mine.device("d", postern.Connected))
	before := mine.do("GET", target, "").member("phoneNumber")
	const all = `"receive":{"direct":true,"groups":true,"channels":false,"status":false,"calls":true,"history":false,"media":"eager","viewOnce":false}`
	for _, tt := range []struct{ body, want string }{
		{`{}`, `{"name":"d","metadata":{},"pace":null,` + all + `}`},
		{`{"name":"Support"}`, `{"name":"Support","metadata":{},"pace":null,` + all + `}`},
		{`{"metadata":{"a":"1","b":"2"}}`, `{"name":"Support","metadata":{"a":"1","b":"2"},"pace":null,` + all + `}`},
		{`{"metadata":{"a":null,"c":"","none":null}}`, `{"name":"Support","metadata":{"b":"2","c":""},"pace":null,` + all + `}`},
		{`{"pace":{"perMinute":20}}`, `{"name":"Support","metadata":{"b":"2","c":""},"pace":{"perMinute":20,"newChatsPerMinute":null},` + all + `}`},
		{`{"pace":{"newChatsPerMinute":2}}`, `{"name":"Support","metadata":{"b":"2","c":""},"pace":{"perMinute":20,"newChatsPerMinute":2},` + all + `}`},
		{`{"pace":{"perMinute":null}}`, `{"name":"Support","metadata":{"b":"2","c":""},"pace":{"perMinute":null,"newChatsPerMinute":2},` + all + `}`},
		{`{"pace":{"newChatsPerMinute":null}}`, `{"name":"Support","metadata":{"b":"2","c":""},"pace":null,` + all + `}`},
		{`{"receive":{"direct":false,"status":true}}`, `{"name":"Support","metadata":{"b":"2","c":""},"pace":null,"receive":{"direct":false,"groups":true,"channels":false,"status":true,"calls":true,"history":false,"media":"eager","viewOnce":false}}`},
		{`{"receive":{"direct":null}}`, `{"name":"Support","metadata":{"b":"2","c":""},"pace":null,"receive":{"direct":true,"groups":true,"channels":false,"status":true,"calls":true,"history":false,"media":"eager","viewOnce":false}}`},
		{`{"receive":null,"metadata":null,"pace":null,"proxyUrl":null}`, `{"name":"Support","metadata":{},"pace":null,` + all + `}`},
	} {
		a := mine.do("PATCH", target, tt.body)
		a.what = tt.body
		a.want(http.StatusOK, "")
		if got := a.shape(); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.body, got, tt.want)
		}
		if got := mine.do("GET", target, "").shape(); got != tt.want {
			t.Errorf("%s: read back %s", tt.body, got)
		}
	}
	if a := mine.do("GET", target, ""); a.member("phoneNumber") != before || a.member("status") != "connected" {
		t.Errorf("a patch changed more than it named: %s", a.Body)
	}
}

func TestBadPatches(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("enterprise")
	target := "/v1/devices/" + string(mine.device("d", postern.Connected))
	mine.do("PATCH", target, `{"metadata":{`+labels(49)+`"last":"v"}}`).want(http.StatusOK, "")
	before := mine.do("GET", target, "").shape()
	for _, tt := range []struct {
		body, pointer string
		status        int
		reason        postern.Reason
	}{
		{``, "", 400, postern.MalformedRequest},
		{`{"name":"a","name":"b"}`, "", 400, postern.MalformedRequest},
		{`{"Name":"a"}`, "", 400, postern.MalformedRequest},
		{`null`, "", 422, postern.ValidationFailed},
		{`{"name":null}`, "/name", 422, postern.ValidationFailed},
		{`{"name":""}`, "/name", 422, postern.ValidationFailed},
		{`{"name":"a\u0007"}`, "/name", 422, postern.ValidationFailed},
		{`{"name":"x","status":"connected"}`, "/status", 422, postern.ValidationFailed},
		{`{"phoneNumber":"+15550001111"}`, "/phoneNumber", 422, postern.ValidationFailed},
		{`{"workspaceId":"` + canary + `"}`, "/workspaceId", 422, postern.ValidationFailed},
		{`{"metadata":{"a":1}}`, "/metadata/a", 422, postern.ValidationFailed},
		{`{"metadata":[]}`, "/metadata", 422, postern.ValidationFailed},
		{`{"name":"new","metadata":{"one too many":"v"}}`, "", 413, postern.PayloadTooLarge},
		{`{"metadata":{"last":"` + canary + strings.Repeat("a", 500) + `"}}`, "", 413, postern.PayloadTooLarge},
		{`{"pace":{"perMinute":0}}`, "/pace/perMinute", 422, postern.ValidationFailed},
		{`{"pace":{"perMinute":1001}}`, "/pace/perMinute", 422, postern.ValidationFailed},
		{`{"pace":{"newChatsPerMinute":"` + canary + `"}}`, "/pace/newChatsPerMinute", 422, postern.ValidationFailed},
		{`{"pace":{"perHour":1}}`, "/pace/perHour", 422, postern.ValidationFailed},
		{`{"pace":5}`, "/pace", 422, postern.ValidationFailed},
		{`{"receive":{"direct":"no"}}`, "/receive/direct", 422, postern.ValidationFailed},
		{`{"receive":{"all":true}}`, "/receive/all", 422, postern.ValidationFailed},
		{`{"proxyUrl":""}`, "/proxyUrl", 422, postern.ValidationFailed},
		{`{"proxyUrl":"ftp://` + canary + `.test"}`, "/proxyUrl", 422, postern.ValidationFailed},
		{`{"proxyUrl":1}`, "/proxyUrl", 422, postern.ValidationFailed},
	} {
		a := mine.do("PATCH", target, tt.body, "Content-Type", "application/json")
		a.what = tt.body
		p := a.want(tt.status, tt.reason)
		if tt.pointer != "" && (len(p.Errors) != 1 || p.Errors[0].Pointer != tt.pointer) {
			t.Errorf("%s: %+v, want %s", tt.body, p.Errors, tt.pointer)
		}
		if strings.Contains(a.Body.String(), canary) {
			t.Errorf("%s: the answer repeats the input: %s", tt.body, a.Body)
		}
	}
	if got := mine.do("GET", target, "").shape(); got != before {
		t.Errorf("bad patches changed the device:\n%s\n%s", before, got)
	}
}

// TestProxyIsNeverShown looks for its password everywhere a caller can look.
func TestProxyIsNeverShown(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("enterprise")
	id := mine.device("d", postern.Connected)
	target := "/v1/devices/" + string(id)
	a := mine.do("PATCH", target, `{"proxyUrl":"socks5://user:`+canary+`@proxy.test:1080"}`)
	a.want(http.StatusOK, "")
	list := mine.do("GET", "/v1/devices", "")
	for _, text := range []string{
		a.Body.String(), list.Body.String(), mine.do("GET", target, "").Body.String(),
		s.log.String(),
	} {
		if strings.Contains(text, canary) || strings.Contains(text, "roxy") {
			t.Errorf("the proxy is shown: %s", text)
		}
	}
	d, err := s.db.Devices.ForEngine(t.Context(), id)
	if err != nil || len(d.Proxy) == 0 || strings.Contains(string(d.Proxy), canary) {
		t.Errorf("the proxy is kept as %q (%v)", d.Proxy, err)
	}
	if url, err := s.g.Sessions.ProxyOf(&d); err != nil || url != "socks5://user:"+canary+"@proxy.test:1080" {
		t.Errorf("the engine reads %q, %v", url, err)
	}
	d.ID = "dev_other"
	if url, err := s.g.Sessions.ProxyOf(&d); err == nil {
		t.Errorf("a proxy of another device opens: %q", url)
	}
	mine.do("PATCH", target, `{"proxyUrl":null}`).want(http.StatusOK, "")
	if d, err := s.db.Devices.ForEngine(t.Context(), id); err != nil || len(d.Proxy) != 0 {
		t.Errorf("a removed proxy stays: %q, %v", d.Proxy, err)
	}
}

// The end of a link attempt is reported, too, when its device is deleted.
func TestADeletedDeviceEndsItsAttempt(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("growth")
	device := "/v1/devices/" + mine.do("POST", "/v1/devices", `{"name":"a"}`).member("id")
	mine.do("POST", device+"/link", "").want(http.StatusCreated, "")
	mine.do("DELETE", device, "").want(http.StatusNoContent, "")
	l := mine.events("type=device.linking")
	if len(l.Data) != 2 || l.Data[1].Device["status"] != "unlinked" || l.Data[1].Device["statusReason"] != "deleted" {
		t.Errorf("the events are %+v", l.Data)
	}
}
