package testkit

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"postern/internal/postern"
)

// Client calls the API with one key. Its methods fail the test on errors.
type Client struct {
	kit       *Kit
	Workspace postern.WorkspaceID
	Key       string
}

// Answer is a response of the API.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// JSON decodes the body into v.
func (a Answer) JSON(k *Kit, v any) {
	k.t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		k.t.Fatalf("%d %s: %v", a.Status, a.Body, err)
	}
}

// Do makes a request. The body is encoded as JSON unless it is nil or a string. Header
// contains names and values alternately.
func (c *Client) Do(method, path string, body any, header ...string) Answer {
	c.kit.t.Helper()
	var r io.Reader = http.NoBody
	switch b := body.(type) {
	case nil:
	case string:
		r = bytes.NewReader([]byte(b))
	default:
		text, err := json.Marshal(b)
		if err != nil {
			c.kit.t.Fatal(err)
		}
		r = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(c.kit.t.Context(), method, c.kit.URL()+path, r)
	if err != nil {
		c.kit.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return c.answer(req)
}

// Transport makes the requests of the tests. It is not http.DefaultTransport because the end of
// each httptest.Server closes the idle connections of that one, which fails a POST that has
// just taken one of them.
//
//nolint:errcheck,forcetypeassert,gochecknoglobals // the type that net/http documents; made once
var Transport = http.DefaultTransport.(*http.Transport).Clone()

func (c *Client) answer(req *http.Request) Answer {
	c.kit.t.Helper()
	res, err := Transport.RoundTrip(req)
	if err != nil {
		c.kit.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.kit.t.Fatal(err)
	}
	return Answer{res.StatusCode, res.Header, text}
}

// Call makes a request, which must be answered with the status, and decodes the response
// into out unless out is nil.
func (c *Client) Call(method, path string, body any, status int, out any) {
	c.kit.t.Helper()
	a := c.Do(method, path, body)
	if a.Status != status {
		c.kit.t.Fatalf("%s %s = %d %s, want %d", method, path, a.Status, a.Body, status)
	}
	if out != nil {
		a.JSON(c.kit, out)
	}
}

// Upload uploads a file, and decodes the response into out.
func (c *Client) Upload(name string, content io.Reader, out any) {
	c.kit.t.Helper()
	req, err := http.NewRequestWithContext(
		c.kit.t.Context(), http.MethodPost, c.kit.URL()+"/v1/media?filename="+url.QueryEscape(name), content)
	if err != nil {
		c.kit.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	a := c.answer(req)
	if a.Status != http.StatusCreated {
		c.kit.t.Fatalf("the upload of %s is answered %d %s", name, a.Status, a.Body)
	}
	a.JSON(c.kit, out)
}

// Download returns the content of a file.
func (c *Client) Download(id postern.MediaID) []byte {
	c.kit.t.Helper()
	a := c.Do("GET", "/v1/media/"+string(id)+"/content", nil)
	if a.Status != http.StatusOK {
		c.kit.t.Fatalf("the download is answered %d %s", a.Status, a.Body)
	}
	return a.Body
}

// At returns the client of the same workspace that makes its requests to another server.
func (c *Client) At(k *Kit) *Client {
	other := *c
	other.kit = k
	return &other
}

// Link creates a device and links it to the simulated phone with a number.
func (c *Client) Link(number string) postern.Device {
	c.kit.t.Helper()
	var d postern.Device
	c.Call("POST", "/v1/devices", map[string]any{"name": "support"}, 201, &d)
	c.Call("POST", "/v1/devices/"+string(d.ID)+"/link", nil, 201, nil)
	if a := c.Scan(d.ID, map[string]any{"phoneNumber": number}); a.Status != http.StatusOK {
		c.kit.t.Fatalf("the scan is answered %d %s", a.Status, a.Body)
	}
	return c.Await(d.ID, postern.Connected)
}

// Scan lets a simulated phone scan the code of a device's link attempt, or enter it. It asks again
// while the code is not there yet.
func (c *Client) Scan(id postern.DeviceID, body any) (a Answer) {
	c.kit.t.Helper()
	Eventually(c.kit.t, "a code to scan", func() (bool, any) {
		a = c.Do("POST", "/v1/sandbox/devices/"+string(id)+"/scan", body)
		return a.Status != http.StatusServiceUnavailable, string(a.Body)
	})
	return a
}

// Device returns the device with an id.
func (c *Client) Device(id postern.DeviceID) (d postern.Device) {
	c.kit.t.Helper()
	c.Call("GET", "/v1/devices/"+string(id), nil, 200, &d)
	return d
}

// Await waits until the device has the status, and returns the device.
func (c *Client) Await(id postern.DeviceID, status postern.Status) (d postern.Device) {
	c.kit.t.Helper()
	Eventually(c.kit.t, "device "+string(status), func() (bool, any) {
		c.Call("GET", "/v1/devices/"+string(id), nil, 200, &d)
		return d.Status == status, d.Status
	})
	return d
}

// AwaitMessage waits until the message has the status, and returns the message.
func (c *Client) AwaitMessage(id postern.MessageID, status postern.MessageStatus) (m postern.Message) {
	c.kit.t.Helper()
	Eventually(c.kit.t, "message "+string(status), func() (bool, any) {
		m = postern.Message{}
		c.Call("GET", "/v1/messages/"+string(id), nil, 200, &m)
		return m.Status == status, m.Status
	})
	return m
}

// TB is the part of testing.TB that Eventually needs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Eventually calls ask until ok is true. If that never happens, it fails the test and
// prints the last got. It asks again after a while that is longer when asking takes longer, so
// that it leaves the processor to what it waits for, and the longer it has waited: on a fast
// machine it would reach the rate limit of the plan otherwise.
func Eventually(t TB, what string, ask func() (ok bool, got any)) {
	t.Helper()
	const least, most = 5 * time.Millisecond, 200 * time.Millisecond // between two
	start := time.Now()
	for {
		began := time.Now()
		ok, got := ask()
		if ok {
			return
		}
		if time.Since(start) > Wait {
			t.Fatalf("waited in vain for %s; last: %v", what, got)
		}
		<-time.After(min(max(least, 4*time.Since(began), time.Since(start)/100), most))
	}
}
