package chaos_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"postern/internal/chaos"
	"postern/internal/failpoint"
	"postern/vendorsim"
)

// settle ends the load, waits until nothing is under way anywhere, and stops the
// gateway.
func (w *world) settle() {
	w.t.Helper()
	w.driver.finish()
	w.receiver.calm.Store(true)
	if w.opts.Mistake == failpoint.NeverTake {
		w.pauseAll()
	}
	if w.opts.Changes {
		w.marking = true
		w.quieten()
		w.readAtLast()
		w.marking = false
	}
	w.quieten()
	w.halt()
	if w.opts.Sweep {
		w.sweep()
	}
}

// halt stops the gateway in good order.
func (w *world) halt() {
	w.t.Helper()
	for _, n := range w.nodes[min(1, len(w.nodes)):] {
		w.stop(n.gateway)
	}
	if len(w.nodes) > 1 {
		w.quieten() // the last server has taken the devices of the others, which are events
	}
	w.stop(w.gateway)
}

func (w *world) stop(g *gateway) {
	w.t.Helper()
	g.serve("")
	if err := g.running().stop(patience(w.t)); err != nil {
		w.t.Errorf("the gateway's last stop: %v", err)
	}
}

// sweep makes everything in the storage old, adds contents that belong to no file, and starts the
// gateway, which sweeps the storage in the order of the names. It returns when the last of these
// contents is gone, nothing is under way, and the gateway is stopped again.
func (w *world) sweep() {
	w.t.Helper()
	last := strings.Repeat("f", 64)
	w.store(last, nil)
	for i := range 8 {
		content := fmt.Appendf(nil, "orphan %d", i)
		w.store(chaos.Sum(content), content)
	}
	old := time.Now().Add(-24 * time.Hour)
	err := filepath.WalkDir(filepath.Join(w.gateway.dir, "media"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chtimes(path, old, old)
	})
	if err != nil {
		w.t.Error(err)
	}
	w.boot()
	w.await("a sweep", func() bool { _, err := os.Stat(w.contentAt(last)); return err != nil })
	w.quieten()
	w.stop(w.gateway)
}

func (w *world) contentAt(hash string) string {
	return filepath.Join(w.gateway.dir, "media", w.workspace, hash[:2], hash)
}

// store adds a content to the storage.
func (w *world) store(hash string, content []byte) {
	w.t.Helper()
	name := w.contentAt(hash)
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		err = os.WriteFile(name, content, 0o600)
	}
	if err != nil {
		w.t.Error(err)
	}
}

// quieten waits until nothing is under way. The vendor keeps back a reordered message
// until another one follows it: if nothing else is left and nothing moves, a new
// connection makes it hand over the message.
func (w *world) quieten() {
	w.t.Helper()
	const still = 5 * time.Second
	var queued int
	moved := time.Now()
	w.settling = 0
	w.await("the end of everything under way", func() bool {
		left := w.underWay()
		if now := w.queued(); left != vendorHolds || now != queued {
			queued, moved = now, time.Now()
		} else if time.Since(moved) > still {
			moved = time.Now()
			w.fault("*", "drop")
		}
		w.left = left
		return left == ""
	})
	if w.left != "" {
		w.t.Errorf("still under way: %s", w.left)
	}
}

const vendorHolds = "the vendor still holds inbound messages or receipts"

// underWay says what is still to be done; "" means nothing. The stages are in the order
// in which a message passes them. Once the load has ended, a stage that is empty stays
// empty if all earlier ones are, so a single pass that finds all of them empty proves
// that nothing moves any more.
func (w *world) underWay() string {
	stages := []func() string{
		w.unwritten, w.unsent, w.unconfirmed, w.unreadInGroups, w.unconnected, w.untaken, w.unwritten, w.unfetched,
		w.unsettled, w.undelivered,
	}
	switch w.opts.Mistake {
	case failpoint.NeverTake: // the devices are paused: only the stages behind the devices move
		stages = []func() string{w.unpaused, w.undelivered}
	default:
	}
	for _, stage := range stages {
		if left := stage(); left != "" {
			if left != notSettled {
				w.settling = 0
			}
			return left
		}
	}
	return ""
}

