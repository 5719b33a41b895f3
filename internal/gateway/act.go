package gateway

import (
	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"
)

// act is the audit log's entry for something that an actor did.
func act(by access.Actor, at postern.Time, ws postern.WorkspaceID, act, subject string) store.Act {
	return store.Act{At: at, WorkspaceID: ws, UserID: by.Member.UserID, Act: act, Subject: subject, Address: by.Address}
}

// actOn is the audit log's entry for an operator's change of a workspace; what is the
// value that it was changed to.
func actOn(by access.Actor, at postern.Time, ws postern.WorkspaceID, name, what string) store.Act {
	o := act(by, at, ws, name, string(ws))
	o.Name = what
	return o
}

// did is the audit log's entry for something that a caller did. The acts of members and of
// the operator are recorded; those of an API key are not. The subject's name is stored too,
// because the subject may be gone when the log is read.
func did(c access.Caller, at postern.Time, name, subject, subjectName string) []store.Act {
	if c.Key.ID != "" {
		return nil
	}
	return didByAny(c, at, name, subject, subjectName)
}

// didByAny is did for an act that is recorded of API keys too: it decides where events are
// sent.
func didByAny(c access.Caller, at postern.Time, name, subject, subjectName string) []store.Act {
	a := act(c.Actor(), at, c.Workspace(), name, subject)
	a.Name, a.KeyID = subjectName, c.Key.ID
	return []store.Act{a}
}
