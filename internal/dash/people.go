package dash

import (
	"net/http"
	"slices"

	"postern/internal/dash/page"
	"postern/internal/people"
	"postern/internal/postern"
)

// entries is the navigation of a member: keys are for developers, people for admins.
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

func (d *dash) people(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showPeople(w, r, v, http.StatusOK, page.PeopleView{Role: string(postern.Viewer)})
}

func (d *dash) showPeople(w http.ResponseWriter, r *http.Request, v visit, status int, view page.PeopleView) error {
	members, err := d.p.Members.List(r.Context(), v.actor, v.workspace())
	if err != nil {
		return err
	}
	invitations, err := d.p.Invitations.List(r.Context(), v.actor, v.workspace())
	if err != nil {
		return err
	}
	mine := v.caller.Member.Role
	for _, m := range members {
		view.Members = append(view.Members, page.Person{
			ID: string(m.UserID), Email: m.Email, Role: word(string(m.Role)), Value: string(m.Role), Joined: m.JoinedAt.Std(), You: m.UserID == v.user(), Change: mine.Invites(m.Role),
		})
	}
	for _, i := range invitations {
		view.Invitations = append(view.Invitations, page.Invited{
			ID: string(i.ID), Email: i.Email, Role: word(string(i.Role)), Inviter: i.Inviter, Expires: i.ExpiresAt.Std(), Change: mine.Invites(i.Role),
		})
	}
	view.Roles, view.Mail = roleChoices(mine), d.mail != nil
	return d.show(w, r, status, page.People(d.frame(r, v, "People", "/people"), view))
}

// roleChoices are the roles that a member may give.
func roleChoices(mine postern.Role) (list []page.Choice) {
	about := map[postern.Role]string{
		postern.Owner: "everything, and makes owners", postern.Admin: "also invites and removes people",
		postern.Developer: "also changes things, and makes API keys", postern.Viewer: "sees devices, messages and webhooks, and changes nothing",
	}
	for _, role := range postern.Roles() {
		if mine.Invites(role) {
			list = append(list, page.Choice{Value: string(role), Label: word(string(role)) + ": " + about[role]})
		}
	}
	return list
}

func (d *dash) invite(w http.ResponseWriter, r *http.Request, v visit) error {
	in := people.NewInvitation{Email: r.PostFormValue("email"), Role: postern.Role(r.PostFormValue("role")), ByMail: d.mail != nil}
	i, token, err := d.p.Invitations.Create(r.Context(), v.actor, v.workspace(), in)
	if err == nil && in.ByMail {
		err = d.mailInvitation(r, v, i, token)
	}
	if wrong, ok := faults(err); ok {
		return d.showPeople(w, r, v, http.StatusUnprocessableEntity, page.PeopleView{
			Email: page.Field{Value: in.Email, Error: wrong["email"]}, Role: string(in.Role), RoleError: wrong["role"], Problem: "Nobody was invited.",
		})
	}
	if err != nil {
		return err
	}
	if in.ByMail {
		return d.done(w, r, "The invitation is on its way to "+i.Email+".", "/people")
	}
	return d.show(w, r, http.StatusCreated, page.InvitationShown(d.frame(r, v, "The invitation is made", "/people"), page.InvitationShownView{
		Email: i.Email, Role: word(string(i.Role)), Link: d.joinLink(token), Expires: i.ExpiresAt.Std(),
	}))
}

func (d *dash) revokeInvitation(w http.ResponseWriter, r *http.Request, v visit) error {
	if err := d.p.Invitations.Revoke(r.Context(), v.actor, v.workspace(), postern.InvitationID(r.PathValue("id"))); err != nil {
		return err
	}
	return d.done(w, r, "The invitation is revoked. Its link lets nobody in.", "/people")
}

func (d *dash) changeRole(w http.ResponseWriter, r *http.Request, v visit) error {
	id := postern.UserID(r.PathValue("id"))
	err := d.p.Members.ChangeRole(r.Context(), v.actor, v.workspace(), id, postern.Role(r.PostFormValue("role")))
	return d.changed(w, r, v, id, err, "The role is changed.")
}

func (d *dash) removeMember(w http.ResponseWriter, r *http.Request, v visit) error {
	id := postern.UserID(r.PathValue("id"))
	err := d.p.Members.Remove(r.Context(), v.actor, v.workspace(), id)
	return d.changed(w, r, v, id, err, "They do not belong to this workspace any longer.")
}

// changed follows a change of a member. Who has changed the own role may not be
// allowed to see the people any more.
func (d *dash) changed(w http.ResponseWriter, r *http.Request, v visit, id postern.UserID, err error, notice string) error {
	if wrong, ok := faults(err); ok {
		return d.showPeople(w, r, v, http.StatusUnprocessableEntity, page.PeopleView{Role: string(postern.Viewer), Problem: wrong["role"]})
	}
	if err != nil {
		return err
	}
	if id == v.user() {
		return d.done(w, r, "Your place in the workspace is changed.", "/")
	}
	return d.done(w, r, notice, "/people")
}
