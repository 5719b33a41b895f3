package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/db/dbtest"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/migrated"
)

func (t *tenant) usage() string {
	t.t.Helper()
	a := t.do("GET", "/v1/usage", "")
	a.want(http.StatusOK, "")
	return a.Body.String()
}

func TestUsage(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("growth")
	now := time.Now().UTC()
	const storage = `,"storage":{"used":0,"limit":53687091200}`
	limited, ofB := (*tenant)(nil), (*tenant)(nil)
	want := func(who *tenant, messages, limit, devices, slots int) {
		t.Helper()
		files := storage
		if who == limited || who == ofB {
			files = ""
		}
		month := now.Format("2006-01")
		end := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC).Format("2006-01-02T15:04:05.000Z")
		text := fmt.Sprintf(`{"month":%q,"resetsAt":%q,"messages":{"used":%d,"limit":%d},"devices":{"used":%d,"limit":%d}%s}`, month, end, messages, limit, devices, slots, files)
		if got := who.usage(); got != text {
			t.Errorf("usage is %s\nwant     %s", got, text)
		}
	}
	want(mine, 0, 30_000, 0, 5)
	a, b := mine.device("a", postern.Connected), mine.device("b", postern.Connected)
	mine.device("c", postern.Unlinked) // holds no slot
	limited = mine.with(mine.newKey(gateway.NewKey{Devices: []postern.DeviceID{a}}))
	var last string
	for _, d := range []postern.DeviceID{a, b, b} {
		s := mine.do("POST", "/v1/messages", `{"deviceId":"`+string(d)+`","to":"+15551234567","body":"x"}`)
		s.want(http.StatusAccepted, "")
		last = s.member("id")
	}
	want(mine, 3, 30_000, 2, 5)
	want(limited, 1, 30_000, 1, 5)
	mine.do("POST", "/v1/messages", `{"deviceId":"`+string(b)+`","to":"x","body":"x"}`).want(http.StatusUnprocessableEntity, postern.ValidationFailed)
	for range 3 { // given back once
		o := store.FinishOutbound{
			MessageID: postern.MessageID(last), Status: postern.Failed, Refund: true,
			At: postern.TimeOf(now),
		}
		if err := mine.db.Outbox.Finish(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	want(mine, 2, 30_000, 2, 5)
	ofB = mine.with(mine.newKey(gateway.NewKey{Devices: []postern.DeviceID{b}}))
	want(ofB, 1, 30_000, 1, 5)
	n := func(i int) *int { return &i }
	if _, err := mine.g.Workspaces.ChangeLimits(t.Context(), access.Operator(), mine.ws,
		postern.Limits{Messages: n(2), Devices: n(2)}); err != nil {
		t.Fatal(err)
	}
	want(mine, 2, 2, 2, 2)
	mine.do("POST", "/v1/messages", `{"deviceId":"`+string(a)+`","to":"+15551234567","body":"x"}`).want(http.StatusForbidden, postern.QuotaExhausted)
	third := mine.device("third", postern.Unlinked)
	mine.do("POST", "/v1/devices/"+string(third)+"/link", "").want(http.StatusForbidden, postern.DeviceLimit)
	if _, err := mine.g.Workspaces.ChangeLimits(t.Context(), access.Operator(), mine.ws,
		postern.Limits{Messages: n(3), Devices: n(3)}); err != nil {
		t.Fatal(err)
	}
	mine.do("POST", "/v1/messages", `{"deviceId":"`+string(a)+`","to":"+15551234567","body":"x"}`).want(http.StatusAccepted, "")
	mine.do("POST", "/v1/devices/"+string(third)+"/link", "").want(http.StatusCreated, "")
	want(mine, 3, 3, 3, 3)
}

// TestManyLinksTakeTheLastSlotOnce opens attempts for many devices at once.
func TestManyLinksTakeTheLastSlotOnce(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	devices := make([]postern.DeviceID, 5) // as many as the plan allows, linked or not
	for i := range devices {
		devices[i] = mine.device("d", postern.Unlinked)
	}
	for round := range 10 {
		var opened, refused []postern.DeviceID
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, d := range devices {
			wg.Go(func() {
				a := mine.do("POST", "/v1/devices/"+string(d)+"/link", "")
				mu.Lock()
				defer mu.Unlock()
				if a.Code == http.StatusCreated {
					opened = append(opened, d)
					return
				}
				a.want(http.StatusForbidden, postern.DeviceLimit)
				refused = append(refused, d)
			})
		}
		wg.Wait()
		if len(opened) != 1 || len(refused) != len(devices)-1 {
			t.Fatalf("round %d: one slot was taken %d times", round, len(opened))
		}
		// An attempt that ends without a link gives the slot back.
		mine.do("DELETE", "/v1/devices/"+string(opened[0])+"/link", "").want(http.StatusNoContent, "")
	}
}

// TestMonthsAreUTC looks at both sides of a month's edge.
func TestMonthsAreUTC(t *testing.T) {
	t.Parallel()
	edge := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, zone := range []string{"Pacific/Kiritimati", "Pacific/Pago_Pago", "UTC"} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		before, after := postern.TimeOf(edge.Add(-time.Millisecond).In(loc)), postern.TimeOf(edge.In(loc))
		if store.MonthOf(before) != "2026-11" || store.MonthOf(after) != "2026-12" ||
			store.MonthEnd("2026-11") != after ||
			store.MonthEnd("2026-12").String() != "2027-01-01T00:00:00.000Z" {
			t.Errorf("%s: %s, %s, %s", zone, store.MonthOf(before), store.MonthOf(after), store.MonthEnd("2026-11"))
		}
	}
}

