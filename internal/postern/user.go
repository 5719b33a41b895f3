package postern

import "slices"

// User is a person who signs in to the dashboard.
type User struct {
	ID        UserID `json:"id"`
	Email     string `json:"email"` // in lower case
	CreatedAt Time   `json:"createdAt"`
	Operator  bool   `json:"-"` // may see all workspaces and change their plans
	Epoch     int64  `json:"-"` // increases when all sign-ins end; earlier checks are void then
}

// Role is what a user may do in a workspace.
type Role string

// The roles. Each may do everything that the following ones may do.
const (
	Owner     Role = "owner"     // also appoints owners
	Admin     Role = "admin"     // also invites and removes users
	Developer Role = "developer" // changes what the API can change, and manages its keys
	Agent     Role = "agent"     // also sends, edits and deletes messages, and changes chats
	Viewer    Role = "viewer"    // reads
)

// Roles lists the roles, the most powerful first.
func Roles() []Role { return []Role{Owner, Admin, Developer, Agent, Viewer} }

// Covers reports whether a role may do everything that the other may do. An unknown role
// covers nothing.
func (r Role) Covers(other Role) bool {
	mine, others := slices.Index(Roles(), r), slices.Index(Roles(), other)
	return mine >= 0 && others >= mine
}

// Invites reports whether a role may give another role to someone.
func (r Role) Invites(other Role) bool { return r.Covers(Admin) && r.Covers(other) }

// Standing is what a [Rule] decides by: the roles of the people involved in a change of a
// workspace's members, as they are in the transaction of the change.
type Standing struct {
	By     Role // of the user who makes the change; "" for a user who is no member
	Of     Role // of the user whom it concerns; "" for a user who is no member
	Owners int  // number of owners of the workspace

	Operator bool // the user who makes the change is an operator
}

// Rule returns an error when a change is not allowed, nil otherwise.
type Rule func(Standing) error

// Scopes lists the API key scopes that the role has.
func (r Role) Scopes() []Scope {
	switch {
	case r.Covers(Developer):
		return Scopes()
	case r.Covers(Agent):
		return append(Viewer.Scopes(), MessagesWrite)
	case r.Covers(Viewer):
		return []Scope{DevicesRead, MessagesRead, ContactsRead, WebhooksRead, EventsRead, UsageRead}
	}
	return nil
}

// Member is a user in a workspace.
type Member struct {
	UserID      UserID      `json:"userId"`
	Email       string      `json:"email"`
	WorkspaceID WorkspaceID `json:"workspaceId"`
	Workspace   string      `json:"workspace"` // its name
	TimeZone    string      `json:"-"`         // of the workspace; see [CheckTimeZone]
	Role        Role        `json:"role"`
	JoinedAt    Time        `json:"joinedAt"`
	Operator    bool        `json:"-"` // as a user
}

// Invitation lets the person with an email address join a workspace, once.
type Invitation struct {
	ID          InvitationID
	WorkspaceID WorkspaceID
	Workspace   string // its name
	Email       string // in lower case
	Role        Role
	InvitedBy   UserID
	Inviter     string // the email address of InvitedBy
	CreatedAt   Time
	ExpiresAt   Time
}