// unwritten looks for messages that were answered for and are not in the database: those
// accepted with a 202, and those acknowledged to the vendor. A mistake may lose some of
// them at a kill; then only those count that were accepted or arrived after the last kill. One that
// arrived before may be lost although it is acknowledged afterwards: a later message's write has kept
// the state of the session, so that the lost one is taken for a duplicate.
func (w *world) unwritten() string {
	var missing []string
	note := func(id string) {
		if !w.written[id] {
			missing = append(missing, id)
		}
	}
	w.noteActions()
	for _, id := range w.driver.acceptedBy(w.life()) {
		note(id)
	}
	for _, e := range w.ledger() {
		if e.Direction == "inbound" && e.AckedAt != nil && e.Refused == 0 &&
			(!w.opts.loses() || e.ArrivedAt.After(w.since)) {
			note(e.NetworkID)
		}
	}
	if len(missing) > 0 && !w.find(missing) {
		return "messages that were answered for are not written yet"
	}
	return ""
}

// noteActions notes the actions that are in the database. No list of the API has them.
func (w *world) noteActions() {
	taken, err := chaos.Taken(w.t.Context(), w.gateway.dir, w.url)
	if err != nil {
		w.t.Error(err)
	}
	maps.Copy(w.written, taken)
}

// life is the URL of the process whose answers count, or "" if all of them do.
func (w *world) life() string {
	if !w.opts.loses() {
		return ""
	}
	now, _ := w.where()
	return now
}

// find looks for messages in the gateway's list, the newest first, until it has seen
// them all.
func (w *world) find(ids []string) bool {
	type page struct {
		Data       []struct{ ID, NetworkID string }
		NextCursor string
	}
	for cursor := ""; ; {
		var p page
		query := url.Values{"limit": {"100"}}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		w.api("GET", "/v1/messages?"+query.Encode(), nil, &p)
		for _, m := range p.Data {
			w.written[m.ID], w.written[m.NetworkID] = true, true
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return w.written[id] })
		if cursor = p.NextCursor; len(ids) == 0 || cursor == "" {
			return len(ids) == 0
		}
	}
}

// unsent looks for outbound messages without an end. Those that NeverFinish has chosen
// are tried for ever.
func (w *world) unsent() string {
	list, err := chaos.Unsent(w.t.Context(), w.gateway.dir, w.url, w.workspace)
	if err != nil {
		w.t.Error(err)
	}
	for _, m := range list {
		if w.opts.Mistake != failpoint.NeverFinish || m.Status != "sending" || !failpoint.Chosen(m.NetworkID) {
			return "messages are " + m.Status
		}
	}
	return ""
}

// unconfirmed looks for messages that a phone has not read, confirmed or echoed although
// it will.
func (w *world) unconfirmed() string {
	entries := w.ledger()
	echoes := map[string]bool{} // by body
	for _, e := range entries {
		if e.Direction == "inbound" && e.Peer == vendorsim.NumberEcho {
			echoes[e.Body] = true
		}
	}
	for _, e := range entries {
		switch {
		case e.Direction != "outbound" || e.Peer == silent:
		case e.Type == vendorsim.TypeUnreadable:
			return "a phone has asked for a message again"
		case e.Target != "", e.Group != "": // an action is not confirmed; a group is by each member
		case e.DeliveredAt == nil, e.Peer == reader && e.ReadAt == nil, e.Peer == echo && !echoes[e.Body]:
			return "a phone has not reacted yet"
		}
	}
	return ""
}

// unconnected looks for devices that are not connected: their state changes again.
func (w *world) unconnected() string { return w.otherThan("connected") }

