package access

import (
	"postern/internal/postern"
)

// Actor is a person who does what no API key may do: a member of a workspace in
// the dashboard, or an operator. The zero Actor may do nothing.
type Actor struct {
	Member  postern.Member
	Address string // of the browser
	Sure    bool   // the member has just signed in again at the identity provider, or entered the password
	Recent  bool   // the member has entered the password, or signed in at the provider, in the last minutes

	operator bool
}

// Operator is the actor behind the server's own socket. It may do everything, and
// has no user id.
func Operator() Actor { return Actor{operator: true} }

// AsOperator is the actor for a user with the operator flag. The caller has checked
// the flag; rules that are checked in the transaction of a change check it again.
func AsOperator(u postern.User, address string) Actor {
	m := postern.Member{UserID: u.ID, Email: u.Email, Operator: true}
	return Actor{Member: m, Address: address, operator: true}
}

// NoPage is the refusal for everybody who is not an operator: to them the pages of
// operators do not exist.
func NoPage() error { return errNoPage }

var errNoPage = postern.Errorf(postern.NotFound, "there is no such page")

// NeedsOperator refuses every actor who is not an operator, with [NoPage].
func (a Actor) NeedsOperator() error {
	if !a.operator {
		return errNoPage
	}
	return nil
}

// Needs checks that the actor has at least a role in a workspace. To people outside
// the workspace it does not exist.
func (a Actor) Needs(ws postern.WorkspaceID, role postern.Role) error {
	switch {
	case a.operator:
		return nil
	case a.Member.UserID == "" || a.Member.WorkspaceID != ws:
		return postern.Errorf(postern.NotFound, "there is no such workspace")
	case !a.Member.Role.Covers(role):
		return postern.Errorf(postern.MissingScope,
			"your role in this workspace, %s, does not allow this; ask an admin", a.Member.Role)
	}
	return nil
}

// NeedsRecent refuses a member whose password was entered too long ago for what would
// outlive the login session, such as a new API key. The server's own socket has no password.
func (a Actor) NeedsRecent() error {
	if a.Member.UserID == "" || a.Recent {
		return nil
	}
	return postern.Invalid("/password", "enter your password to confirm that it is you")
}

// Holds is the rule for a change that needs a role. It is checked in the transaction
// of the change, so that a role that was taken away a moment ago no longer counts.
func (a Actor) Holds(role postern.Role) postern.Rule {
	return func(s postern.Standing) error {
		if a.isStillOperator(s) || s.By.Covers(role) {
			return nil
		}
		return postern.Errorf(
			postern.MissingScope, "you no longer have the role %s in this workspace; ask an admin", role,
		)
	}
}

// Gives is the rule for giving somebody a role; "" takes the role away. Nobody gives
// more than their own role or changes somebody with a higher one, and a workspace
// keeps at least one owner. Like [Actor.Holds] it is checked in the transaction.
func (a Actor) Gives(role postern.Role) postern.Rule {
	return func(s postern.Standing) error {
		switch {
		case a.isStillOperator(s):
		case !s.By.Covers(postern.Admin):
			return postern.Errorf(postern.MissingScope, "only admins and owners can change the members of a workspace")
		case s.Of != "" && !s.By.Invites(s.Of), role != "" && !s.By.Invites(role):
			return postern.Errorf(
				postern.MissingScope, "your role in this workspace, %s, does not reach that far; ask an owner", s.By,
			)
		}
		if s.Of == postern.Owner && role != postern.Owner && s.Owners == 1 {
			return postern.Invalid("/role", "a workspace needs at least one owner; make someone else an owner first")
		}
		return nil
	}
}

// isStillOperator tells, in a transaction, whether the operator flag is still set.
// The server's own socket has no user and needs no flag.
func (a Actor) isStillOperator(s postern.Standing) bool {
	return a.operator && (a.Member.UserID == "" || s.Operator)
}

// NeedsSocket refuses everybody but the operator at the server's own socket. Someone
// who takes over the account of an operator must not make others.
func (a Actor) NeedsSocket() error {
	if !a.operator || a.Member.UserID != "" {
		return errNoPage
	}
	return nil
}
