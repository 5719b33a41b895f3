package gateway

import (
	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"
)

// act is what the audit log keeps of an actor's act.
func act(by access.Actor, at postern.Time, ws postern.WorkspaceID, act, subject string) store.Act {
	return store.Act{At: at, WorkspaceID: ws, UserID: by.Member.UserID, Act: act, Subject: subject, Address: by.Address}
}

// actOn is what the audit log keeps of an operator's act on a workspace; what says
// to what it was changed.
func actOn(by access.Actor, at postern.Time, ws postern.WorkspaceID, name, what string) store.Act {
	o := act(by, at, ws, name, string(ws))
	o.Name = what
	return o
}

// did is what the audit log keeps of what a caller does: of a member everything
// that needs a role, of a key nothing. The name is that of the subject: it may be
// gone when the log is read.
func did(c access.Caller, at postern.Time, name, subject, subjectName string) []store.Act {
	if c.Member.UserID == "" {
		return nil
	}
	a := act(access.Actor{Member: c.Member, Address: c.Address}, at, c.Workspace(), name, subject)
	a.Name = subjectName
	return []store.Act{a}
}

// rule is a rule of package access, for the store to check in a transaction.
func rule(r access.Rule) store.Rule {
	return func(s store.Standing) error { return r(access.Standing(s)) }
}
