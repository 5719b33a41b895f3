package chaos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"postern/internal/chaos"
	"postern/internal/failpoint"
	"postern/vendorsim"
)

// Recipients of the simulated vendor: one that is not on the network, one that never
// confirms, one that reads immediately and one that replies.
const (
	nobody = vendorsim.NumberUnknown
	silent = vendorsim.NumberSilent
	reader = vendorsim.NumberReader
	echo   = vendorsim.NumberEcho
)

// driver puts load on the gateway, and records its requests and the answers.
type driver struct {
	w     *world
	notes *chaos.Journal
	http  *http.Client

	stop  context.CancelFunc // ends the load; requests under way are still answered
	over  chan struct{}      // closed when the world ends: no more requests
	load  sync.WaitGroup
	rooms map[string]room // by device and by number

	groups map[string]string // the chat of a group that each device has created

	sent, received, failed  atomic.Int64  // messages that the receiver was told of; failed ones count as sent too
	moved                   chan struct{} // has room for one token: sent or received has grown
	repeats, broken, faults atomic.Int64
	discarded               atomic.Int64 // files that were uploaded and deleted
	throttled               atomic.Int64 // answers that the rate is exceeded
	changes, byAPI          atomic.Int64 // of groups and settings, and those that the gateway was asked for and made

	subjects map[string]chan subject // by device and by number, like rooms

	mu       sync.Mutex
	accepted map[string][]string // ids of accepted messages, by the URL of the process that answered
	wrote    map[string]subject  // what contacts wrote, by its text
	facts    map[string]chan struct{}
	seen     map[string]bool // actions that were accepted or arrived, such as "outbound vote"
}

// newDriver returns a driver that does nothing yet.
func newDriver(w *world, client *http.Client) *driver {
	return &driver{
		w: w, rooms: map[string]room{}, groups: map[string]string{}, over: make(chan struct{}), moved: make(chan struct{}, 1), http: client,
		accepted: map[string][]string{}, subjects: map[string]chan subject{}, wrote: map[string]subject{},
		facts: map[string]chan struct{}{}, seen: map[string]bool{},
	}
}

// done counts the messages that have come to their end.
func (d *driver) done() int64 { return d.sent.Load() + d.received.Load() }

