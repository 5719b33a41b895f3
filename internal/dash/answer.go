package dash

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"postern/internal/access"
	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/problem"
	"postern/internal/ratelimit"

	"github.com/a-h/templ"
)

// errOutdated means that somebody else has changed what a form was filled with.
var errOutdated = errors.New("somebody else has changed this since you opened the page; " +
	"save again to replace their change, or reload the page to see it")

// stateOf identifies what a form is filled with.
func stateOf(shown ...any) string {
	text, err := json.Marshal(shown)
	if err != nil {
		panic(err) // it consists of plain values
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// checkState returns errOutdated if a form was filled with something else than what is there now.
func checkState(r *http.Request, now string) error {
	if seen := r.PostFormValue("seen"); seen != "" && seen != now {
		return errOutdated
	}
	return nil
}

// visit is a member's request for a page of a workspace.
type visit struct {
	caller access.Caller
	actor  access.Actor
	self   access.Self
	list   []postern.Member // the first workspaces of the user
}

func (v visit) user() postern.UserID           { return v.caller.Member.UserID }
func (v visit) workspace() postern.WorkspaceID { return v.caller.Workspace() }

// open serves a page that needs no sign-in.
func (d *core) open(pattern string, serve func(http.ResponseWriter, *http.Request) error) {
	d.handle(pattern, func(w http.ResponseWriter, r *http.Request) error {
		if err := d.admitVisitor(r); err != nil {
			return err
		}
		return serve(w, r)
	})
}

// handle serves a page that counts its requests itself.
func (d *core) handle(pattern string, serve func(http.ResponseWriter, *http.Request) error) {
	d.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		d.saw(r.Context(), pattern, postern.Member{})
		if err := serve(w, r); err != nil {
			d.fail(w, r, err)
		}
	})
}

// admit counts a request for a name. Beyond the rate, a full minute's allowance at once and
// then evenly, it returns RateLimited.
func (d *core) admit(ctx context.Context, name string, perMinute int) error {
	rate := ratelimit.Rate{Count: perMinute, Per: time.Minute, Burst: perMinute}
	state, err := d.requests.Take(ctx, name, rate)
	if err != nil || !state.Refused {
		return err
	}
	return &postern.Error{
		Reason: postern.RateLimited, RetryAfter: max(state.RetryAfter, time.Second),
		Detail: fmt.Sprintf("too many requests: %d per minute are allowed; wait a moment and try again", perMinute),
	}
}

// admitVisitor counts a request to a page that needs no sign-in. One without a sign-in is
// counted for its network, as the API counts those without a key. Those of this machine are
// not counted: behind a proxy that is not trusted, all visitors would share its address.
func (d *core) admitVisitor(r *http.Request) error {
	if user := d.sessions.GetString(r.Context(), keyUser); user != "" {
		return d.admitUser(r.Context(), postern.UserID(user))
	}
	ip, err := netip.ParseAddr(d.address(r))
	if err != nil || ip.Unmap().IsLoopback() {
		return nil //nolint:nilerr // without an address there is no network to count
	}
	return d.admit(r.Context(), ratelimit.Network(ip), visitsPerMinute)
}

// admitUser counts a request for a person, apart from any workspace: with the allowance of
// the smallest plan.
func (d *core) admitUser(ctx context.Context, user postern.UserID) error {
	return d.admit(ctx, string(user), postern.Plan{}.PagesPerMinute())
}

// refreshes is how many times as many parts of pages as pages may be asked for in a minute: an open page asks for up to
// three of them each time something changes, and somebody may have ten pages open while something always does.
const refreshes = 8

// admitMember counts a request for the person, and then for the workspace. Files are counted
// apart from pages, because a page may show many, and so are the parts that open pages ask for by themselves.
func (d *core) admitMember(r *http.Request, v visit) error {
	allowed, what := v.caller.Plan.PagesPerMinute(), ""
	switch {
	case isFile(r):
		what = "files of "
	case knownIn(r.Context()).poll:
		what, allowed = "parts for ", refreshes*allowed
	}
	if err := d.admit(r.Context(), what+string(v.user()), allowed); err != nil {
		return err
	}
	return d.admit(r.Context(), what+string(v.workspace()), allowed)
}

