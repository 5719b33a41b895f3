package dash

import (
	"net/http"
	"strings"
	"time"

	"postern/internal/dash/page"
	"postern/internal/postern"
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
		{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS", "macOS"},
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
	if err := d.enter(w, r, u, now()); err != nil { // all login sessions have ended, this one included
		return err
	}
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
		return signIns{d.core}.signOut(w, r)
	}
	if err := d.p.SignIns.EndOthers(r.Context(), v.self); err != nil {
		return err
	}
	return d.done(w, r, "All other browsers were signed out.", "/account")
}
