package dash

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"postern/internal/dash/numbers"
	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/sse"
)

// health returns the line about the workspace's state that every page shows, and for home, the rest of what it shows.
func (d overview) health(w http.ResponseWriter, r *http.Request, v visit) error {
	a, err := d.attention(r, v)
	if err != nil {
		return err
	}
	if r.FormValue("home") == "" {
		return d.write(w, r, http.StatusOK, page.HealthBar(a))
	}
	b, err := d.boardOf(r, v)
	if err != nil {
		return err
	}
	return d.write(w, r, http.StatusOK, page.HomeParts(a, b))
}

// boardOf returns what the board shows; nothing to those who may not see messages.
func (d overview) boardOf(r *http.Request, v visit) (page.BoardView, error) {
	view := page.BoardView{Most: gateway.MostStates}
	if !v.may(postern.MessagesRead) {
		return view, nil
	}
	b, err := d.g.Statistics.Board(r.Context(), v.caller)
	for _, s := range b.Devices {
		view.Devices = append(view.Devices, deviceTile(s))
	}
	for _, s := range b.Endpoints {
		view.Webhooks = append(view.Webhooks, hookTile(s))
	}
	return view, err
}

func deviceTile(s gateway.DeviceState) page.DeviceTile {
	t := page.DeviceTile{
		ID: string(s.ID), Name: s.Name, Number: s.Number, Status: string(s.Status), Why: because(s.Reason),
		Since:        timeOf(s.Since),
		WaitingSince: timeOf(s.Queue.Since), In: timeOf(s.LastIn), Out: timeOf(s.LastOut),
	}
	if s.Waiting > 0 {
		t.Waiting = upTo(s.Waiting, gateway.MostWaiting, "message", "messages")
	}
	return t
}

func hookTile(s gateway.EndpointState) page.HookTile {
	t := page.HookTile{
		ID: string(s.ID), Name: cmp.Or(s.Description, s.URL), Status: string(s.Status),
		FailingSince: timeOf(s.FailingSince), Bad: s.FailingSince != 0 || s.Failed > s.Succeeded/10,
		Success: timeOf(s.LastSuccess), Failure: timeOf(s.LastFailure),
	}
	if all := s.Succeeded + s.Failed; all > 0 {
		t.Rate = numbers.Rate(s.Succeeded, all) + " of " + numbers.Many(all, "attempt", "attempts") + " succeeded"
	}
	if s.Waiting > 0 {
		t.Waiting = upTo(s.Waiting, gateway.MostWaiting, "event", "events")
	}
	return t
}

func (d overview) attention(r *http.Request, v visit) (page.AttentionView, error) {
	a, err := d.g.Statistics.Attention(r.Context(), v.caller)
	view := page.AttentionView{
		Up: a.Up, Down: a.Down, Idle: a.Idle, WaitingSince: timeOf(a.WaitingSince), Hooks: a.Hooks,
		Endpoints: a.Endpoints + a.Disabled, Failing: a.Failing + a.Disabled,
		More: a.More,
	}
	if a.Waiting > 0 {
		view.Waiting = counted(a.Waiting, "message", "messages")
	}
	for _, p := range a.Problems {
		view.Problems = append(view.Problems, d.trouble(r.Context(), v, p))
	}
	return view, err
}

// counted formats a number that was counted up to [gateway.Counted].
func counted(n int, one, more string) string { return upTo(n, gateway.Counted, one, more) }

// upTo formats a number that was counted up to a limit.
func upTo(n, limit int, one, more string) string {
	if n >= limit {
		return numbers.Of(limit) + "+ " + more
	}
	return numbers.Many(n, one, more)
}

// trouble describes a problem for people.
func (d overview) trouble(ctx context.Context, v visit, p gateway.Problem) page.Trouble {
	t := page.Trouble{
		ID: "trouble-" + string(p.Kind) + "-" + p.Subject, Since: timeOf(p.Since), Href: pathOf(postern.DeviceID(p.Subject)),
	}
	if p.Waiting > 0 && !p.OfEndpoint() {
		t.Impact = counted(p.Waiting, "message is waiting.", "messages are waiting.")
	}
	name := cmp.Or(p.Name, p.Subject)
	switch p.Kind {
	case gateway.DeviceDown:
		d.deviceDown(v, p, name, &t)
	case gateway.DeviceLimited:
		t.Title = name + " may not start chats"
		t.Why = "The network limits the account for a time. Replies still work; messages to new people are refused."
	case gateway.PhoneUnseen:
		t.Title = "The phone of " + name + " has not been seen for long"
		t.Why = "The network removes the link of a phone that is not used for 14 days. Open the app on the phone."
	case gateway.MessagesWaiting:
		t.Title, t.Why = "Messages of "+name+" wait", "The device is connected, but its queue does not move as fast as it grows."
		t.Fix = page.Fix{Label: "Show the queue", Href: "/messages?status=" + page.StillToSend + "&device=" + p.Subject}
	case gateway.EndpointFailing, gateway.EndpointDisabled:
		d.endpointDown(ctx, v, p, &t)
	}
	return t
}