func (w *world) unpaused() string { return w.otherThan("paused") }

func (w *world) otherThan(status string) string {
	var list struct{ Data []struct{ Status string } }
	w.api("GET", "/v1/devices?limit=100", nil, &list)
	for _, d := range list.Data {
		if d.Status != status {
			return "a device is " + d.Status
		}
	}
	return ""
}

// untaken looks for what the vendor has for the gateway.
func (w *world) untaken() string {
	if w.queued() > 0 || slices.ContainsFunc(w.ledger(), func(e chaos.Entry) bool {
		return e.Direction == "inbound" && e.AckedAt == nil
	}) {
		return vendorHolds
	}
	return ""
}

// unfetched looks for files that are to be fetched.
func (w *world) unfetched() string {
	n, err := chaos.PendingFiles(w.t.Context(), w.gateway.dir, w.url, w.workspace)
	if err != nil {
		w.t.Error(err)
	}
	if n > 0 {
		return "files are not fetched"
	}
	return ""
}

// undelivered looks for webhook deliveries without an end.
func (w *world) undelivered() string {
	var list struct{ Data []json.RawMessage }
	w.api("GET", "/v1/webhooks/"+w.hook+"/deliveries?limit=1&status=pending", nil, &list)
	if len(list.Data) > 0 {
		return "deliveries are pending"
	}
	return ""
}

// queued counts the messages and receipts that the gateway has not acknowledged.
func (w *world) queued() (n int) {
	for _, a := range w.accounts() {
		n += a.Queued
	}
	return n
}

// offline reports whether the vendor has seen the end of all connections.
func (w *world) offline() bool {
	return !slices.ContainsFunc(w.accounts(), func(a account) bool { return a.Online })
}

// account is an account of the vendor.
type account struct {
	Number string
	Online bool
	Queued int

	Logins   int
	Replaced int
}

// accounts returns those of the workspace's devices.
func (w *world) accounts() []account {
	var list struct{ Data []account }
	if err := w.vendor.ask("GET", "/accounts", nil, &list); err != nil {
		w.t.Error(err)
	}
	return slices.DeleteFunc(list.Data, func(a account) bool { return !w.has(a.Number) })
}

// has reports whether a number is that of a device of the workspace.
func (w *world) has(number string) bool {
	return slices.ContainsFunc(w.devices, func(d device) bool { return d.number == number })
}

// ledger reads what the vendor's ledger has about the devices of the workspace.
func (w *world) ledger() (entries []chaos.Entry) {
	w.t.Helper()
	for after := int64(0); ; {
		var page struct {
			Data []chaos.Entry
			Next int64
		}
		if err := w.vendor.ask("GET", fmt.Sprintf("/ledger?after=%d", after), nil, &page); err != nil {
			w.t.Fatal(err)
		}
		if len(page.Data) == 0 {
			return entries
		}
		page.Data = slices.DeleteFunc(page.Data, func(e chaos.Entry) bool { return !w.has(e.Account) })
		entries, after = append(entries, page.Data...), page.Next
	}
}

// stuck reports whether each device has an inbound message that NeverTake refuses for
// ever.
func (w *world) stuck() bool {
	waiting := map[string]bool{} // by number
	for _, e := range w.ledger() {
		if e.Direction == "inbound" && e.AckedAt == nil && failpoint.Chosen(e.NetworkID) {
			waiting[e.Account] = true
		}
	}
	return len(waiting) == len(w.devices)
}

// pauseAll pauses the devices, so that they do not reconnect again and again.
func (w *world) pauseAll() {
	for _, d := range w.devices {
		w.api("POST", "/v1/devices/"+d.id+"/pause", nil, nil)
	}
}

func (w *world) fault(account, kind string) {
	if err := w.vendor.ask("POST", "/faults", map[string]string{"account": account, "kind": kind}, nil); err != nil {
		w.t.Error(err)
	}
}
