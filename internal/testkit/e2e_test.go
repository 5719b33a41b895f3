package testkit_test

import (
	"encoding/json"
	"flag"
	"hash/crc32"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/store/migrated"
	"postern/internal/testkit"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow" //nolint:depguard // how often it pings is a variable of the process
)

const (
	phone    = "+15550001111"
	customer = "+15551234567"
	reader   = "+15005550003" // reads at once
	absent   = "+15005550001" // not on the network
	parrot   = "+15005550004" // replies with the same text
)

func send(c *testkit.Client, d postern.Device, to, body string) (m postern.Message) {
	c.Call("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": to, "body": body}, 202, &m)
	return m
}

var (
	timestamp = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	eventID   = regexp.MustCompile(`^evt_[0-9A-HJKMNP-TV-Z]{26}$`)
)

// checkEnvelope checks what the interface requires of every event.
func checkEnvelope(t *testing.T, d testkit.Delivery, device postern.DeviceID) {
	t.Helper()
	id, _ := d.Event["eventId"].(string)
	at, _ := d.Event["timestamp"].(string)
	if !eventID.MatchString(id) || !timestamp.MatchString(at) || d.Event["deviceId"] != string(device) {
		t.Errorf("envelope of %s: eventId %v, timestamp %v, deviceId %v", d.Type(), d.Event["eventId"],
			d.Event["timestamp"], d.Event["deviceId"])
	}
	for name, want := range map[string]string{
		"Webhook-Id":          id,
		"X-Service-Signature": d.Header.Get("Webhook-Signature"), "Content-Type": "application/json",
		"Webhook-Attempt": "1",
	} {
		if got := d.Header.Get(name); got != want || got == "" {
			t.Errorf("header %s of %s = %q, want %q", name, d.Type(), got, want)
		}
	}
}

func TestMain(m *testing.M) {
	// A half-open connection shows after two pings without an answer: 40 s and
	// more, which is long for a test. Nothing reads these variables yet.
	whatsmeow.KeepAliveIntervalMin, whatsmeow.KeepAliveIntervalMax = 2*time.Second, 3*time.Second
	whatsmeow.KeepAliveResponseDeadline = 4 * time.Second
	debug.SetGCPercent(400) // collecting takes a fifth of the time, and the tests hold little
	os.Exit(dbtest.Binary{M: m}.Run())
}

var engines = flag.String("engines", "one", "databases for the tests whose subject is another: one or both")

// engine is a database of a gateway.
type engine struct {
	name string
	url  func(tb testing.TB) string
}

func bothEngines() []engine {
	return []engine{{"sqlite", func(testing.TB) string { return "" }}, {"postgres", migrated.URL}}
}

// onEachEngine runs a test on a gateway with the embedded database, and on one
// with PostgreSQL.
func onEachEngine(t *testing.T, test func(t *testing.T, k *testkit.Kit)) {
	t.Helper()
	onEngines(t, bothEngines(), test)
}

// onOneEngine runs a test whose subject is not what the database does: what is sent and received,
// how it is encrypted, or another program. Its name decides on which database, so that each has
// half of these tests. With -engines both it is like onEachEngine.
func onOneEngine(t *testing.T, test func(t *testing.T, k *testkit.Kit)) {
	t.Helper()
	list := bothEngines()
	if *engines != "both" {
		i := crc32.ChecksumIEEE([]byte(t.Name())) % 2
		list = list[i : i+1]
	}
	onEngines(t, list, test)
}

func onEngines(t *testing.T, list []engine, test func(t *testing.T, k *testkit.Kit)) {
	t.Helper()
	t.Parallel()
	for _, e := range list {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(t, testkit.StartOn(t, e.url(t)))
		})
	}
}

