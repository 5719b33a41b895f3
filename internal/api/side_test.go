package api_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store"
)

// side is one of two workspaces. Everything that it has bears its mark.
type side struct {
	*tenant

	n      *neighbours
	who    access.Caller
	mark   string
	number string   // with which the numbers of its phones begin
	keys   []string // the one that may do everything first

	phones atomic.Int32 // numbers given out

	furnishing sync.Mutex // guards best, which furnish alone changes
	best       best

	mu    sync.Mutex          // guards what follows
	good  best                // what furnish has made last
	fixed map[string][]string // what is never removed
	found map[string][]string // what answers have shown lately
	made  map[string][]string // what requests have made, the oldest first
}

// best are things in the state that most operations want.
type best struct {
	device   string // connected
	linking  string // shows a code
	endpoint string // active
	delivery string // failed once
	replay   string // running
}

func (n *neighbours) newSide(mark, number string) *side {
	n.t.Helper()
	ws, err := n.g.Workspaces.Create(n.t.Context(), access.Operator(), gateway.NewWorkspace{
		Name: mark,
		Plan: "enterprise",
	})
	if err != nil {
		n.t.Fatal(err)
	}
	s := &side{
		tenant: &tenant{server: n.server, ws: ws.ID}, n: n, mark: mark, number: number,
		fixed: map[string][]string{}, found: map[string][]string{}, made: map[string][]string{},
	}
	s.key = s.markedKey(gateway.NewKey{})
	s.who = s.caller()
	return s
}

func (s *side) other() *side {
	if s.n.sides[0] == s {
		return s.n.sides[1]
	}
	return s.n.sides[0]
}

func (s *side) markedKey(k gateway.NewKey) string {
	s.t.Helper()
	k.Name = s.mark
	_, secret, err := s.g.Keys.Create(s.t.Context(), access.Operator(), s.ws, k)
	if err != nil {
		s.t.Fatal(err)
	}
	return secret
}

func (s *side) deviceID() postern.DeviceID { return postern.DeviceID(s.best.device) }

// Enough that a page of messages or events is cut at its bound.
const (
	smallOnes = 60
	largeOnes = 20
)

// fill gives the workspace things of every kind, among them more text than a page holds.
func (s *side) fill() {
	s.t.Helper()
	for range smallOnes {
		s.receive(s.deviceID(), s.mark)
	}
	event := s.newestEvent()
	for range largeOnes {
		s.receive(s.deviceID(), s.mark+strings.Repeat("x", postern.MaxText-len(s.mark)))
	}
	s.receive(s.deviceID(), s.mark)
	s.fixed["evt_"] = []string{event}
	for _, list := range []string{"messages", "devices", "events", "webhooks"} {
		s.newDevice()
		s.newEndpoint(s.best.device)
		s.fixed["cursor"] = append(s.fixed["cursor"], s.do("GET", "/v1/"+list+"?limit=1", "").member("nextCursor"))
	}
	s.furnish()
	s.keys = []string{
		s.key, s.markedKey(gateway.NewKey{Devices: []postern.DeviceID{s.deviceID()}}),
		s.markedKey(gateway.NewKey{Scopes: []postern.Scope{postern.UsageRead}}), "pst_x", postern.NewKeySecret(),
	}
}

// newestEvent is the id of the newest event.
func (s *side) newestEvent() string {
	s.t.Helper()
	all := s.do("GET", "/v1/events?limit=200", "").list().Data
	return all[len(all)-1].ID
}

