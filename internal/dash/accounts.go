package dash

import (
	"net/http"
	"net/url"
	"strings"

	"postern/internal/dash/page"
	"postern/internal/paging"
	"postern/internal/people"
	"postern/internal/postern"
)

func userIn(r *http.Request) postern.UserID { return postern.UserID(r.PathValue("id")) }

// accounts lists the users of the server.
func (d *dash) accounts(w http.ResponseWriter, r *http.Request, v visit) error {
	search := r.FormValue("q")
	list, err := d.p.Operators.Users(r.Context(), v.actor, search, paging.Page{Cursor: r.FormValue("after")})
	if err != nil {
		return err
	}
	view := page.AccountsView{Search: search}
	for _, u := range list.Data {
		view.Accounts = append(view.Accounts, page.UserAccount{
			ID: string(u.ID), Email: u.Email, Operator: u.Operator, Password: u.Chosen, Second: u.Second, SignedIn: timeOf(u.SignedIn), Workspaces: belongsWords(u), You: u.ID == v.user(),
		})
	}
	if list.Next != "" {
		view.More = "/operator/people?" + url.Values{"q": {search}, "after": {list.Next}}.Encode()
	}
	return d.show(w, r, http.StatusOK, page.Accounts(d.frame(r, v, "Users", "/operator"), view))
}

func belongsWords(u people.Person) string {
	words := strings.Join(u.Names, ", ")
	switch more := u.Workspaces - len(u.Names); {
	case u.Workspaces == 0:
		return "None"
	case more > 0:
		words += ", and " + number(more) + " more"
	}
	return words
}

func (d *dash) askPasswordLink(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showPasswordLink(w, r, v, http.StatusOK, "")
}

func (d *dash) showPasswordLink(w http.ResponseWriter, r *http.Request, v visit, status int, wrong string) error {
	u, factors, err := d.p.Operators.User(r.Context(), v.actor, userIn(r))
	if err != nil {
		return err
	}
	view := page.NewPasswordView{ID: string(userIn(r)), Email: u.Email, Second: factors.Any(), Password: page.Field{Error: wrong}}
	return d.show(w, r, status, page.NewPassword(d.frame(r, v, "A new password", "/operator"), view))
}

// passwordLink makes a link for somebody's new password, and shows it once.
func (d *dash) passwordLink(w http.ResponseWriter, r *http.Request, v visit) error {
	u, token, err := d.p.PasswordLinks.ResetByPassword(r.Context(), v.actor, userIn(r), r.PostForm.Has("alone"), r.PostFormValue("password"))
	if wrong, ok := faults(err); ok {
		return d.showPasswordLink(w, r, v, http.StatusUnprocessableEntity, wrong["password"])
	}
	if err != nil {
		return err
	}
	return d.show(w, r, http.StatusCreated, page.LinkShown(d.frame(r, v, "The link is made", "/operator"), page.LinkShownView{
		Title: "The link is made", Email: u.Email, Link: d.joinLink(token), Back: "/operator/people",
		Text: "Copy the link and send it to this person, and nobody else: whoever uses it first gets into the account. It works once, for 72 hours, and is shown this once.",
	}))
}