func (d overview) deviceDown(v visit, p gateway.Problem, name string, t *page.Trouble) {
	status, reason, _ := strings.Cut(p.Detail, ", ")
	t.Why = because(reason)
	post := func(label, what string) {
		if v.may(postern.DevicesWrite) {
			t.Fix = page.Fix{Label: label, Post: t.Href + "/" + what}
		}
	}
	switch postern.Status(status) {
	case postern.Conflict:
		t.Title = name + " is connected elsewhere"
		if post("Reconnect here", "resume"); t.Fix.Post != "" {
			t.Why = strings.TrimSpace(t.Why + " If you reconnect it here, the other session ends.")
		}
	case postern.LoggedOut:
		t.Title = name + " was logged out"
		post("Link again", "link")
	case postern.Banned:
		t.Title = "The account of " + name + " is banned"
	case postern.Restricted:
		t.Title = "The account of " + name + " is restricted"
	default: // it tries to connect again and again, and looks the same meanwhile
		t.Title = name + " is not connected"
		if post("Reconnect now", "resume"); postern.Status(status) == postern.Connecting {
			t.Why = "It is trying to connect."
		}
	}
}

func (d overview) endpointDown(ctx context.Context, v visit, p gateway.Problem, t *page.Trouble) {
	id := postern.EndpointID(p.Subject)
	name := p.Name
	if e, err := d.g.Webhooks.Get(ctx, v.caller, id); err == nil {
		name = cmp.Or(name, e.URL)
	}
	t.Href, t.Title, t.Why = hookPath(id), "Webhook "+cmp.Or(name, p.Subject)+" is failing", d.failures(ctx, v, id, p.Since)
	if p.Waiting > 0 {
		t.Impact = counted(p.Waiting, "event is waiting.", "events are waiting.")
	}
	may := v.mayHook(postern.WebhooksWrite)
	switch {
	case p.Kind == gateway.EndpointDisabled && p.Detail == gateway.Verifying:
		t.Title = "Webhook " + cmp.Or(name, p.Subject) + " is being verified"
		t.Why = "Nothing is delivered until it has answered the challenge."
	case p.Kind == gateway.EndpointDisabled:
		reason, unverified := strings.CutPrefix(p.Detail, gateway.Unverified+", ")
		t.Title, t.Why = "Webhook "+cmp.Or(name, p.Subject)+" is disabled", because(reason)
		if unverified {
			t.Title = "Webhook " + cmp.Or(name, p.Subject) + " did not answer the challenge"
		}
		if may {
			t.Fix = page.Fix{Label: "Verify again", Post: t.Href + "/verify"}
		}
	case may && p.Retriable > 0:
		t.Fix = page.Fix{Label: "Retry " + numbers.Of(p.Retriable) + " now", Post: t.Href + "/recover"}
	}
}

// failures says how many of an endpoint's attempts have failed since a time.
func (d *core) failures(ctx context.Context, v visit, id postern.EndpointID, since postern.Time) string {
	since = max(since, postern.TimeOf(time.Now().Add(-24*time.Hour)))
	hours, err := d.g.Webhooks.Hours(ctx, v.caller, id, since-since%postern.Time(time.Hour.Milliseconds()), 0)
	var good, bad int64
	for _, h := range hours.Data {
		good, bad = good+h.Succeeded, bad+h.Failed
	}
	if err != nil || bad == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s failed.", numbers.Rate(bad, good+bad), numbers.Many(good+bad, "attempt", "attempts"))
}

const (
	liveGap  = 700 * time.Millisecond // between two signals of a stream: a page is less than a second behind
	livePart = 10 * time.Second       // between the comments of a stream without signals
	liveTime = 5 * time.Minute        // after which the browser opens another stream
	liveWait = 30 * time.Second       // with a browser that takes nothing

	streamsEach = 200 // open pages of a workspace
	streamsAll  = 2000
)

var errStreams = &postern.Error{
	Reason: postern.RateLimited, RetryAfter: 10 * time.Second, Detail: "too many pages are open at the same time",
}

// isStream tells that a page opens its stream.
func isStream(r *http.Request) bool { return r.URL.Path == "/live" }

