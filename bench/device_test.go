package bench

import (
	"fmt"
	"testing"

	"postern/bench/bare"
	"postern/internal/postern"
	"postern/internal/testkit"
)

// fleet are devices that have the same load.
type fleet struct {
	devices   int
	perDevice int // messages of each device in a sample
	callers   int // that send messages by each device

	sent, received float64 // floors of the ratios
}

// fleets are one device, ten and fifty.
func fleets() []fleet {
	return []fleet{
		{devices: 1, perDevice: 400, callers: 16, sent: 0.95, received: 0.9},
		{devices: 10, perDevice: 100, callers: 2, sent: 1.5, received: 1.3},
		{devices: 50, perDevice: 40, callers: 2, sent: 1.8, received: 1.4},
	}
}

func (f fleet) String() string {
	if f.devices == 1 {
		return "one device"
	}
	return fmt.Sprintf("%d devices", f.devices)
}

func (f fleet) total() int { return f.devices * f.perDevice }

const (
	ourNumber  = "+1555000%04d" // of a device of the gateway
	bareNumber = "+1555900%04d" // of a bare client
	ordinary   = "A message of ordinary length."
)

// device measures texts through one device, ten and fifty, and the processor time of each text, on
// both engines. The bare clients keep their keys in SQLite.
func device(t *testing.T) (list []figure) {
	for _, e := range engines(t) {
		for _, all := range fleets() {
			t.Run(fmt.Sprintf("%d on %s", all.devices, e.name), func(t *testing.T) {
				list = append(list, traffic(t, all, e)...)
			})
		}
		t.Run("processor time on "+e.name, func(t *testing.T) {
			list = append(list, costs(t, e)...)
		})
	}
	return list
}

// traffic measures texts: sent until the vendor has confirmed them, and received until a
// webhook receiver has answered. It compares them with plain clients that only send and decrypt.
func traffic(t *testing.T, all fleet, e engine) []figure {
	k := testkit.StartAsServed(t, e.url(t))
	c := k.Workspace("enterprise")
	hooks := c.Receive("message.received")
	var list []postern.Device
	for n := range all.devices {
		list = append(list, c.Link(fmt.Sprintf(ourNumber, n)))
	}
	clients := bareClientsOf(t, k, all.devices)
	var sent, received struct{ ours, bare pieces }
	for round := range rounds {
		sent.ours.add(t, all.total(), func() { all.send(t, c, k, list) })
		sent.bare.add(t, all.total(), func() {
			if err := clients.SendAll(t.Context(), all.devices, all.perDevice); err != nil {
				t.Fatal(err)
			}
		})
		received.ours.add(t, all.total(), func() {
			all.receive(t, k, ourNumber)
			hooks.AwaitCount(postern.MessageReceived, (round+1)*all.total())
		})
		received.bare.add(t, all.total(), func() {
			all.receive(t, k, bareNumber)
			if err := clients.AwaitReceived(t.Context(), (round+1)*all.total()); err != nil {
				t.Fatal(err)
			}
		})
	}
	return []figure{
		all.figure("texts sent, ", e, all.sent, sent.ours, sent.bare,
			"accepted to confirmed by the vendor; bare: whatsmeow on its sqlstore, the same fsync"),
		all.figure("texts received, ", e, all.received, received.ours, received.bare,
			"written to answered by the webhook receiver; bare: whatsmeow, decrypted and dropped"),
	}
}

// figure is the rate of texts, with the processor time of everything that runs in this process.
func (f fleet) figure(name string, e engine, floor float64, ours, plain pieces, extra string) figure {
	return figure{
		name: name + f.String() + e.on(), unit: "/s", floor: floor, ours: ours.rates, bare: plain.rates,
		extra: fmt.Sprintf("%s; processor time with the vendor, the callers and the receiver %.2f ms, bare %.2f", extra,
			median(ours.costs), median(plain.costs)),
	}
}

func bareClientsOf(t *testing.T, k *testkit.Kit, n int) *bare.Clients {
	t.Helper()
	clients, err := bare.OpenClients(t.Context(), bare.In(k.Vendor), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := clients.Close(); err != nil {
			t.Error(err)
		}
	})
	for n := range n {
		if _, err := clients.Link(t.Context(), fmt.Sprintf(bareNumber, n)); err != nil {
			t.Fatal(err)
		}
	}
	return clients
}

// receive lets a contact write to every account of the fleet.
func (f fleet) receive(t *testing.T, k *testkit.Kit, number string) {
	t.Helper()
	inParallel(f.devices, func(n int) error {
		for range f.perDevice {
			if _, err := k.Vendor.Send(t.Context(), fmt.Sprintf(number, n), "+15551234567", ordinary); err != nil {
				return err
			}
		}
		return nil
	}, t)
}

// send lets every device send, and waits until the vendor has confirmed everything.
func (f fleet) send(t *testing.T, c *testkit.Client, k *testkit.Kit, list []postern.Device) {
	t.Helper()
	f.post(t, c.Key, k.URL(), func(n int) string { return string(list[n].ID) })
	for _, d := range list {
		awaitNewestSent(t, c, d.ID)
	}
}

// post requests the fleet's texts of a gateway at a URL.
func (f fleet) post(t *testing.T, key, url string, device func(n int) string) {
	t.Helper()
	inParallel(f.devices*f.callers, func(n int) error {
		call := caller(key, "POST", url+"/v1/messages",
			`{"deviceId":"`+device(n%f.devices)+`","to":"+15005550002","body":"`+ordinary+`"}`, 202)
		for range f.perDevice / f.callers {
			if err := call(); err != nil {
				return err
			}
		}
		return nil
	}, t)
}