// furnish makes sure that each kind of thing is there and in the state that most
// operations want, as its engine would.
func (s *side) furnish() {
	if !s.furnishing.TryLock() {
		return // another request does
	}
	defer s.furnishing.Unlock()
	b := &s.best
	if s.connect(s.t.Context(), b.device) != nil {
		b.device = s.instead("createDevice", b.device, s.newDevice())
		s.note(s.connect(s.t.Context(), b.device))
	}
	if s.offer(b.linking) != nil {
		b.linking = s.instead("createDevice", b.linking, s.newDevice())
		s.note(s.offer(b.linking))
	}
	if s.activate(b.endpoint) != nil {
		b.endpoint = s.instead("createWebhook", b.endpoint, s.newEndpoint(b.device))
		s.note(s.activate(b.endpoint))
		s.receive(postern.DeviceID(b.device), s.mark)
		s.hear(postern.DeviceID(b.device))
		s.note(s.attempt())
	}
	if a := s.do("GET", "/v1/replays/"+b.replay, ""); a.Code != http.StatusOK || a.member("status") != "running" {
		b.replay = s.do("POST", "/v1/webhooks/"+b.endpoint+"/replay", "").member("id")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.good = *b
}

// instead remembers a thing that has had its day, to be deleted, and returns its successor.
func (s *side) instead(operation, old, successor string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old != "" {
		s.made[operation] = append(s.made[operation], old)
	}
	return successor
}

// note reports what must not fail, except when another request has come between.
func (s *side) note(err error) {
	if err != nil && postern.ReasonOf(err) == postern.Internal {
		s.t.Error(err)
	}
}

func (s *side) newDevice() string {
	return s.do("POST", "/v1/devices", fmt.Sprintf(`{"name":%q,"metadata":{"a":%q}}`, s.mark, s.mark)).member("id")
}

func (s *side) newEndpoint(device string) string {
	body := fmt.Sprintf(`{"url":"https://hooks.test/%s","description":%q,"deviceIds":[%q],"headers":{"X-A":%q}}`,
		s.mark, s.mark, device, s.mark)
	return s.do("POST", "/v1/webhooks", body).member("id")
}

// connect lets a device be connected.
func (s *side) connect(ctx context.Context, id string) error {
	d, err := s.g.Devices.Get(ctx, s.who, postern.DeviceID(id))
	if err != nil || d.Status == postern.Connected {
		return err
	}
	if d.PhoneNumber == "" || !slices.Contains(linked(), d.Status) {
		if err := s.scan(ctx, d, ""); err != nil {
			return err
		}
	}
	return s.db.Devices.SetState(ctx, store.SetDeviceState{
		WorkspaceID: s.ws, DeviceID: d.ID, From: linked(),
		Status: postern.Connected, Desired: postern.WantConnect, At: postern.TimeOf(time.Now()),
	})
}

// linked are the states from which a device connects. Another request may have opened a link attempt
// meanwhile.
func linked() []postern.Status {
	return []postern.Status{
		postern.Connecting, postern.Disconnected, postern.Restricted, postern.Conflict, postern.Banned, postern.Paused,
	}
}

// scan links a device to a phone of the workspace.
func (s *side) scan(ctx context.Context, d postern.Device, number string) error {
	row, open, err := s.g.Sessions.OpenLink(ctx, d)
	if err == nil && !open {
		_, err = s.g.Links.Open(ctx, s.who, d.ID, gateway.NewLink{AllowNewNumber: true}, nil)
		if err == nil {
			row, open, err = s.g.Sessions.OpenLink(ctx, d)
		}
	}
	if err != nil || !open {
		return errors.Join(err, postern.Errorf(postern.NoOpenLink, "another request has ended the attempt"))
	}
	if number == "" {
		number = fmt.Sprintf("%s%05d", s.number, s.phones.Add(1))
	}
	return s.g.Sessions.Linked(ctx, d, row, number[1:]+":1@s.whatsapp.net", number, s.mark)
}

// offer lets a device show a code, as the engine does all the time.
func (s *side) offer(id string) error {
	ctx := s.t.Context()
	d, err := s.g.Devices.Get(ctx, s.who, postern.DeviceID(id))
	if err != nil {
		return err
	}
	row, open, err := s.g.Sessions.OpenLink(ctx, d)
	if err == nil && open && row.ExpiresAt < postern.TimeOf(time.Now()) {
		open, err = false, s.g.Sessions.EndLink(ctx, row, postern.LinkExpired, "expired")
	}
	if err == nil && !open {
		if _, err = s.g.Links.Open(ctx, s.who, d.ID, gateway.NewLink{}, nil); err == nil {
			row, _, err = s.g.Sessions.OpenLink(ctx, d)
		}
	}
	if err != nil {
		return err
	}
	return s.showCode(d, row)
}

// showCode shows the device's id as its code, and waits until the code is stored or the
// attempt has ended.
func (s *side) showCode(d postern.Device, row store.LinkRow) error {
	changes := s.g.Sessions.WatchLink(d.ID)
	defer changes.Close()
	until := postern.TimeOf(time.Now().Add(time.Minute))
	s.g.Sessions.ShowCode(row, string(d.ID), until)
	for {
		now, open, err := s.g.Sessions.OpenLink(s.t.Context(), d)
		if err != nil || !open || now.ID != row.ID || now.QRExpiresAt >= until {
			return err
		}
		select {
		case <-changes.C():
			changes.Take()
		case <-s.t.Context().Done():
			return s.t.Context().Err()
		}
	}
}

// activate lets an endpoint be active.
func (s *side) activate(endpoint string) error {
	ctx := s.t.Context()
	e, err := s.g.Webhooks.Get(ctx, s.who, postern.EndpointID(endpoint))
	if err != nil || e.Status == postern.EndpointActive {
		return err
	}
	if e.Status == postern.EndpointPaused {
		_, err = s.g.Webhooks.Resume(ctx, s.who, e.ID)
	}
	return errors.Join(err, s.db.Endpoints.Activate(ctx, e.ID, postern.TimeOf(time.Now())))
}

// attempt fails the newest delivery once, and the endpoint's answer bears the mark.
func (s *side) attempt() error {
	id, now := postern.EndpointID(s.best.endpoint), postern.TimeOf(time.Now())
	due, err := s.db.Deliveries.Due(s.t.Context(), id, now, true, 1)
	if err != nil || len(due) == 0 { // a request may have paused the endpoint
		return err
	}
	s.best.delivery = string(due[0].ID)
	return s.db.Deliveries.FinishAttempt(s.t.Context(), store.Attempt{
		DeliveryID: due[0].ID, Row: due[0].Row,
		EndpointID: id, Number: 1, At: now, Ended: now.Add(42 * time.Millisecond), HTTPStatus: 500, Answer: s.mark,
		Reason: "status", Status: postern.DeliveryPending, DueAt: now.Add(time.Hour),
	})
}

// How many things of a kind are remembered, and how many that requests have made are kept.
const (
	remembered = 6
	keptThings = 40
)

// find remembers what an answer has shown, and what it has made.
func (s *side) find(a *attempt, ids []string, cursor [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		s.remember(id[:4], id)
	}
	if cursor != nil {
		s.remember("cursor", string(cursor[1]))
	}
	if op := a.op.OperationID; a.method == "POST" && (op == "createDevice" || op == "createWebhook") {
		s.made[op] = append(s.made[op], ids[0])
	}
}

func (s *side) remember(kind, thing string) {
	if list := s.found[kind]; len(list) < remembered {
		s.found[kind] = append(list, thing)
		return
	}
	s.found[kind][rand.IntN(remembered)] = thing
}

// trim deletes the oldest of what requests have made, or the plan's limits would be
// reached.
func (s *side) trim() {
	for operation, path := range map[string]string{"createDevice": "/v1/devices/", "createWebhook": "/v1/webhooks/"} {
		if id := s.oldest(operation); id != "" {
			s.do("DELETE", path+id, "")
		}
	}
}

// oldest takes the oldest of what an operation has made, when it is too much.
func (s *side) oldest(operation string) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if list := s.made[operation]; len(list) > keptThings {
		id, s.made[operation] = list[0], list[1:]
	}
	return id
}

