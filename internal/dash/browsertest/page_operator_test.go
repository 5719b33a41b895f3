package browsertest

import . "postern/internal/dash/page"

// hostileOperators are the pages of operators, with s wherever a text can be.
func hostileOperators(f Frame, s string) []sample {
	return []sample{
		{"Operator", Operator(f, full[OperatorView](s))},
		{"Operator none", Operator(f, OperatorView{})},
		{"UsedWorkspaces", UsedWorkspaces(f, full[UsedWorkspacesView](s))},
		{"UsedWorkspaces none", UsedWorkspaces(f, UsedWorkspacesView{Search: s, More: s})},
		{"NewWorkspace", NewWorkspace(f, full[NewWorkspaceView](s))},
		{"OneWorkspace", OneWorkspace(f, workspaceOf(s))},
		{"OneWorkspace none", OneWorkspace(f, WorkspaceView{ID: s, Name: s, Others: s})},
		{"Confirm", Confirm(f, full[ConfirmView](s))},
		{"Accounts", Accounts(f, full[AccountsView](s))},
		{"Accounts none", Accounts(f, AccountsView{Search: s, More: s})},
		{"NewPassword", NewPassword(f, full[NewPasswordView](s))},
		{"LinkShown", LinkShown(f, full[LinkShownView](s))},
	}
}

// workspaceOf has the names and labels of its fields from us: they are no data.
func workspaceOf(s string) WorkspaceView {
	v := full[WorkspaceView](s)
	for i := range v.Limits {
		v.Limits[i].Name, v.Limits[i].Label = []string{"messages", "devices"}[i], "Figure"
	}
	return v
}