func TestTheWholeLoop(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive()
		d := c.Link(phone)
		if d.PhoneNumber != phone || d.Mode != "sandbox" || d.LinkedAt == 0 || d.ConnectedAt == 0 {
			t.Errorf("linked device = %+v", d)
		}
		hooks.Await(postern.DeviceLinked, postern.DeviceConnected)

		m := send(c, d, reader, "Grüße <&> 👋\n\"quoted\"")
		if m.Status != postern.Queued || m.To != reader || m.From != phone || m.NetworkID == "" {
			t.Errorf("accepted message = %+v", m)
		}
		for i, del := range hooks.Await(postern.MessageSent, postern.MessageDelivered, postern.MessageRead) {
			want := []postern.EventType{postern.MessageSent, postern.MessageDelivered, postern.MessageRead}[i]
			checkEnvelope(t, del, d.ID)
			message, _ := del.Event["message"].(map[string]any)
			if del.Type() != want || message["id"] != string(m.ID) || message["body"] != m.Content.Text ||
				"message."+message["status"].(string) != string(want) {
				t.Errorf("event %d = %s, want %s of message %s", i, del.Body, want, m.ID)
			}
		}
		m = c.AwaitMessage(m.ID, postern.Read)
		if m.SentAt == 0 || m.DeliveredAt == 0 || m.ReadAt == 0 {
			t.Errorf("a read message lacks a time: %+v", m)
		}
		if shown := k.Vendor.Shown(reader); len(shown) != 1 || shown[0].Body != m.Content.Text ||
			shown[0].From != phone || shown[0].ID != m.NetworkID {
			t.Errorf("the recipient's phone shows %+v", shown)
		}

		c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound",
			map[string]any{"from": customer, "body": "Is anybody there?"}, 200, nil)
		got := hooks.Await(postern.MessageReceived)[0]
		checkEnvelope(t, got, d.ID)
		message, _ := got.Event["message"].(map[string]any)
		id, _ := message["id"].(string)
		if !strings.HasPrefix(id, "msg_") || message["from"] != customer || message["body"] != "Is anybody there?" ||
			message["chatId"] != customer ||
			message["type"] != "text" {
			t.Errorf("message.received = %s", got.Body)
		}
		var stored postern.Message
		c.Call("GET", "/v1/messages/"+id, nil, 200, &stored)
		if stored.Direction != "inbound" || stored.Content.Text != "Is anybody there?" ||
			string(stored.From) != customer {
			t.Errorf("stored message = %+v", stored)
		}
		var usage struct{ Data []postern.Message }
		c.Call("GET", "/v1/messages?direction=outbound", nil, 200, &usage)
		if len(usage.Data) != 1 {
			t.Errorf("%d outbound messages are listed, want 1", len(usage.Data))
		}
		checkSequence(t, hooks.All(), d.ID)
	})
}

// checkSequence checks that a device's events are numbered without holes and
// that no eventId came for two events.
func checkSequence(t *testing.T, all []testkit.Delivery, device postern.DeviceID) {
	t.Helper()
	ids := map[float64]string{}
	for _, d := range all {
		if d.Event["deviceId"] != string(device) {
			continue
		}
		n, _ := d.Event["sequence"].(float64)
		id, _ := d.Event["eventId"].(string)
		if before, seen := ids[n]; seen && before != id {
			t.Errorf("sequence %v is %s and %s", n, before, id)
		}
		ids[n] = id
	}
	for n := range len(ids) {
		if ids[float64(n+1)] == "" {
			t.Errorf("sequence %d is missing", n+1)
		}
	}
}

func TestDeviceListIsWhatTheInterfaceSays(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("starter")
	a := c.Do("GET", "/v1/devices", nil, "Accept", "application/json")
	if a.Status != 200 || a.Header.Get("Content-Type") != "application/json" ||
		string(a.Body) != `{"data":[],"nextCursor":null}` {
		t.Errorf("no devices: %d %s %s", a.Status, a.Header.Get("Content-Type"), a.Body)
	}
	d := c.Link(phone)
	var list struct {
		Data []struct{ ID, Status string }
	}
	c.Call("GET", "/v1/devices", nil, 200, &list)
	if len(list.Data) != 1 || list.Data[0].ID != string(d.ID) || list.Data[0].Status != "connected" {
		t.Errorf("list = %+v", list)
	}
}