// things lists what is there of the workspace by kind, the ones in the best state first.
func (s *side) things() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := map[string][]string{
		"dev_": {s.good.device, s.good.device, s.good.linking}, "whk_": {s.good.endpoint, s.good.endpoint},
		"dlv_": {s.good.delivery, s.good.delivery}, "rpl_": {s.good.replay, s.good.replay},
	}
	for kind, things := range s.found {
		list[kind] = append(list[kind], things...)
	}
	for kind, things := range s.fixed {
		list[kind] = append(list[kind], things...)
	}
	return list
}

// known lists things of both workspaces, and one that is nowhere.
func (s *side) known() map[string][]string {
	list, others := s.things(), s.other().things()
	for kind, things := range others {
		list[kind] = append(list[kind], things...)
		if kind != "cursor" {
			list[kind] = append(list[kind], kind+"01JD8Z3NDEKTSV4RRFFQ69G5FA")
		}
	}
	return list
}

// changes are operations after which a thing may not be in its best state any more.
func changes() []string {
	return append(ends(), "pauseDevice", "pauseWebhook", "updateWebhook", "verifyWebhook", "stopReplay", "resumeDevice")
}

// try makes a request as the workspace.
func (s *side) try(p *prober, chance *rand.Rand) error {
	data := make([]byte, 96)
	for i := range data {
		data[i] = byte(chance.Uint32())
	}
	g := &generator{
		document: described(), dice: &dice{data, 48}, things: s.known(), n: chance.Int(), mark: s.mark,
		keys: 100,
	}
	a := g.request(p.ops)
	key := s.keys[0]
	if g.seldom() {
		a.plain = false
		key = of(g.dice, s.keys...)
	}
	a.header.Set("Authorization", "Bearer "+key)
	if a.op.OperationID == "scanInSandbox" {
		s.renewCode(a.target)
	}
	status, err := p.send(a)
	if status/100 == 2 {
		s.repair(a)
	}
	return err
}

