package testkit_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// told is what an operator's address got.
type told struct {
	mu     sync.Mutex
	refuse bool
	hold   func()   // is called before a response, if it is set
	lines  []string // state, kind and subject of each alert
	texts  []string
}

func (o *told) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Text   string
		Alerts []struct{ State, Kind, SubjectID, Summary string }
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refuse || json.NewDecoder(r.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	o.texts = append(o.texts, body.Text)
	for _, a := range body.Alerts {
		o.lines = append(o.lines, a.State+" "+a.Kind+" "+a.SubjectID)
	}
	if o.hold != nil {
		o.hold()
	}
}

// change changes how the operator responds.
func (o *told) change(refuse bool, hold func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refuse, o.hold = refuse, hold
}

func (o *told) wait(t *testing.T, want ...string) {
	t.Helper()
	testkit.Eventually(t, "alerts "+strings.Join(want, ", "), func() (bool, any) {
		o.mu.Lock()
		defer o.mu.Unlock()
		got := slices.Clone(o.lines)
		slices.Sort(got)
		return slices.Equal(got, slices.Sorted(slices.Values(want))), got
	})
}

// awaitStop waits until one more stop of the gateway has come to the end of its requests.
func awaitStop(t *testing.T, k *testkit.Kit) {
	const line = "the requests in flight have ended"
	before := strings.Count(k.Log.String(), line)
	testkit.Eventually(t, "a stop", func() (bool, any) { return strings.Count(k.Log.String(), line) > before, nil })
}

// The operator is told once what is wrong, and once that it is over, across restarts of the server, one of which
// falls between a report and its record, and outages of the address.
func TestOperatorsAreTold(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		operator := &told{refuse: true}
		srv := httptest.NewServer(operator)
		t.Cleanup(srv.Close)
		k.Stop()
		k.Config.AlertURL, k.Config.AlertAfter = seal.Secret(srv.URL+"/secret-token"), time.Second
		k.Config.AlertMail = "night@example.com"
		mails := k.BootWithMail()
		c := k.Workspace("growth")
		hooks := c.Receive("device.*")
		d := c.Link(phone)
		fault := func(f vendorsim.Fault) {
			t.Helper()
			if err := k.Vendor.Fault(t.Context(), phone, f); err != nil {
				t.Fatal(err)
			}
		}
		fault("offline:3600")
		if m := mails.Next(t); !strings.Contains(m.Text, "is not connected") || m.To != "night@example.com" {
			t.Errorf("the mail is %+v", m)
		}
		k.Stop()
		arrived := make(chan struct{})
		operator.change(false, func() {
			close(arrived)
			awaitStop(t, k)
		})
		k.Boot()
		<-arrived
		k.Stop()
		operator.change(false, nil)
		down := "device-down " + string(d.ID)
		operator.wait(t, "began "+down)
		k.Boot()
		fault("offline:0")
		c.Await(d.ID, postern.Connected)
		operator.wait(t, "began "+down, "ended "+down)
		fault("limit:3600")
		hooks.Await(postern.DeviceLimited)
		operator.wait(t, "began "+down, "ended "+down, "began device-limited "+string(d.ID))
		for _, text := range operator.texts {
			if strings.Contains(text, phone) {
				t.Errorf("an alert names a number: %s", text)
			}
		}
	})
}

// goesDown links a device, which then loses its connection until the vendor's fault ends. The alert of a device that takes
// long to connect would be another one.
func goesDown(t *testing.T, k *testkit.Kit, c *testkit.Client, number string) postern.Device {
	t.Helper()
	d := c.Link(number)
	if err := k.VendorOf(c.Workspace).Fault(t.Context(), number, "offline:3600"); err != nil {
		t.Fatal(err)
	}
	return c.Await(d.ID, postern.Disconnected)
}

// The people of a workspace are told of their devices alone, at the address and by mail as they have chosen. An address
// that refuses alerts holds up nobody, and the dashboard learns why.
func TestWorkspacesAreTold(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		k.Stop()
		k.Config.AlertAfter = time.Second
		mails := k.BootWithMail()
		first, second := k.Workspace("growth"), k.Workspace("growth")
		d, e := goesDown(t, k, first, phone), goesDown(t, k, second, "+15550000002")
		refusing, other := &told{refuse: true}, &told{}
		members, by := k.People(), access.Operator()
		for c, to := range map[*testkit.Client]*told{first: refusing, second: other} {
			srv := httptest.NewServer(to)
			t.Cleanup(srv.Close)
			if err := members.Alerts.SetURL(t.Context(), by, c.Workspace, srv.URL+"/secret-token"); err != nil {
				t.Fatal(err)
			}
		}
		ada, _, err := members.Users.Create(t.Context(), by, first.Workspace, people.NewUser{
			Email: "ada@example.com", Role: postern.Viewer,
		})
		if err != nil {
			t.Fatal(err)
		}
		told := []postern.UserID{ada.ID, "usr_nobody"}
		if err := members.Alerts.SetMembers(t.Context(), by, first.Workspace, told); err != nil {
			t.Fatal(err)
		}
		reason := func(want string) {
			t.Helper()
			testkit.Eventually(t, "the reason "+want, func() (bool, any) {
				s, err := members.Alerts.Get(t.Context(), by, first.Workspace)
				return err == nil && s.Reason == want && (s.FailedAt > 0) == (want != ""), s
			})
		}
		if m := mails.Next(t); m.To != "ada@example.com" || !strings.Contains(m.Text, "is not connected") {
			t.Errorf("the mail is %+v", m)
		}
		reason("status")
		other.wait(t, "began device-down "+string(e.ID))
		refusing.change(false, nil)
		refusing.wait(t, "began device-down "+string(d.ID))
		reason("")
		if err := members.Alerts.SetURL(t.Context(), by, first.Workspace, ""); err != nil {
			t.Fatal(err)
		}
		if err := k.VendorOf(first.Workspace).Fault(t.Context(), phone, "offline:0"); err != nil {
			t.Fatal(err)
		}
		if m := mails.Next(t); m.To != "ada@example.com" || !strings.Contains(m.Text, "Over: ") {
			t.Errorf("the mail is %+v", m)
		}
		refusing.wait(t, "began device-down "+string(d.ID))
		other.wait(t, "began device-down "+string(e.ID))
	})
}