func TestReceiverThatComesBackGetsEverythingOnce(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive("message.received")
	d := c.Link(phone)
	hooks.Down(503)
	for i := range 5 {
		c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound",
			map[string]any{"from": customer, "body": string(rune('a' + i))}, 200, nil)
	}
	hooks.AwaitRefused(5)
	var log struct{ Data []postern.Delivery }
	testkit.Eventually(t, "five deliveries that wait for their second attempt", func() (bool, any) {
		log.Data = nil
		c.Call("GET", "/v1/webhooks/"+string(hooks.Endpoint.ID)+"/deliveries?status=pending", nil, 200, &log)
		waiting := 0
		for _, del := range log.Data {
			if del.Attempts >= 1 && del.LastStatus == 503 && del.LastReason == "status" &&
				del.NextAttemptAt > del.LastAttemptAt {
				waiting++
			}
		}
		return waiting == 5, log.Data
	})
	hooks.Down(0)
	list := hooks.Await(slices.Repeat([]postern.EventType{postern.MessageReceived}, 5)...)
	var bodies []string
	for _, del := range list {
		message, _ := del.Event["message"].(map[string]any)
		bodies = append(bodies, message["body"].(string))
		if n, err := strconv.Atoi(del.Header.Get("Webhook-Attempt")); err != nil || n < 2 {
			t.Errorf("webhook-attempt = %d, %v, want 2 or more", n, err)
		}
	}
	slices.Sort(bodies)
	if strings.Join(bodies, "") != "abcde" {
		t.Errorf("bodies = %v, want each once", bodies)
	}
}

func TestVendorThatDropsTheSocketInMidSend(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]vendorsim.Fault{
		"after it took the message, before its answer": vendorsim.FaultDropBeforeAck,
		"before it took the message":                   "drop-on-message",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := testkit.Start(t)
			c := k.Workspace("growth")
			hooks := c.Receive()
			d := c.Link(phone)
			if err := k.Vendor.Fault(t.Context(), phone, fault); err != nil {
				t.Fatal(err)
			}
			m := send(c, d, reader, "once and only once")
			hooks.Await(postern.MessageSent, postern.MessageDelivered, postern.MessageRead)
			c.AwaitMessage(m.ID, postern.Read)
			c.Await(d.ID, postern.Connected)
			if shown := k.Vendor.Shown(reader); len(shown) != 1 || shown[0].Body != "once and only once" {
				t.Errorf("the recipient's phone shows %+v", shown)
			}
			outbound := 0
			for _, e := range k.Vendor.Ledger(0, 100) {
				if e.Direction == "outbound" {
					outbound++
					if e.NetworkID != m.NetworkID {
						t.Errorf("the vendor saw the network id %s, want %s", e.NetworkID, m.NetworkID)
					}
				}
			}
			if outbound != 1 {
				t.Errorf("the vendor's ledger has %d messages, want 1", outbound)
			}
		})
	}
}

func TestRestartConnectsAgainWithoutAScan(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive()
		d := c.Link(phone)
		hooks.Await(postern.DeviceLinked, postern.DeviceConnected)
		k.Stop()
		// What arrives meanwhile waits at the vendor.
		if _, err := k.Vendor.Send(t.Context(), phone, customer, "while you were away"); err != nil {
			t.Fatal(err)
		}
		k.Boot()
		c.Await(d.ID, postern.Connected)
		got := hooks.Await(postern.MessageReceived)
		if message, _ := got[0].Event["message"].(map[string]any); message["body"] != "while you were away" {
			t.Errorf("message.received = %s", got[0].Body)
		}
		m := send(c, d, reader, "back again")
		c.AwaitMessage(m.ID, postern.Read)
		hooks.Await(postern.MessageSent, postern.MessageDelivered, postern.MessageRead, // in any order
			postern.DeviceConnected, postern.DeviceConnected)
		linked := 0
		for _, del := range hooks.All() {
			if del.Type() == postern.DeviceLinked {
				linked++
			}
		}
		if linked != 1 {
			t.Errorf("device.linked came %d times, want 1", linked)
		}
		checkSequence(t, hooks.All(), d.ID)
	})
}