// live tells a page that is open when something has changed in its workspace. It sends no content: the page asks for
// that, so that each answer depends on what the member may see at that moment.
func (d overview) live(w http.ResponseWriter, r *http.Request, v visit) error {
	changed, err := d.g.Statistics.Watch(v.caller)
	if err != nil {
		return err
	}
	defer changed.Close()
	done, err := d.streams.Take(string(v.workspace()))
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(r.Context(), liveTime)
	defer cancel()
	s, ok := sse.Open(w, r, liveWait)
	signal := func() bool { return s.Event("changed", []byte("{}")) && postern.Sleep(ctx, liveGap) == nil }
	var again <-chan time.Time // a device that went down with a change is a problem by then
	var last time.Time         // change
	for ok = ok && s.Text("retry: 1000\n\n"); ok; {
		select {
		case <-ctx.Done():
			return nil
		case <-d.stopping:
			return nil
		case <-time.After(livePart):
			ok = s.Text(": here\n\n")
		case <-changed.C():
			changed.Take()
			if last = time.Now(); again == nil {
				again = time.After(gateway.Fresh)
			}
			ok = signal()
		case <-again:
			if again = nil; time.Since(last) < gateway.Fresh {
				again = time.After(gateway.Fresh - time.Since(last))
			}
			ok = signal()
		}
	}
	return nil
}

// show shows who in a workspace is told what is wrong.
func (d alerts) show(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showAs(w, r, v, http.StatusOK, func(*page.AlertsView) {})
}

// showAs shows the settings; edit adds the outcome of a form.
func (d alerts) showAs(
	w http.ResponseWriter, r *http.Request, v visit, status int, edit func(*page.AlertsView),
) error {
	s, err := d.p.Alerts.Get(r.Context(), v.actor, v.workspace())
	if err != nil {
		return err
	}
	members, err := d.p.Members.List(r.Context(), v.actor, v.workspace())
	if err != nil {
		return err
	}
	view := page.AlertsView{
		Host: s.Host, FailedAt: timeOf(s.FailedAt), Failed: whyAttempt(s.Reason), Mail: d.mail != nil,
	}
	for _, m := range members {
		view.Members = append(view.Members, page.Told{
			ID: string(m.UserID), Email: m.Email, Told: slices.Contains(s.Members, m.UserID),
		})
	}
	edit(&view)
	return d.write(w, r, status, page.Alerts(d.frame(r, v, "Alerts", "/people"), view))
}

func (d alerts) setURL(w http.ResponseWriter, r *http.Request, v visit) error {
	raw := r.PostFormValue("url")
	if strings.TrimSpace(raw) == "" {
		err := postern.Invalid("/url", "enter a URL such as https://hooks.example.com/postern")
		return d.changed(w, r, v, err, raw, "")
	}
	err := d.p.Alerts.SetURL(r.Context(), v.actor, v.workspace(), raw)
	return d.changed(w, r, v, err, raw, "The URL was saved. Send a test to see whether alerts arrive.")
}

func (d alerts) remove(w http.ResponseWriter, r *http.Request, v visit) error {
	err := d.p.Alerts.SetURL(r.Context(), v.actor, v.workspace(), "")
	return d.changed(w, r, v, err, "", "Alerts are no longer posted.")
}

func (d alerts) setMembers(w http.ResponseWriter, r *http.Request, v visit) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	var list []postern.UserID
	for _, id := range r.PostForm["member"] {
		list = append(list, postern.UserID(id))
	}
	err := d.p.Alerts.SetMembers(r.Context(), v.actor, v.workspace(), list)
	return d.changed(w, r, v, err, "", "The members were saved.")
}

func (d alerts) test(w http.ResponseWriter, r *http.Request, v visit) error {
	reason, err := d.p.Alerts.Test(r.Context(), v.actor, v.workspace())
	if err == nil && reason != "" {
		return seeOther(w, r, "/people/alerts") // which says why
	}
	return d.changed(w, r, v, err, "", "The test was sent, and the other side has accepted it.")
}

// changed says what a form has done, or shows it again with what is wrong.
func (d alerts) changed(w http.ResponseWriter, r *http.Request, v visit, err error, raw, notice string) error {
	wrong, ok := faults(err)
	if ok {
		return d.showAs(w, r, v, http.StatusUnprocessableEntity, func(view *page.AlertsView) {
			view.URL = page.Field{Value: raw, Error: wrong["url"]}
			view.Problem = cmp.Or(wrong["members"], "Nothing was changed.")
		})
	}
	if err != nil {
		return err
	}
	return d.done(w, r, notice, "/people/alerts")
}
