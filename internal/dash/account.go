package dash

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"postern/internal/dash/page"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/qrcode"
)

func (d account) show(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showAs(w, r, v, http.StatusOK, page.AccountView{})
}

func (d account) showAs(w http.ResponseWriter, r *http.Request, v visit, status int, view page.AccountView) error {
	list, err := d.p.SignIns.List(r.Context(), v.self)
	if err != nil {
		return err
	}
	mine := d.tokenHash(r)
	for _, s := range list {
		data, err := decode(s.Data)
		if err != nil {
			return err
		}
		seen, _ := time.Parse(time.RFC3339, data.Values[keySeen]) // written by us; the zero time is shown as unknown
		view.Sessions = append(view.Sessions, page.Session{
			Browser: browser(data.Values[keyBrowser]), Address: data.Values[keyAddress], LastSeen: seen,
			Current: s.TokenHash == mine,
		})
	}
	acts, err := d.p.Audit.ListOwn(r.Context(), v.self)
	if err != nil {
		return err
	}
	view.Acts = actsOf(acts)
	factors, err := d.p.SecondFactors.List(r.Context(), v.self)
	if err != nil {
		return err
	}
	identities, err := d.p.Identities.List(r.Context(), v.self)
	if err != nil {
		return err
	}
	if view.Again, err = d.again(r, v, "/account"); err != nil {
		return err
	}
	view.Second, view.PasswordHint = factorWords(factors), passwordHint
	view.SignOn, view.Connected = d.signOnName(), len(identities)
	return d.write(w, r, status, page.Account(d.frame(r, v, "Account", "/account"), view))
}

