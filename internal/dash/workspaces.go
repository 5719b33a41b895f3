package dash

import (
	"net/http"
	"net/url"

	"postern/internal/dash/page"
	"postern/internal/paging"
	"postern/internal/postern"
)

// workspaceRoutes need no workspace that can be shown: they lead to another one.
func (d *dash) workspaceRoutes() {
	d.signedIn("GET /workspaces", d.workspaces)
	d.signedIn("POST /workspace", d.switchWorkspace)
	d.operatorRoutes()
}

func (d *dash) workspaces(w http.ResponseWriter, r *http.Request, user postern.UserID) error {
	return d.showWorkspaces(w, r, user, http.StatusOK, page.WorkspacesView{})
}

func (d *dash) showWorkspaces(w http.ResponseWriter, r *http.Request, user postern.UserID, status int, view page.WorkspacesView) error {
	list, err := d.p.Members.AllMemberships(r.Context(), d.self(r, user), paging.Page{Cursor: r.URL.Query().Get("after")})
	if err != nil {
		return err
	}
	for _, m := range list.Data {
		view.Workspaces = append(view.Workspaces, page.Workspace{ID: string(m.WorkspaceID), Name: m.Workspace})
	}
	if list.Next != "" {
		view.More = "/workspaces?after=" + url.QueryEscape(list.Next)
	}
	return d.show(w, r, status, page.Workspaces(view))
}

// showStopped says that the workspace of a visit cannot be shown, and leads to the
// others.
func (d *dash) showStopped(w http.ResponseWriter, r *http.Request, v visit) error {
	r.URL.RawQuery = "" // a cursor in it is that of another list
	return d.showWorkspaces(w, r, v.user(), http.StatusForbidden, page.WorkspacesView{Stopped: v.caller.Member.Workspace})
}

func (d *dash) switchWorkspace(w http.ResponseWriter, r *http.Request, _ postern.UserID) error {
	d.sessions.Put(r.Context(), keyWorkspace, r.PostFormValue("workspace")) // visit takes it when it is the user's
	return seeOther(w, r, "/")
}
