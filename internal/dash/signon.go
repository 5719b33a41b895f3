package dash

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"postern/internal/dash/page"
	"postern/internal/oidc"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/problem"
)

const errandTime = 10 * time.Minute // to the provider and back

// SignOnPath is the path to which the provider redirects browsers.
const SignOnPath = "/signin/oidc/callback"

// signOnName is the display name of the provider; "" if there is none.
func (d *core) signOnName() string {
	if d.signOn == nil {
		return ""
	}
	return d.signOn.Name()
}

// The reasons to send a browser to the provider.
const (
	toEnter   = "enter"
	toJoin    = "join"
	toConnect = "connect"
	toBeSure  = "sure"
)

// errand is the reason why a browser is at the provider. It stays in the login session, so that
// a response for another browser is refused.
type errand struct {
	Ask   oidc.Ask `json:"ask"`
	For   string   `json:"for"`
	Next  string   `json:"next"`  // where the user wants to go
	Token string   `json:"token"` // of the invitation
}

// back is where the user continues if the sign-in fails.
func (e errand) back() string {
	switch e.For {
	case toJoin:
		return "/join/" + url.PathEscape(e.Token)
	case toConnect:
		return "/account/identities"
	case toBeSure:
		return local(e.Next)
	}
	return "/signin?next=" + url.QueryEscape(local(e.Next))
}

