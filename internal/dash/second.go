package dash

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"postern/internal/access"
	"postern/internal/dash/page"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/qrcode"
)

const (
	secondTime = 10 * time.Minute // between the password and the second step
	sureTime   = 10 * time.Minute // that a password counts for after it was entered again
)

func (d *dash) factorRoutes() {
	d.signOnRoutes()
	d.member("GET /account/second", d.factors)
	d.member("POST /account/second", d.enterAgain)
	d.sure("POST /account/second/app", d.beginApp)
	d.sure("GET /account/second/app", d.showApp)
	d.sure("POST /account/second/app/confirm", d.confirmApp)
	d.sure("POST /account/second/app/remove", d.removeFactor)
	d.sure("POST /account/second/passkeys", d.addPasskey)
	d.sure("POST /account/second/passkeys/{id}/remove", d.removeFactor)
	d.sure("POST /account/second/recovery", d.newRecoveryCodes)
}

// sure serves a page to those who have just entered their password again.
func (d *dash) sure(pattern string, serve func(http.ResponseWriter, *http.Request, visit) error) {
	d.sureFrom("/account/second", pattern, serve)
}

// sureFrom sends others to the page that asks for it.
func (d *dash) sureFrom(ask, pattern string, serve func(http.ResponseWriter, *http.Request, visit) error) {
	d.member(pattern, func(w http.ResponseWriter, r *http.Request, v visit) error {
		if !d.isSure(r) {
			return seeOther(w, r, ask)
		}
		return serve(w, r, v)
	})
}

func (d *dash) isSure(r *http.Request) bool {
	return within(d.sessions.GetString(r.Context(), keySure), sureTime)
}

// pass lets a user in whose password was right, by a second step if there is one.
func (d *dash) pass(w http.ResponseWriter, r *http.Request, u postern.User, next string) error {
	factors, err := d.p.SecondFactors.Asked(r.Context(), access.Pending{ID: u.ID, Address: d.address(r)})
	if err != nil {
		return err
	}
	if !factors.Any() {
		return d.in(w, r, u, next)
	}
	pending := map[string]string{keyPending: string(u.ID), keyEpoch: strconv.FormatInt(u.Epoch, 10), keySince: now()}
	if err := d.begin(r, pending); err != nil {
		return err
	}
	return seeOther(w, r, "/signin/second?next="+url.QueryEscape(next))
}

// in signs a user in who has proved what there is to prove.
func (d *dash) in(w http.ResponseWriter, r *http.Request, u postern.User, next string) error {
	if err := d.enter(r, u); err != nil {
		return err
	}
	if err := d.p.Users.SignedIn(r.Context(), d.self(r, u.ID)); err != nil {
		return err
	}
	return seeOther(w, r, next)
}

// pending is the user whose password was right in this browser, a short time ago.
func (d *dash) pending(r *http.Request) (u postern.User, ok bool) {
	ctx := r.Context()
	u.ID = postern.UserID(d.sessions.GetString(ctx, keyPending))
	u.Epoch, _ = strconv.ParseInt(d.sessions.GetString(ctx, keyEpoch), 10, 64) // ours
	return u, u.ID != "" && within(d.sessions.GetString(ctx, keySince), secondTime)
}

func (d *dash) showSecond(w http.ResponseWriter, r *http.Request) error {
	return d.askSecond(w, r, http.StatusOK, page.SecondView{Next: local(r.FormValue("next"))})
}

// askSecond asks whose password was right for what else there is.
func (d *dash) askSecond(w http.ResponseWriter, r *http.Request, status int, view page.SecondView) error {
	u, ok := d.pending(r)
	if !ok {
		return seeOther(w, r, "/signin")
	}
	who := access.Pending{ID: u.ID, Address: d.address(r)}
	factors, err := d.p.SecondFactors.Asked(r.Context(), who)
	if err != nil {
		return err
	}
	view.App, view.Recovery = factors.App, factors.Recovery
	if len(factors.Passkeys) > 0 && d.p.SecondFactors.PasskeysOff() == nil {
		if view.Passkey, err = d.ask(r, who); err != nil {
			return err
		}
	}
	return d.show(w, r, status, page.Second(view))
}