// browser names a browser and its system by the User-Agent, well enough for people to recognize
// their own.
func browser(agent string) string {
	name, system := "A program", ""
	for _, b := range [][2]string{
		{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"},
	} {
		if strings.Contains(agent, b[0]) {
			name = b[1]
			break
		}
	}
	for _, s := range [][2]string{
		{"Android", "Android"},
		{"iPhone", "iPhone"},
		{"iPad", "iPad"},
		{"Windows", "Windows"},
		{"Mac OS", "macOS"},
		{"Linux", "Linux"},
	} {
		if strings.Contains(agent, s[0]) {
			system = " on " + s[1]
			break
		}
	}
	return name + system
}

func (d account) changePassword(w http.ResponseWriter, r *http.Request, v visit) error {
	u, err := d.setPassword(r, v)
	if wrong, ok := faults(err); ok {
		return d.showAs(w, r, v, http.StatusUnprocessableEntity, page.AccountView{
			Current: page.Field{Error: wrong["current"]}, Password: page.Field{Error: wrong["password"]},
			Problem: "The password was not changed.",
		})
	}
	if err != nil {
		return err
	}
	current := d.sessions.GetString(r.Context(), keyWorkspace)
	if err := d.enter(w, r, u, now()); err != nil { // all login sessions have ended, this one included
		return err
	}
	d.sessions.Put(r.Context(), keyWorkspace, current)
	d.tell(r, u.ID, newPassword())
	return d.done(w, r, "The password was changed. All other browsers were signed out.", "/account")
}

// setPassword requires the current password, or a recent sign-in from a person who has no
// password.
func (d account) setPassword(r *http.Request, v visit) (postern.User, error) {
	has, err := d.p.Users.HasPassword(r.Context(), v.self)
	if err != nil {
		return postern.User{}, err
	}
	if !has && v.caller.Sure {
		return d.p.Users.ChoosePassword(r.Context(), v.self, r.PostFormValue("password"))
	}
	return d.p.Users.ChangePassword(r.Context(), v.self, r.PostFormValue("current"), r.PostFormValue("password"))
}

func (d account) endSessions(w http.ResponseWriter, r *http.Request, v visit) error {
	if r.PostFormValue("end") != "others" {
		if err := d.p.SignIns.EndAll(r.Context(), v.self); err != nil {
			return err
		}
		return signIns(d).signOut(w, r)
	}
	if err := d.p.SignIns.EndOthers(r.Context(), v.self); err != nil {
		return err
	}
	return d.done(w, r, "All other browsers were signed out.", "/account")
}

// factorWords names the user's second factors. It returns "" for a user without any.
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

// enterAgain checks the password of a user who wants to change factors.
func (d factors) enterAgain(w http.ResponseWriter, r *http.Request, v visit) error {
	next := cmp.Or(r.PostFormValue("next"), "/account/second")
	err := d.p.SecondFactors.Reenter(r.Context(), v.self, r.PostFormValue("password"))
	if wrong, ok := faults(err); ok {
		return d.askAgain(w, r, v, http.StatusUnprocessableEntity, page.SureView{
			Next: next, Password: page.Field{Error: wrong["password"]},
		})
	}
	if err != nil {
		return err
	}
	d.sessions.Put(r.Context(), keySure, now())
	return seeOther(w, r, next)
}

func (d factors) show(w http.ResponseWriter, r *http.Request, v visit) error {
	if !d.isSure(r) {
		return d.askAgain(w, r, v, http.StatusOK, page.SureView{Next: "/account/second"})
	}
	return d.showAs(w, r, v, http.StatusOK, page.FactorsView{})
}

func (d factors) showAs(w http.ResponseWriter, r *http.Request, v visit, status int, view page.FactorsView) error {
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
	return d.write(w, r, status, page.Factors(d.frame(r, v, "Two-step authentication", "/account"), view))
}

func (d factors) beginApp(w http.ResponseWriter, r *http.Request, v visit) error {
	if err := d.p.SecondFactors.BeginApp(r.Context(), v.self); err != nil {
		return err
	}
	return seeOther(w, r, "/account/second/app")
}

func (d factors) showApp(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showAppAs(w, r, v, http.StatusOK, page.Field{})
}

func (d factors) showAppAs(w http.ResponseWriter, r *http.Request, v visit, status int, code page.Field) error {
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
	return d.write(
		w, r, status,
		page.AppSecret(d.frame(r, v, "Set up an authenticator app", "/account"), page.AppView{
			Picture: string(picture), Secret: app.Text, Code: code,
		}),
	)
}

func (d factors) confirmApp(w http.ResponseWriter, r *http.Request, v visit) error {
	codes, err := d.p.SecondFactors.ConfirmApp(r.Context(), v.self, r.PostFormValue("code"))
	if wrong, ok := faults(err); ok {
		return d.showAppAs(w, r, v, http.StatusUnprocessableEntity, page.Field{Error: wrong["code"]})
	}
	if err == nil {
		d.tell(r, v.user(), addedMethod("an authenticator app"))
	}
	return d.added(w, r, v, codes, err, "The authenticator app was set up. All other browsers were signed out.")
}

func (d factors) addPasskey(w http.ResponseWriter, r *http.Request, v visit) error {
	asked, name := d.sessions.PopString(r.Context(), keyCeremony), r.PostFormValue("name")
	codes, err := d.p.SecondFactors.AddPasskey(
		r.Context(), v.self, name, []byte(asked), []byte(r.PostFormValue("passkey")),
	)
	if wrong, ok := faults(err); ok {
		return d.showAs(w, r, v, http.StatusUnprocessableEntity, page.FactorsView{
			Name: page.Field{Value: name, Error: wrong["name"]}, Problem: wrong["passkey"],
		})
	}
	if err == nil {
		d.tell(r, v.user(), addedMethod("a passkey"))
	}
	return d.added(w, r, v, codes, err, "The passkey was added. All other browsers were signed out.")
}

// added reports what was added and shows new recovery codes, if any.
func (d factors) added(
	w http.ResponseWriter, r *http.Request, v visit, codes []string, err error, notice string,
) error {
	switch {
	case err != nil:
		return err
	case len(codes) == 0:
		return d.done(w, r, notice, "/account/second")
	}
	return d.showRecovery(w, r, v, codes, notice)
}

func (d factors) showRecovery(w http.ResponseWriter, r *http.Request, v visit, codes []string, added string) error {
	return d.write(
		w, r, http.StatusCreated,
		page.RecoveryCodes(d.frame(r, v, "Recovery codes", "/account"), page.RecoveryView{
			Codes: strings.Join(codes, "\n"), Added: added,
		}),
	)
}

func (d factors) newRecoveryCodes(w http.ResponseWriter, r *http.Request, v visit) error {
	codes, err := d.p.SecondFactors.NewRecoveryCodes(r.Context(), v.self)
	if err != nil {
		return err
	}
	d.tell(r, v.user(), newRecoveryCodes())
	return d.showRecovery(w, r, v, codes, "")
}

// remove removes the passkey in the path, or the app if the path has none.
func (d factors) remove(w http.ResponseWriter, r *http.Request, v visit) error {
	id := r.PathValue("id")
	if err := d.p.SecondFactors.Remove(r.Context(), v.self, id); err != nil {
		return err
	}
	what, method := "The passkey was removed.", "A passkey"
	if id == "" {
		what, method = "The authenticator app was removed.", "An authenticator app"
	}
	d.tell(r, v.user(), removedMethod(method))
	return d.done(w, r, what, "/account/second")
}