// send redirects a browser to the provider. The request is a link, because a form must not lead
// to another site (see page.Policy); it changes only the login session.
func (d signOns) send(w http.ResponseWriter, r *http.Request, e errand) error {
	to, ask, err := d.signOn.Begin(r.Context(), e.For == toBeSure)
	if err != nil {
		return d.refuse(w, r, e, err)
	}
	e.Ask = ask
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	d.sessions.Put(r.Context(), keyErrand, string(text))
	if d.sessions.GetString(r.Context(), keyUser) == "" { // forget a browser that never comes back
		d.sessions.SetDeadline(r.Context(), time.Now().Add(errandTime))
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// fromHere reports whether the request comes from a link on our own pages: other sites must not
// start connecting an account. Browsers that do not send the header are older than 2023.
func fromHere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin" || site == "none"
}

func (d signOns) beginSignIn(w http.ResponseWriter, r *http.Request) error {
	next := local(r.FormValue("next"))
	if d.sessions.GetString(r.Context(), keyUser) != "" {
		return seeOther(w, r, next)
	}
	if err := d.p.Identities.TakeSignOn(r.Context(), d.address(r)); err != nil {
		return err
	}
	return d.send(w, r, errand{For: toEnter, Next: next})
}

func (d signOns) beginJoin(w http.ResponseWriter, r *http.Request) error {
	e := errand{For: toJoin, Token: r.PathValue("token")}
	l, err := d.p.Invitations.Get(r.Context(), e.Token)
	if err != nil {
		return err
	}
	if l.Known || d.sessions.GetString(r.Context(), keyUser) != "" || !fromHere(r) {
		return seeOther(w, r, e.back())
	}
	if err := d.p.Identities.TakeSignOn(r.Context(), d.address(r)); err != nil {
		return err
	}
	return d.send(w, r, e)
}

func (d signOns) beginConnect(w http.ResponseWriter, r *http.Request, _ visit) error {
	return d.sendFromHere(w, r, errand{For: toConnect})
}

func (d signOns) beginAgain(w http.ResponseWriter, r *http.Request, _ visit) error {
	return d.sendFromHere(w, r, errand{For: toBeSure, Next: local(r.FormValue("next"))})
}

func (d signOns) sendFromHere(w http.ResponseWriter, r *http.Request, e errand) error {
	if !fromHere(r) {
		return seeOther(w, r, e.back())
	}
	return d.send(w, r, e)
}

// takeErrand returns and removes the errand of this browser.
func (d signOns) takeErrand(r *http.Request) (e errand, ok bool) {
	text := d.sessions.GetString(r.Context(), keyErrand)
	if json.Unmarshal([]byte(text), &e) != nil || !e.Ask.Answers(r.URL.Query()) {
		return errand{}, false // a forged response must not remove the errand
	}
	d.sessions.Remove(r.Context(), keyErrand)
	return e, time.Since(e.Ask.At) < errandTime
}

// end handles the provider's response.
func (d signOns) end(w http.ResponseWriter, r *http.Request) error {
	e, ok := d.takeErrand(r)
	if !ok {
		return d.refuse(w, r, errand{}, errNoErrand)
	}
	found, err := d.signOn.Finish(r.Context(), e.Ask, r.URL.Query())
	if err != nil {
		return d.refuse(w, r, e, err)
	}
	err = d.finish(w, r, e, people.Identity(found))
	if own, ok := errors.AsType[*postern.Error](err); ok {
		k := problem.Of(own.Reason)
		return d.write(w, r, k.Status, page.Problem(page.ProblemView{
			Status: k.Status, Title: k.Page, Text: word(own.Error()) + ".", Home: e.back(), Go: "Back",
		}))
	}
	return err
}

var errNoErrand = errors.New("an answer that this browser does not wait for")

// finish completes the errand.
func (d signOns) finish(w http.ResponseWriter, r *http.Request, e errand, i people.Identity) error {
	user := postern.UserID(d.sessions.GetString(r.Context(), keyUser))
	switch {
	case e.For == toJoin:
		return d.joinBy(w, r, e.Token, i)
	case e.For == toEnter:
		u, err := d.p.Identities.SignIn(r.Context(), i)
		if err != nil {
			return err
		}
		return d.pass(w, r, u, e.Next, "")
	case user == "":
		return toSignIn(w, r)
	case e.For == toConnect:
		return d.connect(w, r, user, i)
	}
	return d.beSure(w, r, user, e.Next, i)
}

func (d signOns) joinBy(w http.ResponseWriter, r *http.Request, token string, i people.Identity) error {
	u, ws, err := d.p.Invitations.JoinByIdentity(r.Context(), token, d.address(r), i)
	if err != nil {
		return err
	}
	if err := d.enter(w, r, u, ""); err != nil {
		return err
	}
	return invitations(d).joined(w, r, ws)
}

func (d signOns) connect(w http.ResponseWriter, r *http.Request, user postern.UserID, i people.Identity) error {
	self := d.self(r, user)
	self.Sure = true // it was checked when the browser was sent to the provider: see beginConnect
	if err := d.p.Identities.Connect(r.Context(), self, i); err != nil {
		return err
	}
	d.tell(r, user, addedMethod("an account at "+d.signOnName()))
	return d.done(w, r, "Your account is connected. You can now sign in with "+d.signOnName()+".",
		"/account/identities")
}

func (d signOns) beSure(
	w http.ResponseWriter, r *http.Request, user postern.UserID, next string, i people.Identity,
) error {
	if err := d.p.Identities.Reenter(r.Context(), d.self(r, user), i); err != nil {
		return err
	}
	d.sessions.Put(r.Context(), keySure, now())
	return seeOther(w, r, next)
}

// refuse shows why the sign-in failed, with a link back.
func (d signOns) refuse(w http.ResponseWriter, r *http.Request, e errand, err error) error {
	if !errors.Is(err, errNoErrand) { // which anybody can forge
		d.log.WarnContext(r.Context(), "a sign-in at the provider came to nothing", "error", short(err.Error()))
	}
	status, text := d.problem(err)
	return d.write(
		w, r, status,
		page.Problem(page.ProblemView{Status: status, Title: "Sign-in failed", Text: text, Home: e.back(), Go: "Back"}),
	)
}

// problem describes what is wrong with the provider's response.
func (d signOns) problem(err error) (status int, text string) {
	name := word(d.signOnName())
	switch {
	case errors.Is(err, errNoErrand):
		return http.StatusBadRequest, "This sign-in was not started in this browser, was already used, or took too long. " +
			"Start again."
	case errors.Is(err, oidc.ErrDown):
		return http.StatusServiceUnavailable, name + " cannot be reached right now. Try again in a minute."
	case errors.Is(err, oidc.ErrDenied):
		return http.StatusForbidden, name + " refused the sign-in."
	case errors.Is(err, oidc.ErrStale):
		return http.StatusForbidden, name + " did not ask you to sign in again. Sign out there, then try again."
	}
	return http.StatusBadRequest, "The response from " + d.signOnName() +
		" could not be verified. Try again. The reason is in the server's log."
}

// short cuts text of others for the log.
func short(text string) string { return text[:min(len(text), 300)] }

func (d signOns) show(w http.ResponseWriter, r *http.Request, v visit) error {
	if !d.isSure(r) {
		return d.askAgain(w, r, v, http.StatusOK, page.SureView{Next: "/account/identities"})
	}
	list, err := d.p.Identities.List(r.Context(), v.self)
	if err != nil {
		return err
	}
	has, err := d.p.Users.HasPassword(r.Context(), v.self)
	if err != nil {
		return err
	}
	view := page.IdentitiesView{SignOn: d.signOnName(), Keep: !has}
	for _, i := range list {
		view.Identities = append(view.Identities, page.Identity{
			Issuer: i.Issuer, Subject: i.Subject, Created: i.CreatedAt.Std(),
		})
	}
	return d.write(w, r, http.StatusOK, page.Identities(d.frame(r, v, "Single sign-on", "/account"), view))
}

func (d signOns) disconnect(w http.ResponseWriter, r *http.Request, v visit) error {
	if err := d.p.Identities.Disconnect(
		r.Context(), v.self, r.PostFormValue("issuer"), r.PostFormValue("subject"),
	); err != nil {
		return err
	}
	d.tell(r, v.user(), removedMethod("The connected account at "+r.PostFormValue("issuer")))
	return d.done(w, r, "The account was disconnected. All other browsers were signed out.", "/account/identities")
}
