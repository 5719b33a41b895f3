package postern

import (
	"strconv"
	"strings"
)

// Plan is what a workspace is entitled to.
type Plan struct {
	Name              string
	Devices           int  // linked devices at a time
	Messages          int  // outbound messages per UTC calendar month
	API               bool // REST API and webhooks
	RequestsPerMinute int  // API requests per minute, for each key and for the workspace
	Endpoints         int  // webhook endpoints
	FirstAttempts     int  // first attempts of deliveries per minute; the rest wait
	Caps              Caps
}

// Caps limit what a workspace may hold of the things that cost no quota. Whatever can be
// created has a limit: here, in Plan.Endpoints, or below for all plans.
type Caps struct {
	Devices     int // linked or not
	Keys        int // that work; rotation may double them, and a day may create four times as many
	Members     int
	Invitations int // open ones

	Bytes int64 // of stored files; the same content counts once
}

const gib = 1 << 30 // bytes

// The limits of all plans. One link attempt with one link page is open for a device.
const (
	// MaxReplays is how many replays run for one endpoint at the same time.
	MaxReplays = 10
	// MaxMemberships is how many workspaces one person may belong to.
	MaxMemberships = 200
	// MaxSignIns is how many login sessions a person may have. A new one ends the oldest.
	MaxSignIns = 100
	// MaxPasskeys is how many passkeys a person may have.
	MaxPasskeys = 20
	// MaxIdentities is how many accounts at providers a person may connect.
	MaxIdentities = 10
)

// pagesPerMinute is the dashboard's allowance on plans without the API.
const pagesPerMinute = 300

// PagesPerMinute is how many requests the dashboard answers in a minute, for each person and
// for the workspace. They do not count as API requests.
func (p Plan) PagesPerMinute() int { return max(p.RequestsPerMinute, pagesPerMinute) }

// PlanNames lists the plans from small to large.
func PlanNames() []string { return []string{"free", "starter", "growth", "pro", "enterprise"} }

// PlanByName finds a plan; ok is false if there is none with that name.
func PlanByName(name string) (p Plan, ok bool) {
	switch name {
	case "free":
		return Plan{Name: name, Devices: 1, Messages: 500, Caps: Caps{5, 5, 5, 5, 1 * gib}}, true
	case "starter":
		return Plan{name, 1, 3_000, true, 300, 5, 600, Caps{5, 20, 10, 10, 10 * gib}}, true
	case "growth":
		return Plan{name, 5, 30_000, true, 1_200, 20, 6_000, Caps{25, 50, 50, 25, 50 * gib}}, true
	case "pro":
		return Plan{name, 15, 300_000, true, 6_000, 50, 30_000, Caps{75, 100, 200, 50, 200 * gib}}, true
	case "enterprise":
		return Plan{name, 50, 1_000_000, true, 30_000, 200, 150_000, Caps{250, 500, 1_000, 100, 1_024 * gib}}, true
	}
	return Plan{}, false
}

// Workspace is a tenant: everything else belongs to exactly one workspace.
type Workspace struct {
	ID        WorkspaceID `json:"id"`
	Name      string      `json:"name"`
	Plan      string      `json:"plan"`
	CreatedAt Time        `json:"createdAt"`
	Limits    Limits      `json:"limits"`
}

// Limits override the limits of the plan and the server for one workspace; nil keeps
// theirs.
type Limits struct {
	Messages    *int `json:"messages"`    // per UTC calendar month
	Devices     *int `json:"devices"`     // linked at a time
	EventDays   *int `json:"eventDays"`   // how long to keep events, at most the server's retention
	MessageDays *int `json:"messageDays"` // the same for messages
	StorageMiB  *int `json:"storageMiB"`  // MiB of stored files
}

// With returns the limits with a change applied: nil keeps a limit, and a negative value
// removes it.
func (l Limits) With(change Limits) Limits {
	changed := func(have, to *int) *int {
		switch {
		case to == nil:
			return have
		case *to < 0:
			return nil
		}
		return to
	}
	return Limits{
		Messages: changed(l.Messages, change.Messages), Devices: changed(l.Devices, change.Devices),
		EventDays: changed(l.EventDays, change.EventDays), MessageDays: changed(l.MessageDays, change.MessageDays),
		StorageMiB: changed(l.StorageMiB, change.StorageMiB),
	}
}

// devicesForEach is how many devices, linked or not, there may be for each that may be linked.
const devicesForEach = 5

// Entitlement is the workspace's plan with the operator's limits; ok is false if its plan
// does not exist.
func (w Workspace) Entitlement() (p Plan, ok bool) {
	p, ok = PlanByName(w.Plan)
	if w.Limits.Messages != nil {
		p.Messages = *w.Limits.Messages
	}
	if w.Limits.Devices != nil {
		p.Devices = *w.Limits.Devices
		p.Caps.Devices = max(p.Caps.Devices, devicesForEach*p.Devices)
	}
	if w.Limits.StorageMiB != nil {
		p.Caps.Bytes = int64(*w.Limits.StorageMiB) << 20
	}
	return p, ok
}

// Storage is what a workspace stores of files, and what it may store, in bytes. The same content
// counts once. Used may be above Limit, after a change to a smaller plan.
type Storage struct{ Used, Limit int64 }

// Room returns how many more bytes may be stored.
func (s Storage) Room() int64 { return max(s.Limit-s.Used, 0) }

// Check returns a ResourceLimit error if there is no room for that many bytes.
func (s Storage) Check(size int64) error {
	if size <= s.Room() {
		return nil
	}
	return s.Full()
}

// Full returns the ResourceLimit error for a file for which there is no room.
func (s Storage) Full() *Error {
	return Errorf(ResourceLimit, "the plan allows %s of stored files, and %s are used; "+
		"delete files that are not needed, or change the plan", BytesWords(s.Limit), BytesWords(s.Used))
}

// BytesWords formats a number of bytes with the unit in which it is short: 1.5 GiB.
func BytesWords(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	size, units := float64(n), []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	for size >= 1024 && len(units) > 1 {
		size, units = size/1024, units[1:]
	}
	return strings.TrimSuffix(strconv.FormatFloat(size, 'f', 1, 64), ".0") + " " + units[0]
}