// ask begins a ceremony with one of the passkeys, and keeps in the session what was asked.
func (d *dash) ask(r *http.Request, who access.Pending) (options string, err error) {
	c, err := d.p.SecondFactors.BeginUsePasskey(r.Context(), who)
	if err != nil {
		return "", err
	}
	d.sessions.Put(r.Context(), keyCeremony, string(c.State))
	return string(c.Options), nil
}

// askNew is ask for a new passkey.
func (d *dash) askNew(r *http.Request, v visit) (options string, err error) {
	c, err := d.p.SecondFactors.BeginAddPasskey(r.Context(), v.self)
	if err != nil {
		return "", err
	}
	d.sessions.Put(r.Context(), keyCeremony, string(c.State))
	return string(c.Options), nil
}

// second takes the second step: a code, or the answer of a passkey.
func (d *dash) second(w http.ResponseWriter, r *http.Request) error {
	u, ok := d.pending(r)
	if !ok {
		return seeOther(w, r, "/signin")
	}
	who := access.Pending{ID: u.ID, Address: d.address(r)}
	var err error
	if answer := r.PostFormValue("passkey"); answer != "" {
		asked := d.sessions.PopString(r.Context(), keyCeremony) // once
		err = d.p.SecondFactors.UsePasskey(r.Context(), who, []byte(asked), []byte(answer))
	} else {
		err = d.p.SecondFactors.UseCode(r.Context(), who, r.PostFormValue("code"))
	}
	next := local(r.PostFormValue("next"))
	if wrong, ok := faults(err); ok {
		return d.askSecond(w, r, http.StatusUnprocessableEntity, page.SecondView{Next: next, Code: page.Field{Error: wrong["code"]}, Problem: wrong["passkey"]})
	}
	if err != nil {
		return err
	}
	return d.in(w, r, u, next)
}

// factorWords says what a user proves beside the password; "" when it is nothing.
func factorWords(f people.Factors) string {
	var list []string
	if f.App {
		list = append(list, "an authenticator app")
	}
	switch n := len(f.Passkeys); n {
	case 0:
	case 1:
		list = append(list, "a passkey")
	default:
		list = append(list, strconv.Itoa(n)+" passkeys")
	}
	return strings.Join(list, " or ")
}

// enterAgain takes the password of a user who is about to change the factors.
func (d *dash) enterAgain(w http.ResponseWriter, r *http.Request, v visit) error {
	next := cmp.Or(r.PostFormValue("next"), "/account/second")
	err := d.p.SecondFactors.Reenter(r.Context(), v.self, r.PostFormValue("password"))
	if wrong, ok := faults(err); ok {
		return d.askAgain(w, r, v, http.StatusUnprocessableEntity, page.SureView{Next: next, Password: page.Field{Error: wrong["password"]}})
	}
	if err != nil {
		return err
	}
	d.sessions.Put(r.Context(), keySure, now())
	return seeOther(w, r, next)
}

// askAgain asks for the password before the next page.
func (d *dash) askAgain(w http.ResponseWriter, r *http.Request, v visit, status int, view page.SureView) (err error) {
	if view.Again, err = d.again(r, v, view.Next); err != nil {
		return err
	}
	return d.show(w, r, status, page.Sure(d.frame(r, v, "Show that it is you", "/account"), view))
}

func (d *dash) factors(w http.ResponseWriter, r *http.Request, v visit) error {
	if !d.isSure(r) {
		return d.askAgain(w, r, v, http.StatusOK, page.SureView{Next: "/account/second"})
	}
	return d.showFactors(w, r, v, http.StatusOK, page.FactorsView{})
}

