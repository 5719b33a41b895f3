package dash

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"postern/internal/access"
	"postern/internal/dash/limits"
	"postern/internal/dash/numbers"
	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/people"
	"postern/internal/postern"
)

func (d workspaces) choose(w http.ResponseWriter, r *http.Request, user postern.UserID) error {
	return d.showChoice(w, r, user, http.StatusOK, page.WorkspacesView{})
}

func (d workspaces) showChoice(
	w http.ResponseWriter, r *http.Request, user postern.UserID, status int, view page.WorkspacesView,
) error {
	list, err := d.p.Members.AllMemberships(r.Context(), d.self(r, user),
		paging.Page{Cursor: r.URL.Query().Get("after")})
	if err != nil {
		return err
	}
	for _, m := range list.Data {
		view.Workspaces = append(view.Workspaces, page.Workspace{ID: string(m.WorkspaceID), Name: m.Workspace})
	}
	if list.Next != "" {
		view.More = "/workspaces?after=" + url.QueryEscape(list.Next)
	}
	return d.write(w, r, status, page.Workspaces(view))
}

// showStopped says that the current workspace is unavailable, and links to the others.
func (d workspaces) showStopped(w http.ResponseWriter, r *http.Request, v visit) error {
	r.URL.RawQuery = "" // a cursor in it belongs to another list
	return d.showChoice(w, r, v.user(), http.StatusForbidden, page.WorkspacesView{Stopped: v.caller.Member.Workspace})
}

func (d workspaces) switchTo(w http.ResponseWriter, r *http.Request, _ postern.UserID) error {
	d.sessions.Put(r.Context(), keyWorkspace, r.PostFormValue("workspace")) // visit checks membership
	return seeOther(w, r, "/")
}

const (
	membersShown = 50 // of a workspace, shown to operators
	namesAsked   = 20 // of devices listed before they are paused
)

func workspaceIn(r *http.Request) postern.WorkspaceID { return postern.WorkspaceID(r.PathValue("id")) }

func tenantPath(id postern.WorkspaceID) string {
	return "/operator/workspaces/" + url.PathEscape(string(id))
}

// list lists the workspaces of the server.
func (d workspaces) list(w http.ResponseWriter, r *http.Request, v visit) error {
	search := r.FormValue("q")
	list, err := d.g.Workspaces.ListWithUsage(r.Context(), v.actor, search, paging.Page{Cursor: r.FormValue("after")})
	if err != nil {
		return err
	}
	view := page.UsedWorkspacesView{Search: search}
	for _, u := range list.Data {
		p, _ := u.Entitlement()
		view.Workspaces = append(view.Workspaces, page.UsedWorkspace{
			ID: string(u.ID), Name: u.Name, Plan: word(u.Plan), Messages: usedOf(u.Messages, p.Messages),
			Devices: usedOf(u.Devices, p.Devices),
			Members: numbers.Of(u.Members), Created: timeOf(u.CreatedAt),
		})
	}
	if list.Next != "" {
		view.More = "/operator/workspaces?" + url.Values{"q": {search}, "after": {list.Next}}.Encode()
	}
	return d.write(w, r, http.StatusOK, page.UsedWorkspaces(d.frame(r, v, "Workspaces", "/operator"), view))
}

func usedOf(n, of int) string { return numbers.Of(n) + " of " + numbers.Of(of) }

func planChoices() (list []page.Choice) {
	for _, name := range postern.PlanNames() {
		p, _ := postern.PlanByName(name)
		label := word(name) + ": " + numbers.Many(
			int64(p.Devices), "device", "devices",
		) + ", " + numbers.Of(p.Messages) + " messages per month"
		if !p.API {
			label += ", no API or webhooks"
		}
		list = append(list, page.Choice{Value: name, Label: label})
	}
	return list
}

func (d workspaces) form(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showForm(w, r, v, http.StatusOK, page.NewWorkspaceView{Plan: "starter"})
}

func (d workspaces) showForm(
	w http.ResponseWriter, r *http.Request, v visit, status int, view page.NewWorkspaceView,
) error {
	view.Plans = planChoices()
	return d.write(w, r, status, page.NewWorkspace(d.frame(r, v, "New workspace", "/operator"), view))
}

