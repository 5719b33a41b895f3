package dash

import (
	"net/http"

	"postern/internal/dash/page"
	"postern/internal/people"
	"postern/internal/postern"
)

// showJoin shows what a link at /join opens.
func (d *dash) showJoin(w http.ResponseWriter, r *http.Request) error {
	l, err := d.p.Invitations.Get(r.Context(), r.PathValue("token"))
	if err != nil {
		return err
	}
	return d.showJoinAs(w, r, l)
}

func (d *dash) showJoinAs(w http.ResponseWriter, r *http.Request, l people.JoinLink) error {
	present, err := d.present(r)
	if err != nil {
		return err
	}
	view, status := d.joinView(r, l), http.StatusOK
	switch {
	case present != "" && present != l.Email:
		view.Step, view.Present, status = "other", present, http.StatusForbidden
	case l.ChoosesPassword():
		view.Step = "password"
	case present == "":
		view.Step = "signin"
	default:
		view.Step = "join"
	}
	return d.show(w, r, status, page.Join(view))
}

func (d *dash) joinView(r *http.Request, l people.JoinLink) page.JoinView {
	v := page.JoinView{
		Token: r.PathValue("token"), Workspace: l.Invitation.Workspace, Role: word(string(l.Invitation.Role)), Email: l.Email, PasswordHint: passwordHint,
	}
	if !l.Known { // an account that is there joins by signing in
		v.SignOn = d.signOnName()
	}
	return v
}

// present is the e-mail address of who is signed in; "" when nobody is.
func (d *dash) present(r *http.Request) (string, error) {
	id := postern.UserID(d.sessions.GetString(r.Context(), keyUser))
	if id == "" {
		return "", nil
	}
	return d.p.Users.Email(r.Context(), d.self(r, id))
}

// join uses a link: by the account that is signed in, or with a password for the
// link's address. Of the form only the password counts; the rest is the link's.
func (d *dash) join(w http.ResponseWriter, r *http.Request) error {
	token := r.PathValue("token")
	l, err := d.p.Invitations.Get(r.Context(), token)
	if err != nil {
		return err
	}
	present, err := d.present(r)
	if err != nil {
		return err
	}
	if present != "" && present != l.Email || present == "" && !l.ChoosesPassword() {
		return d.showJoinAs(w, r, l)
	}
	if !l.ChoosesPassword() {
		user := postern.UserID(d.sessions.GetString(r.Context(), keyUser))
		ws, err := d.p.Invitations.JoinAs(r.Context(), d.self(r, user), token)
		if err != nil {
			return err
		}
		return d.joined(w, r, ws)
	}
	u, ws, err := d.p.Invitations.Join(r.Context(), token, d.address(r), r.PostFormValue("password"))
	if wrong, ok := faults(err); ok {
		view := d.joinView(r, l)
		view.Step, view.Password = "password", page.Field{Error: wrong["password"]}
		return d.show(w, r, http.StatusUnprocessableEntity, page.Join(view))
	}
	if err != nil {
		return err
	}
	if ws == "" { // a new password for an account that was there
		return d.pass(w, r, u, "/")
	}
	if err := d.enter(r, u); err != nil {
		return err
	}
	return d.joined(w, r, ws)
}

// joined shows the workspace that somebody has joined.
func (d *dash) joined(w http.ResponseWriter, r *http.Request, ws postern.WorkspaceID) error {
	d.sessions.Put(r.Context(), keyWorkspace, string(ws))
	return d.done(w, r, "Welcome: you belong to this workspace now.", "/")
}