// repair does what the engine would do after a request, and restores what it has spoiled.
func (s *side) repair(a *attempt) {
	if a.op.OperationID == "openLink" {
		s.renewCode(a.target)
	}
	if slices.Contains(changes(), a.op.OperationID) {
		s.furnish()
		s.trim()
	}
}

// renewCode lets the devices that a request names show a code, when they are linking.
func (s *side) renewCode(target string) {
	for _, id := range idsIn([]byte(target)) {
		d, err := s.g.Devices.Get(s.t.Context(), s.who, postern.DeviceID(id))
		if err != nil {
			continue
		}
		if _, open, err := s.g.Sessions.OpenLink(s.t.Context(), d); err == nil && open {
			s.note(s.offer(id))
		}
	}
}

// markedPhones is a sandbox with a number space for each workspace, as the real one has.
type markedPhones struct {
	fakeSandbox

	n *neighbours
}

// Of is the network of one workspace.
func (m *markedPhones) Of(ws postern.WorkspaceID) (gateway.SandboxNetwork, error) {
	for _, s := range m.n.sides {
		if s.ws == ws {
			return markedNetwork{side: s}, nil
		}
	}
	return fakeSandbox{}, nil
}

// markedNetwork is where the phones of a workspace are. The codes are the devices' ids.
type markedNetwork struct {
	fakeSandbox

	side *side
}

// Scan links the device that shows the code.
func (m markedNetwork) Scan(ctx context.Context, code, number string) error {
	d, err := m.side.g.Devices.Get(ctx, m.side.who, postern.DeviceID(code))
	if err != nil {
		return err
	}
	if err := m.side.scan(ctx, d, number); err != nil {
		return err
	}
	return m.side.connect(ctx, code)
}

// EnterCode does the same.
func (m markedNetwork) EnterCode(ctx context.Context, code, number string) error {
	return m.Scan(ctx, code, number)
}

// Phone shows what bears the mark of the workspace.
func (m markedNetwork) Phone(number string) []gateway.PhoneMessage {
	return []gateway.PhoneMessage{{
		ID: "x", From: "+15551234567", To: number, Type: postern.KindText,
		Body: m.side.mark, At: 1,
	}}
}