func (d workspaces) create(w http.ResponseWriter, r *http.Request, v visit) error {
	in := gateway.NewWorkspace{Name: r.PostFormValue("name"), Plan: r.PostFormValue("plan")}
	owner := strings.TrimSpace(r.PostFormValue("owner"))
	ws, token, err := d.make(r.Context(), v.actor, in, owner)
	if wrong, ok := faults(err); ok {
		return d.showForm(w, r, v, http.StatusUnprocessableEntity, page.NewWorkspaceView{
			Name: page.Field{Value: in.Name, Error: wrong["name"]},
			Owner: page.Field{
				Value: owner,
				Error: wrong["email"],
			},
			Plan: in.Plan, PlanError: wrong["plan"],
			Problem: "The workspace was not created.",
		})
	}
	if err != nil {
		return err
	}
	if token == "" {
		return d.done(w, r, "The workspace was created. It has no members yet.", tenantPath(ws.ID))
	}
	return d.write(w, r, http.StatusCreated, page.LinkShown(d.frame(
		r, v, "Workspace created", "/operator",
	), page.LinkShownView{
		Title: "Workspace “" + ws.Name + "” created", Email: owner, Link: d.joinLink(token), Back: tenantPath(ws.ID),
		Text: "Copy the link and send it to the owner. The first person to use it owns the workspace. The link works once, " +
			"expires in 72 hours, and cannot be shown again.",
	}))
}

// make creates a workspace, and an invitation to own it if an address is given. The token of
// the invitation is returned here only.
func (d workspaces) make(
	ctx context.Context, by access.Actor, in gateway.NewWorkspace, owner string,
) (ws postern.Workspace, token string, err error) {
	if owner != "" {
		if _, err := people.CheckEmail(owner); err != nil {
			return ws, "", err
		}
	}
	if ws, err = d.g.Workspaces.Create(ctx, by, in); err != nil || owner == "" {
		return ws, "", err
	}
	_, token, err = d.p.Invitations.Create(ctx, by, ws.ID, people.NewInvitation{Email: owner, Role: postern.Owner})
	return ws, token, err
}

func (d workspaces) show(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showAs(w, r, v, http.StatusOK, func(*page.WorkspaceView) {})
}

// showAs shows a workspace; edit adds the outcome of a form.
func (d workspaces) showAs(
	w http.ResponseWriter, r *http.Request, v visit, status int, edit func(*page.WorkspaceView),
) error {
	u, err := d.g.Workspaces.GetWithUsage(r.Context(), v.actor, workspaceIn(r))
	if err != nil {
		return err
	}
	p, _ := u.Entitlement()
	view := page.WorkspaceView{
		ID: string(u.ID), Name: u.Name, Created: timeOf(u.CreatedAt), Plans: planChoices(), Plan: u.Plan,
		Limits: d.limitFields(u.Workspace), Seen: stateOf(u.Limits),
		Meters: []page.Meter{
			limits.Meter("Messages this month", gateway.Used{Used: u.Messages, Limit: p.Messages}),
			limits.Meter("Linked devices", gateway.Used{Used: u.Devices, Limit: p.Devices}),
			limits.StorageMeter(gateway.UsedBytes{Used: u.Bytes, Limit: p.Caps.Bytes}),
		},
	}
	for _, add := range []func(*http.Request, visit, *page.WorkspaceView) error{d.addMembers, d.addDevices, d.addActs} {
		if err := add(r, v, &view); err != nil {
			return err
		}
	}
	edit(&view)
	return d.write(w, r, status, page.OneWorkspace(d.frame(r, v, u.Name, "/operator"), view))
}

func (d workspaces) addMembers(r *http.Request, v visit, view *page.WorkspaceView) error {
	list, err := d.p.Members.List(r.Context(), v.actor, workspaceIn(r))
	if n := len(list) - membersShown; n > 0 {
		view.Others, list = "And "+numbers.Many(n, "other", "others")+".", list[:membersShown]
	}
	for _, m := range list {
		view.Members = append(view.Members, page.Belongs{
			Email: m.Email, Role: word(string(m.Role)), Joined: m.JoinedAt.Std(),
		})
	}
	return err
}

func (d workspaces) addDevices(r *http.Request, v visit, view *page.WorkspaceView) error {
	list, err := d.g.Workspaces.Devices(
		r.Context(), v.actor, workspaceIn(r), paging.Page{Cursor: r.URL.Query().Get("devices")},
	)
	for _, one := range list.Data {
		view.Devices = append(view.Devices, page.DeviceState{
			Name: one.Name, Status: string(one.Status), Reason: because(string(one.StatusReason)),
		})
	}
	if list.Next != "" {
		view.More = tenantPath(workspaceIn(r)) + "?devices=" + url.QueryEscape(list.Next)
	}
	return err
}