// signedIn serves a page to signed-in users, whatever their workspace.
func (d *core) signedIn(pattern string, serve func(http.ResponseWriter, *http.Request, postern.UserID) error) {
	d.user(pattern, func(w http.ResponseWriter, r *http.Request, user postern.UserID) error {
		if err := d.admitUser(r.Context(), user); err != nil {
			return err
		}
		return serve(w, r, user)
	})
}

// user serves a page to signed-in users. The page counts its requests itself.
func (d *core) user(pattern string, serve func(http.ResponseWriter, *http.Request, postern.UserID) error) {
	d.handle(pattern, func(w http.ResponseWriter, r *http.Request) error {
		user := postern.UserID(d.sessions.GetString(r.Context(), keyUser))
		if user == "" {
			if err := d.admitVisitor(r); err != nil {
				return err
			}
			return toSignIn(w, r)
		}
		return serve(w, r, user)
	})
}

// member serves a page to signed-in members whose role has the scopes.
func (d *core) member(
	pattern string, serve func(http.ResponseWriter, *http.Request, visit) error, scopes ...postern.Scope,
) {
	d.memberOr(d.sendAway, pattern, serve, scopes...)
}

// memberOr is member with what serves users who belong to no workspace.
func (d *core) memberOr(
	alone func(http.ResponseWriter, *http.Request, postern.UserID) error,
	pattern string, serve func(http.ResponseWriter, *http.Request, visit) error, scopes ...postern.Scope,
) {
	d.user(pattern, func(w http.ResponseWriter, r *http.Request, user postern.UserID) error {
		v, err := d.visit(r, user)
		d.saw(r.Context(), pattern, v.caller.Member)
		switch {
		case errors.Is(err, errNoWorkspace):
			return alone(w, r, user)
		case errors.Is(err, people.ErrUnknownPlan):
			return workspaces{d}.showStopped(w, r, v)
		}
		if err == nil {
			err = d.admitMember(r, v)
		}
		if err == nil {
			err = v.caller.Permit(scopes...)
		}
		if err != nil {
			return err
		}
		if at := r.PostFormValue("at"); at != "" && at != string(v.workspace()) {
			return d.showElsewhere(w, r, v)
		}
		ctx := gateway.ReadFor(page.In(r.Context(), string(v.workspace())), v.workspace())
		return serve(w, r.WithContext(ctx), v)
	})
}

// own serves a page about the user's account to members, and to operators who belong to no workspace.
func (d *core) own(pattern string, serve func(http.ResponseWriter, *http.Request, visit) error) {
	alone := func(w http.ResponseWriter, r *http.Request, user postern.UserID) error {
		v, err := d.visitAlone(r, user)
		if postern.ReasonOf(err) == postern.NotFound { // no operator
			return d.sendAway(w, r, user)
		}
		if err != nil {
			return err
		}
		d.saw(r.Context(), pattern, v.caller.Member)
		return serve(w, r.WithContext(gateway.ReadFor(r.Context(), paging.Everywhere)), v)
	}
	d.memberOr(alone, pattern, serve)
}

// visitAlone is the visit of an operator who belongs to no workspace.
func (d *core) visitAlone(r *http.Request, user postern.UserID) (v visit, err error) {
	if err := d.admitUser(r.Context(), user); err != nil {
		return v, err
	}
	v.self = d.self(r, user)
	v.actor, err = d.p.Operators.Actor(r.Context(), v.self)
	v.caller.Sure = v.self.Sure
	v.caller.Member.UserID, v.caller.Member.Email, v.caller.Member.Operator = user, v.actor.Member.Email, true
	return v, err
}