// A server whose machine has another date counts by that of the database.
func TestMonthIsTheDatabases(t *testing.T) {
	t.Parallel()
	url := migrated.URL(t)
	dbtest.SetClockAhead(t, url, "40 days")
	mine := newServerOn(t, url, fakeSandbox{}).tenant("growth")
	d := mine.device("d", postern.Connected)
	sent := mine.do("POST", "/v1/messages", `{"deviceId":"`+string(d)+`","to":"+15551234567","body":"x"}`)
	sent.want(http.StatusAccepted, "")
	want := fmt.Sprintf(`{"month":%q,`, time.Now().UTC().AddDate(0, 0, 40).Format("2006-01"))
	if got := mine.usage(); !strings.HasPrefix(got, want) || !strings.Contains(got, `"messages":{"used":1,`) {
		t.Errorf("usage is %s, want %s with one message", got, want)
	}
	err := mine.db.Outbox.Finish(t.Context(), store.FinishOutbound{
		MessageID: postern.MessageID(sent.member("id")),
		Status:    postern.Failed, Refund: true,
		At: mine.db.Now(),
	})
	if got := mine.usage(); err != nil || !strings.Contains(got, `"messages":{"used":0,`) {
		t.Errorf("usage is %s after the message was given back (%v)", got, err)
	}
}

// TestMeSaysWhoAsks with a key that is limited in every way, and after a change of the
// limits.
func TestMeSaysWhoAsks(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("growth")
	device := mine.device("d", postern.Connected)
	mine.do("GET", "/v1/me", "").want(http.StatusOK, "")
	mine = mine.with(mine.newKey(gateway.NewKey{
		Environment: "staging", Scopes: []postern.Scope{postern.MessagesWrite},
		Devices: []postern.DeviceID{device}, ExpiresAt: postern.TimeOf(time.Now().Add(time.Hour)),
	}))
	limit := 7
	change := postern.Limits{Messages: &limit}
	if _, err := s.g.Workspaces.ChangeLimits(t.Context(), access.Operator(), mine.ws, change); err != nil {
		t.Fatal(err)
	}
	a := mine.do("GET", "/v1/me", "")
	a.want(http.StatusOK, "")
	var me gateway.Me
	if err := json.Unmarshal(a.Body.Bytes(), &me); err != nil {
		t.Fatal(err)
	}
	if k := me.Key; k.Name != "test" || k.Environment != "staging" ||
		!slices.Equal(k.Scopes, []postern.Scope{postern.MessagesWrite}) ||
		!slices.Equal(k.Devices, []postern.DeviceID{device}) || k.ExpiresAt == 0 || k.LastFour != mine.key[len(mine.key)-4:] {
		t.Errorf("key = %+v", k)
	}
	if me.Workspace.ID != mine.ws || me.Workspace.Name == "" || me.Plan.Name != "growth" || me.Plan.Messages != 7 ||
		me.Plan.Devices != 5 || me.Plan.RequestsPerMinute != 1200 {
		t.Errorf("workspace = %+v, plan = %+v", me.Workspace, me.Plan)
	}
	if strings.Contains(a.Body.String(), mine.key) {
		t.Error("the response contains the key")
	}
}
