package page

// WorkspacesView is a page of the workspaces that a person belongs to.
type WorkspacesView struct {
	Workspaces []Workspace
	More       string // where the next page is; "": this is the last
	Stopped    string // the name of one that cannot be shown; "": the person just looks
}

func (v WorkspacesView) title() string {
	if v.Stopped != "" {
		return "This workspace is unavailable"
	}
	return "Your workspaces"
}