var errNoPage = postern.Errorf(postern.NotFound, "this page does not exist")

var errNoWorkspace = errors.New("the user belongs to no workspace")

// sendAway signs out a user who belongs to no workspace and says why. Operators need no
// workspace; they are sent to their own pages.
func (d *core) sendAway(w http.ResponseWriter, r *http.Request, user postern.UserID) error {
	switch _, err := d.p.Operators.Actor(r.Context(), d.self(r, user)); {
	case err == nil:
		return seeOther(w, r, "/operator")
	case postern.ReasonOf(err) != postern.NotFound:
		return err
	}
	if err := d.sessions.Destroy(r.Context()); err != nil {
		return err
	}
	return signIns{d}.showAs(
		w, r, http.StatusForbidden,
		page.SignInView{Problem: "You are no longer a member of any workspace. Ask an admin to invite you."},
	)
}

// showElsewhere refuses a form from a page of one workspace after the user switched to another
// one in a different tab.
func (d *core) showElsewhere(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.write(w, r, http.StatusConflict, page.Problem(page.ProblemView{
		Status: http.StatusConflict, Title: "Nothing was changed",
		Text: "That page belongs to another workspace. You have since switched to " + v.caller.Member.Workspace +
			". Switch back and try again.",
	}))
}

// visit finds the user's current workspace: the last one chosen, or else the first.
func (d *core) visit(r *http.Request, user postern.UserID) (v visit, err error) {
	v.self = d.self(r, user)
	if v.list, err = d.p.Members.Memberships(r.Context(), v.self); err != nil {
		return v, err
	}
	if len(v.list) == 0 {
		return v, errNoWorkspace
	}
	chosen := cmp.Or(postern.WorkspaceID(d.sessions.GetString(r.Context(), keyWorkspace)), v.list[0].WorkspaceID)
	v.caller, err = d.p.Members.Caller(r.Context(), v.self, chosen)
	if postern.ReasonOf(err) == postern.NotFound { // the user is not a member
		v.caller, err = d.p.Members.Caller(r.Context(), v.self, v.list[0].WorkspaceID)
	}
	v.actor = v.caller.Actor()
	v.actor.Recent = d.isRecent(r)
	return v, err
}

// self is the user who is signed in with this browser.
func (d *core) self(r *http.Request, user postern.UserID) access.Self {
	return access.Self{ID: user, Address: d.address(r), Token: d.tokenHash(r), Sure: d.isSure(r)}
}

// toSignIn redirects to the sign-in page, which leads back here. A stream is refused instead,
// because no page can take its place.
func toSignIn(w http.ResponseWriter, r *http.Request) error {
	if isStream(r) {
		w.WriteHeader(http.StatusUnauthorized)
		return nil
	}
	to := "/signin"
	if r.Method == http.MethodGet && r.URL.Path != "/" {
		to += "?next=" + url.QueryEscape(r.URL.RequestURI())
	}
	return seeOther(w, r, to)
}

// local returns next if it is a path of this server, and "/" if a browser could take it for
// another site.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") ||
		strings.ContainsFunc(next, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }) {
		return "/"
	}
	return next
}

// frame is the navigation and account data around a page.
func (d *core) frame(r *http.Request, v visit, title, current string) page.Frame {
	f := page.Frame{
		Title: title, Current: current, Email: v.caller.Member.Email, Role: word(string(v.caller.Member.Role)),
		Workspace: page.Workspace{ID: string(v.workspace()), Name: v.caller.Member.Workspace},
		TimeZone:  v.caller.Member.TimeZone,
		Entries:   entries(v.caller.Member),
	}
	if f.Part = isPart(r); f.Part {
		return f // perhaps in another tab than the one that is to show the notice
	}
	f.Notice = d.sessions.PopString(r.Context(), keyNotice)
	f.More = len(v.list) == people.MenuSize
	for _, m := range v.list {
		f.Workspaces = append(f.Workspaces, page.Workspace{ID: string(m.WorkspaceID), Name: m.Workspace})
	}
	return f
}