// reached waits until n messages have come to their end.
func (d *driver) reached(ctx context.Context, n int64) bool {
	for d.done() < n {
		select {
		case <-d.moved:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (d *driver) accept(base, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.accepted[base] = append(d.accepted[base], id)
}

// acceptedBy lists the messages that the process with a URL has accepted; with "", those
// of all processes.
func (d *driver) acceptedBy(base string) (ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for by, list := range d.accepted {
		if base == "" || base == by {
			ids = append(ids, list...)
		}
	}
	return ids
}

// room limits how many messages are under way for one device, with a token for each.
type room chan struct{}

func (r room) enter(ctx context.Context) bool {
	select {
	case r <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r room) leave() {
	select {
	case <-r:
	default: // an echo, which has no token
	}
}

func (d *driver) underWay() (n int) {
	for _, r := range d.rooms {
		n += len(r)
	}
	return n
}

// start begins the load: callers and a writer for each device, and the troublemaker.
func (d *driver) start() {
	ctx, cancel := context.WithCancel(context.Background())
	d.stop = cancel
	for i, dev := range d.w.devices {
		for c := range d.w.opts.Callers {
			d.load.Go(func() { d.send(ctx, dev, d.rand(1, i, c)) })
		}
		d.load.Go(func() { d.write(ctx, dev, d.rand(2, i, 0)) })
		for a := range actors {
			d.load.Go(func() { d.act(ctx, d.subjects[dev.id], d.rand(5, i, a)) })
			d.load.Go(func() { d.act(ctx, d.subjects[dev.number], d.rand(6, i, a)) })
		}
	}
	d.load.Go(func() { d.trouble(ctx, d.rand(3, 0, 0)) })
	if d.w.opts.Changes {
		d.startChanges(ctx)
	}
	d.w.t.Cleanup(d.end)
}

// end stops everything before the world around it is removed.
func (d *driver) end() {
	close(d.over)
	d.finish()
	if err := d.notes.Close(); err != nil {
		d.w.t.Error(err)
	}
}

func (d *driver) rand(kind, a, b int) *rand.Rand {
	return rand.New(rand.NewPCG(d.w.opts.Seed, uint64(kind*1_000_000+a*1_000+b)))
}

// finish ends the load and waits until all requests are answered.
func (d *driver) finish() {
	d.stop()
	d.load.Wait()
}

// send requests messages until ctx is done.
func (d *driver) send(ctx context.Context, dev device, r *rand.Rand) {
	caller := r.Uint32()
	for n := 0; d.rooms[dev.id].enter(ctx); n++ {
		to := fmt.Sprintf("+1555777%04d", r.IntN(4)) // few, so that most find a session
		switch p := r.IntN(100); {
		case p < 3:
			to = nobody
		case p < 8:
			to = silent
		case p < 20:
			to = reader
		case p < 24:
			to = echo
		case p < 36 && d.groups[dev.id] != "":
			to = d.groups[dev.id]
		}
		a := chaos.Ask{Device: dev.id, To: to, Body: fmt.Sprintf("out-%08x-%d-%s", caller, n, filler(r))}
		a.Key = a.Body[:len(a.Body)-fillerSize]
		switch p := r.IntN(10); { // what echoes does not echo files and polls
		case to == echo:
		case p == 0 && !d.w.opts.Texts:
			a.File = chaos.Sum(fileWith(a.Body))
		case p == 1:
			a.Poll = true
		}
		if r.IntN(d.oneIn()) == 0 {
			a.SendAt = time.Now().Add(time.Duration(r.IntN(3000)) * time.Millisecond).UTC().Format(chaosTime)
			a.Cancel = r.IntN(2) == 0
		}
		d.insist(a, r)
		if r.IntN(20) == 0 && !d.w.opts.Texts {
			d.discard(fmt.Sprintf("file %08x-%d", caller, n))
		}
	}
}

// createGroup creates a group of a device. An earlier release cannot.
func (d *driver) createGroup(dev device) {
	base, _ := d.w.where()
	status, answer := d.ask(base, http.MethodPost, "/v1/devices/"+dev.id+"/groups", map[string]any{
		"subject": "chaos", "participants": membersOf(dev),
	}, "")
	var group struct{ ChatID string }
	if status == http.StatusCreated && json.Unmarshal(answer, &group) == nil {
		d.groups[dev.id] = group.ChatID
	}
}

// oneIn says which part of the messages is scheduled.
func (d *driver) oneIn() int {
	switch d.w.opts.Mistake {
	case failpoint.CancelNever, failpoint.SendEarly:
		return 2
	default:
		return 10
	}
}

const chaosTime = "2006-01-02T15:04:05.000Z07:00"

const fillerSize = 24

func filler(r *rand.Rand) string { return fmt.Sprintf("%0*x", fillerSize, r.Uint64()) }

// insist makes a request until there is an answer, and sometimes once or twice more.
func (d *driver) insist(a chaos.Ask, r *rand.Rand) {
	if err := d.notes.Write(chaos.Call{Ask: &a}); err != nil {
		d.w.t.Error(err)
		return
	}
	twice := !d.w.opts.Once && r.IntN(20) == 0
	var both sync.WaitGroup
	if twice {
		both.Go(func() { d.untilTold(a) })
	}
	id := d.untilTold(a)
	if a.Cancel && id != "" {
		d.cancel(id)
	}
	both.Wait()
	if twice || !d.w.opts.Once && r.IntN(20) == 0 {
		d.repeats.Add(1)
		d.untilTold(a)
	}
}

// cancel asks for the end of a message.
func (d *driver) cancel(id string) {
	d.untilAnswered(func(base string) int {
		status, _ := d.ask(base, http.MethodPost, "/v1/messages/"+id+"/cancel", map[string]any{}, "")
		if status == http.StatusOK { // otherwise it was sent already, or an earlier request has canceled it
			if err := d.notes.Write(chaos.Call{Canceled: id}); err != nil {
				d.w.t.Error(err)
			}
		}
		return status
	})
}

// discard uploads a file and deletes it.
func (d *driver) discard(text string) {
	var file struct{ ID string }
	d.untilAnswered(func(base string) int {
		status, answer := d.ask(base, http.MethodPost, "/v1/media", map[string]any{"text": text}, "")
		if json.Unmarshal(answer, &file) != nil {
			return 0
		}
		return status
	})
	d.untilAnswered(func(base string) int {
		status, _ := d.ask(base, http.MethodDelete, "/v1/media/"+file.ID, nil, "")
		if status == http.StatusNoContent {
			d.discarded.Add(1)
		}
		return status
	})
}

// untilAnswered makes a request until the gateway gives a final answer, whose status ask returns.
func (d *driver) untilAnswered(ask func(base string) int) {
	for {
		base, changed := d.w.where()
		status := 0
		if base != "" {
			status = ask(base)
		}
		switch status {
		case 0, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		default:
			return
		}
		select {
		case <-d.over:
			return
		default:
			pause(changed)
		}
	}
}

// untilTold repeats a request with its key until the gateway gives a final answer. It returns
// the id of a message that was accepted.
func (d *driver) untilTold(a chaos.Ask) (id string) {
	limit := patience(d.w.t)
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		base, changed := d.w.where()
		if base == "" {
			select {
			case <-changed:
			case <-time.After(time.Until(deadline)):
			case <-d.over:
				return ""
			}
			continue
		}
		told := d.post(base, a)
		if err := d.notes.Write(chaos.Call{Told: &told}); err != nil {
			d.w.t.Error(err)
			return ""
		}
		switch told.Status {
		case 0:
			d.broken.Add(1)
		case http.StatusTooManyRequests:
			d.throttled.Add(1)
		case http.StatusConflict, http.StatusServiceUnavailable:
		case http.StatusAccepted:
			d.accept(base, told.MessageID)
			return told.MessageID
		default:
			return ""
		}
		select {
		case <-d.over:
			return ""
		default:
			pause(changed)
		}
	}
	d.w.t.Errorf("no answer under the key %s within %s", a.Key, limit)
	return ""
}

// pause waits a moment, or until the gateway has changed.
func pause(changed <-chan struct{}) {
	select {
	case <-changed:
	case <-time.After(10 * time.Millisecond):
	}
}

func (d *driver) post(base string, a chaos.Ask) chaos.Told {
	told := chaos.Told{Key: a.Key}
	ask := map[string]any{"deviceId": a.Device, "to": a.To, "body": a.Body, "whenDisconnected": "queue"}
	if a.SendAt != "" {
		ask["sendAt"] = a.SendAt
	}
	if a.Poll {
		delete(ask, "body")
		ask["type"], ask["poll"] = "poll", map[string]any{"question": a.Body, "options": choices, "maxSelections": 1}
	}
	if a.File != "" {
		ask["type"] = "document"
		ask["media"] = map[string]any{"data": fileWith(a.Body), "mimeType": "text/plain", "filename": "a.txt"}
	}
	status, body := d.ask(base, http.MethodPost, "/v1/messages", ask, a.Key)
	var m struct{ ID string }
	if status == http.StatusAccepted && json.Unmarshal(body, &m) != nil {
		return told // the answer was cut off and says nothing
	}
	told.Status, told.MessageID = status, m.ID
	return told
}

// fileWith is the file of a message with a text.
func fileWith(body string) []byte { return []byte(strings.Repeat(body, 100)) }

// ask makes a request, and returns the status and the body of the answer; the status is 0 if the
// connection broke.
func (d *driver) ask(base, method, path string, body map[string]any, key string) (status int, answer []byte) {
	text, err := json.Marshal(body)
	if err != nil {
		d.w.t.Error(err)
		return 0, nil
	}
	if body == nil {
		text = nil
	}
	req, err := http.NewRequest(method, base+path, bytes.NewReader(text))
	if err != nil {
		d.w.t.Error(err)
		return 0, nil
	}
	req.Header = d.w.header.Clone()
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := d.http.Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(res.Body); err != nil {
		return 0, nil
	}
	return res.StatusCode, answer
}

// write lets contacts write to a device until ctx is done.
func (d *driver) write(ctx context.Context, dev device, r *rand.Rand) {
	caller := r.Uint32()
	for n := 0; d.rooms[dev.number].enter(ctx); n++ {
		in := map[string]any{
			"to": dev.number, "from": contactOf(dev, r), "type": "text",
			"body": fmt.Sprintf("in-%08x-%d-%s", caller, n, filler(r)),
		}
		text, _ := in["body"].(string)
		switch p := r.IntN(10); p {
		case 0:
			if err := d.attach(dev, in); err != nil {
				d.w.t.Error(err)
				return
			}
		case 1:
			delete(in, "body")
			in["type"], in["poll"] = "poll", map[string]any{"question": text, "options": choices, "maxSelections": 1}
		case 2:
			if d.groups[dev.id] != "" {
				list := membersOf(dev)
				d.writeInGroup(dev, list[r.IntN(len(list))], in)
				continue
			}
		}
		if err := d.letWrite(in, text); err != nil {
			d.w.t.Error(err)
			return
		}
	}
}

// contactOf is one of a device's own contacts: a phone shows only its newest messages, and has to show
// those that are acted on.
func contactOf(dev device, r *rand.Rand) string {
	return fmt.Sprintf("+1555888%s%d", dev.number[len(dev.number)-3:], r.IntN(3))
}

// letWrite lets a contact write, and remembers what.
func (d *driver) letWrite(in map[string]any, text string) error {
	d.mu.Lock() // until its id is known, even if the receiver is told of it before
	defer d.mu.Unlock()
	var made struct{ NetworkID string }
	err := d.w.vendor.ask("POST", "/inbound", in, &made)
	from, _ := in["from"].(string)
	d.wrote[text] = subject{networkID: made.NetworkID, peer: from}
	return err
}

// attach gives a contact's message a file.
func (d *driver) attach(dev device, in map[string]any) error {
	body, _ := in["body"].(string)
	query := url.Values{"account": {dev.number}, "type": {"document"}}
	to := d.w.vendor.control + "/media?" + query.Encode()
	req, err := http.NewRequest(http.MethodPost, to, bytes.NewReader(fileWith(body)))
	if err != nil {
		return err
	}
	res, err := control.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var made struct{ Media map[string]any }
	if err := json.NewDecoder(res.Body).Decode(&made); err != nil {
		return err
	}
	in["type"], in["media"] = "document", made.Media
	return nil
}

// happened frees the room of a message that has reached the receiver.
func (d *driver) happened(e told) {
	d.arrived(e)
	kind, device, body := e.Type, e.DeviceID, e.text()
	switch kind {
	case "message.sent", "message.failed", "message.expired", "message.canceled":
		if kind == "message.failed" {
			d.failed.Add(1)
		}
		d.sent.Add(1)
		d.rooms[device].leave()
	case "message.received":
		d.received.Add(1)
		if len(body) > 3 && body[:3] == "in-" {
			d.rooms[d.w.numbers[device]].leave()
		}
	default:
		return
	}
	select {
	case d.moved <- struct{}{}:
	default:
	}
}

// trouble makes the vendor and the receiver misbehave until ctx is done: once for each
// few messages that come to their end, so that a slow machine has no more trouble per
// message than a fast one.
func (d *driver) trouble(ctx context.Context, r *rand.Rand) {
	faults := d.w.opts.Faults
	if len(faults) == 0 && !d.w.opts.Stumble {
		return
	}
	for next := 10 + r.Int64N(40); d.reached(ctx, next); next += 10 + r.Int64N(40) {
		if d.w.opts.Stumble && r.IntN(20) == 0 {
			d.w.receiver.stumble(10 + r.Int64N(60))
		}
		if len(faults) > 0 {
			d.w.fault(d.w.devices[r.IntN(len(d.w.devices))].number, faults[r.IntN(len(faults))])
			d.faults.Add(1)
		}
	}
}