func TestDatabaseThatCrashesCostsNothingThatWasAccepted(t *testing.T) {
	t.Parallel()
	cluster := dbtest.New(t)
	k := testkit.StartOn(t, cluster.URL(t))
	c := k.Workspace("growth")
	hooks := c.Receive("message.received")
	d := c.Link(phone)
	accepted := map[postern.MessageID]bool{}
	for round := range 3 {
		for range 20 {
			accepted[send(c, d, reader, "before the crash").ID] = true
		}
		cluster.Crash()
		if a := c.Do("POST", "/v1/messages",
			map[string]any{
				"deviceId": d.ID, "to": reader,
				"body": "without a database",
			}); a.Status != 503 ||
			a.Header.Get("Retry-After") == "" {
			t.Errorf("a send without a database = %d %v %s, want 503 with Retry-After", a.Status, a.Header, a.Body)
		}
		if _, err := k.Vendor.Send(t.Context(), phone, customer, strconv.Itoa(round)); err != nil {
			t.Fatal(err)
		}
		cluster.Start(t)
		testkit.Eventually(t, "a send with the database back", func() (bool, any) {
			a := c.Do("POST", "/v1/messages",
				map[string]any{"deviceId": d.ID, "to": reader, "body": "after the crash", "whenDisconnected": "queue"})
			return a.Status == 202, string(a.Body)
		})
	}
	for id := range accepted {
		c.AwaitMessage(id, postern.Read)
	}
	testkit.Eventually(t, "every message that arrived, with one eventId", func() (bool, any) {
		ids := map[string]string{}
		for _, del := range hooks.All() {
			if del.Type() != postern.MessageReceived {
				continue
			}
			message, _ := del.Event["message"].(map[string]any)
			body, id := message["body"].(string), del.Event["eventId"].(string)
			if before := ids[body]; before != "" && before != id {
				t.Errorf("message %s came as %s and %s", body, before, id)
			}
			ids[body] = id
		}
		return len(ids) == 3, ids
	})
}

func TestMessageQueuedWhileAwayIsSentAfterwards(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := c.Link(phone)
	for range 3 { // so that it stays disconnected for some seconds
		if err := k.Vendor.Fault(t.Context(), phone, "refuse:503"); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Vendor.Fault(t.Context(), phone, vendorsim.FaultDrop); err != nil {
		t.Fatal(err)
	}
	c.Await(d.ID, postern.Disconnected)
	var m postern.Message
	c.Call("POST", "/v1/messages",
		map[string]any{"deviceId": d.ID, "to": reader, "body": "later", "whenDisconnected": "queue"}, 202, &m)
	c.AwaitMessage(m.ID, postern.Read)
}

func TestRecipientWhoIsNotThereCostsNothing(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive("message.failed")
	d := c.Link(phone)
	m := send(c, d, absent, "hello?")
	m = c.AwaitMessage(m.ID, postern.Failed)
	if m.Error == nil || m.Error.Code != postern.RecipientNotFound {
		t.Errorf("error = %+v, want RECIPIENT_NOT_FOUND", m.Error)
	}
	del := hooks.Await(postern.MessageFailed)[0]
	message, _ := del.Event["message"].(map[string]any)
	if e, _ := message["error"].(map[string]any); e["code"] != "RECIPIENT_NOT_FOUND" {
		t.Errorf("message.failed = %s", del.Body)
	}
}

func TestParrotAnswersAndOwnerWritesOnThePhone(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive("message.received", "message.echo")
	d := c.Link(phone)
	send(c, d, parrot, "Polly")
	got := hooks.Await(postern.MessageReceived)[0]
	if message, _ := got.Event["message"].(map[string]any); message["body"] != "Polly" || message["from"] != parrot {
		t.Errorf("message.received = %s", got.Body)
	}
	if _, err := k.Vendor.Type(t.Context(), phone, customer, "written on the phone"); err != nil {
		t.Fatal(err)
	}
	echo := hooks.Await(postern.MessageEcho)[0]
	message, _ := echo.Event["message"].(map[string]any)
	if message["body"] != "written on the phone" || message["to"] != customer || message["source"] != "phone" {
		t.Errorf("message.echo = %s", echo.Body)
	}
	checkEnvelope(t, echo, d.ID)
}

func TestUnlinkAndDeleteTellTheVendor(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive("device.unlinked")
	d := c.Link(phone)
	c.Call("POST", "/v1/devices/"+string(d.ID)+"/unlink", nil, 200, &d)
	if d.Status != postern.Unlinked {
		t.Errorf("status = %s, want unlinked", d.Status)
	}
	hooks.Await(postern.DeviceUnlinked)
	awaitNotLinked(t, k, phone)
	// The same device can be linked again, by its number only, once the vendor's
	// answer is written down.
	testkit.Eventually(t, "the device to be free", func() (bool, any) {
		a := c.Do("POST", "/v1/devices/"+string(d.ID)+"/link", nil)
		return a.Status == 201, string(a.Body)
	})
	c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/scan", map[string]any{"phoneNumber": "+15550003333"}, 409, nil)
	testkit.Eventually(t, "a refused link", func() (bool, any) {
		var l postern.Link
		c.Call("GET", "/v1/devices/"+string(d.ID)+"/link", nil, 200, &l)
		return l.Status == postern.LinkFailed && l.Reason == "other-number", l
	})
	c.Call("POST", "/v1/devices/"+string(d.ID)+"/link", nil, 201, nil)
	c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/scan", nil, 200, nil)
	c.Await(d.ID, postern.Connected)
	c.Call("DELETE", "/v1/devices/"+string(d.ID), nil, 204, nil)
	c.Call("GET", "/v1/devices/"+string(d.ID), nil, 404, nil)
	awaitNotLinked(t, k, phone)
}

func awaitNotLinked(t *testing.T, k *testkit.Kit, number string) {
	t.Helper()
	testkit.Eventually(t, "the vendor to have no companion of "+number, func() (bool, any) {
		for _, a := range k.Vendor.Accounts() {
			if a.Number == number && a.Companions > 0 {
				return false, a
			}
		}
		return true, nil
	})
}

func TestPlanWithoutWebhooksPausesThemAndTheyCatchUp(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("starter")
	hooks := c.Receive("message.received")
	c.Link(phone)
	k.SetPlan(c.Workspace, "free")
	if a := c.Do("GET", "/v1/devices", nil); a.Status != 403 {
		t.Errorf("on the plan free: %d, want 403", a.Status)
	}
	if _, err := k.Vendor.Send(t.Context(), phone, customer, "while it was paused"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the message to be acknowledged", func() (bool, any) {
		for _, e := range k.Vendor.Ledger(0, 0) {
			if e.Direction == vendorsim.Inbound && e.AckedAt != nil {
				return true, nil
			}
		}
		return false, nil
	})
	for _, d := range hooks.All() {
		if d.Type() == postern.MessageReceived {
			t.Error("a webhook came on the plan free")
		}
	}
	k.SetPlan(c.Workspace, "starter")
	got := hooks.Await(postern.MessageReceived)
	if message, _ := got[0].Event["message"].(map[string]any); message["body"] != "while it was paused" {
		t.Errorf("message.received = %s", got[0].Body)
	}
}

