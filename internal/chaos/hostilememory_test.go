package chaos_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"postern/vendorsim"
)

// attack is what people, groups or the vendor do to an account.
type attack struct {
	name     string
	do       func(*world, device) error
	messages int64  // that the account receives by it
	chat     string // that there is when it has been read
}

func attacks() []attack {
	return []attack{
		{name: "20 subjects of 900 kB", do: (*world).subjectBombs},
		{name: "a group of 20,000 members", do: (*world).crowd},
		{name: "20 messages of 900 kB", do: (*world).textBombs, messages: 20},
		{name: "50 names of 100 kB in the address book", do: (*world).nameBombs},
		{name: "damaged app state, 5 times", do: (*world).damage},
		{name: "20 histories of up to 15 MB", do: (*world).pastBombs, chat: "+15590000019"},
	}
}

func (w *world) subjectBombs(dev device) error {
	for i := range 20 {
		err := w.vendor.ask("POST", "/groups/changes", map[string]any{
			"group": w.groupOf(dev), "by": membersOf(dev)[0], "subject": fmt.Sprint(i) + strings.Repeat("a", 900_000),
		}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) groupOf(dev device) string {
	return strings.TrimPrefix(w.driver.groups[dev.id], "group:")
}

func (w *world) crowd(dev device) error {
	list := make([]string, 20_000)
	for i := range list {
		list[i] = fmt.Sprintf("+1557%07d", i)
	}
	return w.vendor.ask("POST", "/groups/changes", map[string]any{
		"group": w.groupOf(dev), "by": membersOf(dev)[0], "add": list,
	}, nil)
}

func (w *world) textBombs(dev device) error {
	for i := range 20 {
		if err := w.write(dev, fmt.Sprint(i)+strings.Repeat("b", 900_000)); err != nil {
			return err
		}
	}
	return nil
}

// write lets a contact write to a device.
func (w *world) write(dev device, body string) error {
	return w.vendor.ask("POST", "/inbound", map[string]any{
		"to": dev.number, "from": "+15558880000", "type": "text", "body": body,
	}, nil)
}

func (w *world) nameBombs(dev device) error {
	for i := range 50 {
		err := w.vendor.ask("POST", "/contacts", map[string]any{
			"account": dev.number, "number": fmt.Sprintf("+1558%07d", i), "name": strings.Repeat("c", 100_000),
		}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) damage(dev device) error {
	for i := range 5 {
		w.fault(dev.number, fmt.Sprintf("%s:%d", vendorsim.FaultStateDamaged, i))
		err := w.vendor.ask("POST", "/chats", map[string]any{
			"account": dev.number, "chat": "+15558880000", "archived": i%2 == 0,
		}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) pastBombs(dev device) error {
	for i := range 20 {
		list := make([]map[string]any, 100)
		for j := range list {
			list[j] = map[string]any{
				"from": fmt.Sprintf("+1559%07d", i), "type": "text", "body": strings.Repeat("d", 7_500),
				"at": fmt.Sprintf("2026-01-01T%02d:%02d:00Z", i%24, j%60),
			}
		}
		err := w.vendor.ask("POST", "/history", map[string]any{"account": dev.number, "messages": list}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) hasChat(dev device, chat string) bool {
	base, _ := w.where()
	status, _ := w.driver.ask(base, http.MethodGet, "/v1/devices/"+dev.id+"/chats/"+chat, nil, "")
	return status == http.StatusOK
}

// hostileGrowth is how much more memory than idle the gateway may take under an attack, in KiB.
const hostileGrowth = 96 << 10

// What an account is sent by hostile people takes a bounded amount of memory, and afterwards it and another account
// still receive messages on the connections that they had.
func TestHostilePeopleTakeBoundedMemory(t *testing.T) {
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{Bin: bin, Devices: 2, Calm: true, Texts: true})
	close(w.driver.over)
	for _, dev := range w.devices {
		w.api(http.MethodPatch, "/v1/devices/"+dev.id, map[string]any{"receive": map[string]any{"history": true}}, nil)
	}
	for _, a := range attacks() {
		w.halt() // what came before took memory, of which some would count as idle
		w.boot()
		w.await("connected devices", func() bool { return w.unconnected() == "" })
		idle := w.idle()
		done := w.driver.done()
		if err := a.do(w, w.devices[0]); err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
		for _, dev := range w.devices {
			if err := w.write(dev, "still there"); err != nil {
				t.Error(err)
			}
		}
		w.await("messages of both after "+a.name, func() bool { return w.driver.done() >= done+a.messages+2 })
		w.await("the end of "+a.name, func() bool { return a.chat == "" || w.hasChat(w.devices[0], a.chat) })
		grown := w.gateway.running().memory(t).peak - idle
		t.Logf("%s: idle %d MiB, and at most %d MiB more", a.name, idle>>10, grown>>10)
		if grown > hostileGrowth {
			t.Errorf("%s: %d MiB more than idle, at most %d", a.name, grown>>10, hostileGrowth>>10)
		}
	}
	w.halt()
}