func (d workspaces) addActs(r *http.Request, v visit, view *page.WorkspaceView) error {
	q := people.ActQuery{Page: paging.Page{Cursor: r.URL.Query().Get("acts"), Limit: 20}, Kind: "workspace"}
	list, err := d.p.Audit.List(r.Context(), v.actor, workspaceIn(r), q)
	view.Acts = actsOf(list.Data)
	if list.Next != "" {
		view.Older = tenantPath(workspaceIn(r)) + "?acts=" + url.QueryEscape(list.Next)
	}
	return err
}

// limitFields lists the limits that can be overridden for a workspace.
func (d workspaces) limitFields(ws postern.Workspace) []page.LimitField {
	p, _ := postern.PlanByName(ws.Plan)
	plan := func(n int) string { return "Leave empty to use the plan's limit of " + numbers.Of(n) + "." }
	kept := func(span time.Duration) string {
		return "Leave empty to use the server's retention (" + limits.Days(span) + "). It can only be shortened."
	}
	return []page.LimitField{
		{Name: "messages", Label: "Messages per month", Hint: plan(p.Messages), Field: figure(ws.Limits.Messages)},
		{Name: "devices", Label: "Linked devices", Hint: plan(p.Devices), Field: figure(ws.Limits.Devices)},
		{
			Name: "eventDays", Label: "Event retention in days", Hint: kept(d.retention.Events),
			Field: figure(ws.Limits.EventDays),
		},
		{
			Name: "messageDays", Label: "Message retention in days", Hint: kept(d.retention.Messages),
			Field: figure(ws.Limits.MessageDays),
		},
		{
			Name: "storageMiB", Label: "Stored files in MiB", Hint: plan(int(p.Caps.Bytes >> 20)),
			Field: figure(ws.Limits.StorageMiB),
		},
	}
}

func figure(n *int) page.Field {
	if n == nil {
		return page.Field{}
	}
	return page.Field{Value: strconv.Itoa(*n)}
}

// effect is what a change of plan or limits would pause.
type effect struct {
	devices []string // their names
	noAPI   bool     // keys are refused, and webhooks paused
}

// token identifies the effect that a form has shown; "" means none. If the effect has changed
// since, the form asks again.
func (e effect) token() string {
	if len(e.devices) == 0 && !e.noAPI {
		return ""
	}
	return strconv.Itoa(len(e.devices)) + " " + strconv.FormatBool(e.noAPI)
}

func (e effect) words() (list []string) {
	if n := len(e.devices); n > 0 {
		list = append(
			list,
			numbers.Many(
				int64(n), "device will be paused. It stays linked and resumes",
				"devices will be paused. They stay linked and resume",
			)+" when the limit allows it.",
		)
	}
	if e.noAPI {
		list = append(
			list,
			"API keys will be refused and webhooks paused. On a plan with the API, webhooks catch up on events from the last "+
				"72 hours.",
		)
	}
	return list
}

func (d workspaces) effect(r *http.Request, v visit, from, to postern.Workspace) (e effect, err error) {
	before, _ := from.Entitlement()
	after, ok := to.Entitlement()
	if !ok {
		return e, nil // the change will be refused
	}
	list, err := d.g.Workspaces.Beyond(r.Context(), v.actor, from.ID, after.Devices)
	for _, one := range list {
		e.devices = append(e.devices, one.Name)
	}
	e.noAPI = before.API && !after.API
	return e, err
}

// confirm asks before a change pauses something.
func (d workspaces) confirm(w http.ResponseWriter, r *http.Request, v visit, e effect, view page.ConfirmView) error {
	view.Effects, view.Devices = e.words(), e.devices
	if n := len(e.devices) - namesAsked; n > 0 {
		view.Devices, view.Others = e.devices[:namesAsked], "and "+numbers.Many(n, "other", "others")
	}
	view.Values = append(view.Values, page.Choice{Label: "confirm", Value: e.token()})
	return d.write(w, r, http.StatusOK, page.Confirm(d.frame(r, v, "Change a workspace", "/operator"), view))
}