func (d *dash) showFactors(w http.ResponseWriter, r *http.Request, v visit, status int, view page.FactorsView) error {
	factors, err := d.p.SecondFactors.List(r.Context(), v.self)
	if err != nil {
		return err
	}
	view.App, view.Recovery = factors.App, factors.Recovery
	for _, k := range factors.Passkeys {
		p := page.Passkey{ID: k.ID, Name: k.Name, Created: k.CreatedAt.Std()}
		if k.UsedAt != 0 {
			p.Used = k.UsedAt.Std()
		}
		view.Passkeys = append(view.Passkeys, p)
	}
	if off := d.p.SecondFactors.PasskeysOff(); off != nil {
		view.Off = word(off.Error()) + "."
	} else if view.Offer, err = d.askNew(r, v); err != nil {
		return err
	}
	return d.show(w, r, status, page.Factors(d.frame(r, v, "Second step", "/account"), view))
}

func (d *dash) beginApp(w http.ResponseWriter, r *http.Request, v visit) error {
	if err := d.p.SecondFactors.BeginApp(r.Context(), v.self); err != nil {
		return err
	}
	return seeOther(w, r, "/account/second/app")
}

func (d *dash) showApp(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showAppAs(w, r, v, http.StatusOK, page.Field{})
}

func (d *dash) showAppAs(w http.ResponseWriter, r *http.Request, v visit, status int, code page.Field) error {
	app, err := d.p.SecondFactors.AppSecret(r.Context(), v.self)
	if err != nil {
		return err
	}
	if app.Text == "" {
		return seeOther(w, r, "/account/second")
	}
	picture, err := qrcode.SVG(app.URI)
	if err != nil {
		return err
	}
	return d.show(w, r, status, page.AppSecret(d.frame(r, v, "Set up an app", "/account"), page.AppView{Picture: string(picture), Secret: app.Text, Code: code}))
}

func (d *dash) confirmApp(w http.ResponseWriter, r *http.Request, v visit) error {
	codes, err := d.p.SecondFactors.ConfirmApp(r.Context(), v.self, r.PostFormValue("code"))
	if wrong, ok := faults(err); ok {
		return d.showAppAs(w, r, v, http.StatusUnprocessableEntity, page.Field{Error: wrong["code"]})
	}
	return d.added(w, r, v, codes, err, "The app is set up. All other browsers are signed out.")
}

func (d *dash) addPasskey(w http.ResponseWriter, r *http.Request, v visit) error {
	asked, name := d.sessions.PopString(r.Context(), keyCeremony), r.PostFormValue("name")
	codes, err := d.p.SecondFactors.AddPasskey(r.Context(), v.self, name, []byte(asked), []byte(r.PostFormValue("passkey")))
	if wrong, ok := faults(err); ok {
		return d.showFactors(w, r, v, http.StatusUnprocessableEntity, page.FactorsView{Name: page.Field{Value: name, Error: wrong["name"]}, Problem: wrong["passkey"]})
	}
	return d.added(w, r, v, codes, err, "The passkey is added. All other browsers are signed out.")
}

// added says what was added, with the recovery codes if there are new ones.
func (d *dash) added(w http.ResponseWriter, r *http.Request, v visit, codes []string, err error, notice string) error {
	switch {
	case err != nil:
		return err
	case len(codes) == 0:
		return d.done(w, r, notice, "/account/second")
	}
	return d.showRecovery(w, r, v, codes, notice)
}

func (d *dash) showRecovery(w http.ResponseWriter, r *http.Request, v visit, codes []string, added string) error {
	return d.show(w, r, http.StatusCreated, page.RecoveryCodes(d.frame(r, v, "Recovery codes", "/account"), page.RecoveryView{Codes: strings.Join(codes, "\n"), Added: added}))
}

func (d *dash) newRecoveryCodes(w http.ResponseWriter, r *http.Request, v visit) error {
	codes, err := d.p.SecondFactors.NewRecoveryCodes(r.Context(), v.self)
	if err != nil {
		return err
	}
	return d.showRecovery(w, r, v, codes, "")
}

// removeFactor removes a passkey, or the app where the path names none.
func (d *dash) removeFactor(w http.ResponseWriter, r *http.Request, v visit) error {
	id := r.PathValue("id")
	if err := d.p.SecondFactors.Remove(r.Context(), v.self, id); err != nil {
		return err
	}
	what := "The passkey is removed."
	if id == "" {
		what = "The app is removed."
	}
	return d.done(w, r, what, "/account/second")
}