// TestLogsShowNoSecret plants canaries in everything that must not be shown,
// runs the loop, and looks for them in all that was logged.
func TestLogsShowNoSecret(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive()
		var d postern.Device
		c.Call("POST", "/v1/devices", map[string]any{"name": "support"}, 201, &d)
		c.Call("POST", "/v1/devices/"+string(d.ID)+"/link", nil, 201, nil)
		var l postern.Link
		testkit.Eventually(t, "a code", func() (bool, any) {
			c.Call("GET", "/v1/devices/"+string(d.ID)+"/link", nil, 200, &l)
			return l.QR != "", l.Status
		})
		c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/scan", map[string]any{"phoneNumber": phone}, 200, nil)
		d = c.Await(d.ID, postern.Connected)
		const canary = "canary-7f3a text of a message"
		send(c, d, reader, canary)
		send(c, d, absent, canary)
		c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/inbound", map[string]any{"from": customer, "body": canary},
			200, nil)
		hooks.Await(postern.MessageReceived, postern.MessageRead, postern.MessageFailed)
		c.Do("POST", "/v1/messages?token="+c.Key, `{"deviceId":"`+canary+`","to":"`+customer+`","bo`)
		for _, kind := range []string{"drop", "logout"} {
			c.Do("POST", "/v1/sandbox/devices/"+string(d.ID)+"/faults", map[string]any{"kind": kind})
		}
		c.Await(d.ID, postern.LoggedOut)
		k.Stop()

		log := k.Log.String()
		secrets := []string{canary, "canary-7f3a", c.Key, c.Key[4:], hooks.Endpoint.Secret[6:], string(l.QR), "Bearer "}
		secrets = append(secrets, strings.Split(string(l.QR), ",")...)
		for _, number := range []string{phone, customer, reader, absent} {
			secrets = append(secrets, number[1:])
		}
		for _, s := range secrets {
			if len(s) > 4 && strings.Contains(log, s) {
				t.Errorf("the log shows %q", s)
			}
		}
		for _, line := range strings.Split(strings.TrimSpace(log), "\n") {
			if !json.Valid([]byte(line)) {
				t.Errorf("a log line is not JSON: %s", line)
			}
		}
		for _, want := range []string{
			`"msg":"request"`, `"request_id":"req_`, string(d.ID),
			`"msg":"message attempt"`,
		} {
			if !strings.Contains(log, want) {
				t.Errorf("the log lacks %s", want)
			}
		}
	})
}