func (d workspaces) changePlan(w http.ResponseWriter, r *http.Request, v visit) error {
	u, err := d.g.Workspaces.GetWithUsage(r.Context(), v.actor, workspaceIn(r))
	if err != nil {
		return err
	}
	to := u.Workspace
	to.Plan = r.PostFormValue("plan")
	e, err := d.effect(r, v, u.Workspace, to)
	if err != nil {
		return err
	}
	if e.token() != "" && e.token() != r.PostFormValue("confirm") {
		return d.confirm(w, r, v, e, page.ConfirmView{
			ID: string(u.ID), Name: u.Name, Action: "plan",
			Change: "The plan changes from " + word(u.Plan) + " to " + word(to.Plan) + ".",
			Values: []page.Choice{{Label: "plan", Value: to.Plan}},
		})
	}
	err = d.g.Workspaces.SetPlan(r.Context(), v.actor, u.ID, to.Plan)
	if wrong, ok := faults(err); ok {
		return d.showAs(w, r, v, http.StatusUnprocessableEntity,
			func(p *page.WorkspaceView) { p.PlanError = wrong["plan"] })
	}
	if err != nil {
		return err
	}
	return d.done(w, r, "The plan is now "+word(to.Plan)+".", tenantPath(u.ID))
}

func (d workspaces) changeLimits(w http.ResponseWriter, r *http.Request, v visit) error {
	u, err := d.g.Workspaces.GetWithUsage(r.Context(), v.actor, workspaceIn(r))
	if err != nil {
		return err
	}
	change, err := limitsIn(r)
	if err = cmp.Or(err, checkState(r, stateOf(u.Limits))); err != nil {
		return d.limitsRefused(w, r, v, err)
	}
	to := u.Workspace
	to.Limits = to.Limits.With(change)
	e, err := d.effect(r, v, u.Workspace, to)
	if err != nil {
		return err
	}
	if e.token() != "" && e.token() != r.PostFormValue("confirm") {
		view := page.ConfirmView{
			ID: string(u.ID), Name: u.Name, Action: "limits",
			Change: "The new device limit is lower than the number of linked devices.",
		}
		view.Values = append(view.Values, page.Choice{Label: "seen", Value: r.PostFormValue("seen")})
		for _, f := range d.limitFields(to) {
			view.Values = append(view.Values, page.Choice{Label: f.Name, Value: f.Field.Value})
		}
		return d.confirm(w, r, v, e, view)
	}
	if _, err = d.g.Workspaces.ChangeLimits(r.Context(), v.actor, u.ID, change); err != nil {
		return d.limitsRefused(w, r, v, err)
	}
	return d.done(w, r, "The overrides were saved.", tenantPath(u.ID))
}

// limitsIn reads the limits of a form; an empty field removes the override.
func limitsIn(r *http.Request) (l postern.Limits, err error) {
	var wrong []postern.Field
	for name, to := range map[string]**int{
		"messages": &l.Messages, "devices": &l.Devices, "eventDays": &l.EventDays, "messageDays": &l.MessageDays,
		"storageMiB": &l.StorageMiB,
	} {
		n, ok := -1, true
		if text := strings.TrimSpace(r.PostFormValue(name)); text != "" {
			n, ok = numbers.Read(text)
		}
		if !ok {
			wrong = append(wrong, postern.Field{
				Pointer: "/" + name, Detail: "enter a whole number or leave the field empty",
			})
		}
		*to = &n
	}
	if len(wrong) > 0 {
		return l, &postern.Error{Reason: postern.ValidationFailed, Detail: "some limits are not numbers", Fields: wrong}
	}
	return l, nil
}

// limitsRefused shows the form again with its errors.
func (d workspaces) limitsRefused(w http.ResponseWriter, r *http.Request, v visit, err error) error {
	wrong, ok := faults(err)
	outdated := errors.Is(err, errOutdated)
	if !ok && !outdated {
		return err
	}
	return d.showAs(w, r, v, http.StatusUnprocessableEntity, func(p *page.WorkspaceView) {
		if outdated {
			p.Problem = word(err.Error()) + "."
		} else {
			p.Seen = r.PostFormValue("seen")
		}
		for i, f := range p.Limits {
			p.Limits[i].Field = page.Field{Value: r.PostFormValue(f.Name), Error: wrong[f.Name]}
		}
	})
}