// isPart tells that a page that is open asks for a part of itself.
func isPart(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("HX-Request") != "" && r.Header.Get("HX-History-Restore-Request") == ""
}

func word(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// write renders a page completely before it writes the first byte.
func (d *core) write(w http.ResponseWriter, r *http.Request, status int, c templ.Component) error {
	var b bytes.Buffer
	if err := c.Render(r.Context(), &b); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the browser may be gone
	return nil
}

// seeOther redirects to a page of this server.
func seeOther(w http.ResponseWriter, r *http.Request, to string) error {
	http.Redirect(w, r, local(to), http.StatusSeeOther) //nolint:gosec // local says so
	return nil
}

// onward is where a form leads: the page that it was on, if it names that, or another one.
func onward(r *http.Request, other string) string {
	if to := r.PostFormValue("next"); to != "" {
		return local(to)
	}
	return other
}

// done redirects and shows a notice on the next page.
func (d *core) done(w http.ResponseWriter, r *http.Request, notice, to string) error {
	d.sessions.Put(r.Context(), keyNotice, notice)
	return seeOther(w, r, to)
}

// fail shows the problem page for an error.
func (d *core) fail(w http.ResponseWriter, r *http.Request, err error) {
	v := page.ProblemView{
		Status: http.StatusInternalServerError, Title: "Something went wrong",
		Text: "The error was logged. Try again in a moment.",
	}
	if e, ok := errors.AsType[*postern.Error](err); ok {
		k := problem.Of(e.Reason)
		v.Status, v.Title = k.Status, k.Page
		v.Text = word(e.Error()) + "."
		if e.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
		}
	} else if r.Context().Err() == nil {
		d.log.ErrorContext(r.Context(), "a page of the dashboard failed", "path", r.Pattern, "error", err)
	}
	if err := d.write(w, r, v.Status, page.Problem(v)); err != nil {
		http.Error(w, v.Title, v.Status)
	}
}

// faults returns the messages for the fields of a form, by name; ok is false for any other
// error.
func faults(err error) (byName map[string]string, ok bool) {
	e, is := errors.AsType[*postern.Error](err)
	if !is || e.Reason != postern.ValidationFailed || len(e.Fields) == 0 {
		return nil, false
	}
	byName = map[string]string{}
	for _, f := range e.Fields {
		name, _, _ := strings.Cut(strings.TrimPrefix(f.Pointer, "/"), "/") // the field of an element
		byName[name] = cmp.Or(byName[name], word(f.Detail)+".")
	}
	return byName, true
}

// entries is the navigation that a member sees: keys are for developers, people for admins.
func entries(m postern.Member) []page.Entry {
	return slices.DeleteFunc(page.Entries(), func(e page.Entry) bool {
		switch e.Path {
		case "/keys":
			return !m.Role.Covers(postern.Developer)
		case "/people":
			return !m.Role.Covers(postern.Admin)
		case "/operator":
			return !m.Operator
		}
		return false
	})
}

// ours serves a page about a message, file or device. Members may see everything in their workspace,
// so a resource that is not allowed belongs to another workspace: it is reported as not found.
func (d *core) ours(
	pattern string, serve func(http.ResponseWriter, *http.Request, visit) error, scopes ...postern.Scope,
) {
	d.member(pattern, func(w http.ResponseWriter, r *http.Request, v visit) error {
		err := serve(w, r, v)
		if reason := postern.ReasonOf(err); reason == postern.ResourceNotAllowed || reason == postern.NotFound {
			return postern.Errorf(postern.NotFound, "this message, file or device does not exist or was deleted")
		}
		return err
	}, scopes...)
}

// hook serves a page about one endpoint. Members may see everything in their workspace, so a
// resource that is not allowed belongs to another workspace: it is reported as not found.
func (d *core) hook(
	pattern string, serve func(http.ResponseWriter, *http.Request, visit) error, scopes ...postern.Scope,
) {
	d.member(pattern, func(w http.ResponseWriter, r *http.Request, v visit) error {
		err := serve(w, r, v)
		if reason := postern.ReasonOf(err); reason == postern.ResourceNotAllowed || reason == postern.NotFound {
			return postern.Errorf(postern.NotFound, "this webhook, delivery, or replay does not exist")
		}
		return err
	}, scopes...)
}

// may reports whether to offer what needs the scopes.
func (v visit) may(scopes ...postern.Scope) bool { return v.caller.Permit(scopes...) == nil }

// mayHook is may for what only plans with webhooks allow.
func (v visit) mayHook(scopes ...postern.Scope) bool {
	return v.caller.PermitWebhooks(scopes...) == nil
}

// sure serves a page to users who recently entered their password again.
func (d *core) sure(pattern string, serve func(http.ResponseWriter, *http.Request, visit) error) {
	d.sureFrom("/account/second", pattern, serve)
}

// sureFrom is sure with the page that asks for the password.
func (d *core) sureFrom(ask, pattern string, serve func(http.ResponseWriter, *http.Request, visit) error) {
	d.own(pattern, func(w http.ResponseWriter, r *http.Request, v visit) error {
		if !d.isSure(r) {
			return seeOther(w, r, ask)
		}
		return serve(w, r, v)
	})
}

// operatorPage serves a page to operators, whatever their workspace. For all others it does not
// exist.
func (d *core) operatorPage(pattern string, serve func(http.ResponseWriter, *http.Request, visit) error) {
	d.signedIn(pattern, func(w http.ResponseWriter, r *http.Request, user postern.UserID) error {
		actor, err := d.p.Operators.Actor(r.Context(), d.self(r, user))
		if postern.ReasonOf(err) == postern.NotFound {
			return errNoPage
		}
		if err != nil {
			return err
		}
		v, err := d.visit(r, user)
		if err != nil && !errors.Is(err, errNoWorkspace) && !errors.Is(err, people.ErrUnknownPlan) {
			return err
		}
		v.actor, v.caller.Member.UserID = actor, user
		v.caller.Member.Email, v.caller.Member.Operator = actor.Member.Email, true
		d.saw(r.Context(), pattern, v.caller.Member)
		return serve(w, r.WithContext(gateway.ReadFor(r.Context(), paging.Everywhere)), v)
	})
}

// devicesNamed returns devices with their names, or with their ids where a name is not known; nil if
// the list is nil.
func (d *core) devicesNamed(ctx context.Context, v visit, ids []postern.DeviceID) (list []page.Choice, err error) {
	if ids == nil {
		return nil, nil
	}
	names, err := d.deviceNames(ctx, v, ids...)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		list = append(list, page.Choice{Value: string(id), Label: cmp.Or(names[id], string(id))})
	}
	return list, nil
}

// deviceNames returns the names of the newest devices by id, and those of certain ones, if the caller may see devices.
func (d *core) deviceNames(
	ctx context.Context, v visit, certain ...postern.DeviceID,
) (map[postern.DeviceID]string, error) {
	names := map[postern.DeviceID]string{}
	if !v.may(postern.DevicesRead) {
		return names, nil
	}
	list, err := d.g.Devices.List(ctx, v.caller, paging.Page{Limit: devicesShown})
	for _, one := range list.Data {
		names[one.ID] = one.Name
	}
	d.addNames(ctx, v, names, certain)
	return names, err
}

// addNames adds the names of devices that were not among those listed; that of a device that does not exist is empty.
func (d *core) addNames(ctx context.Context, v visit, names map[postern.DeviceID]string, ids []postern.DeviceID) {
	for _, id := range ids {
		if _, asked := names[id]; asked || id == "" {
			continue
		}
		one, err := d.g.Devices.Get(ctx, v.caller, id)
		if names[id] = one.Name; err != nil {
			names[id] = ""
		}
	}
}
