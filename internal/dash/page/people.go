package page

import (
	"net/url"
	"time"
)

// PeopleView is who belongs to a workspace, and who is invited to it.
type PeopleView struct {
	Members     []Person
	Invitations []Invited
	Roles       []Choice // that the person may give
	Email       Field
	Role        string // the value of the chosen one of Roles
	RoleError   string
	Problem     string // what is wrong with the form; "": nothing
	Mail        bool   // invitations go by mail
	Name        Field  // of the workspace
	Zone        Field
}

func (v PeopleView) faults() []fault {
	return faults(fault{"email", v.Email.Error}, fault{"role", v.RoleError}, fault{"name", v.Name.Error},
		fault{"timeZone", v.Zone.Error})
}

// Person is a member of the workspace.
type Person struct {
	ID     string
	Email  string
	Role   string // as a word: "Owner"
	Value  string // the role as one of Roles
	Joined time.Time
	You    bool
	Change bool // the one who looks may change it
	Keys   int  // working API keys that the person created
}

// dialog is the id of the person's dialog: ids hold no spaces.
func (p Person) dialog(verb string) string { return verb + "-" + url.PathEscape(p.ID) }

// leave is how the person's end here is called.
func (p Person) leave() string {
	if p.You {
		return "Leave"
	}
	return "Remove"
}

// where is what goes with leave: whom, or from where.
func (p Person) where() string {
	if p.You {
		return "this workspace"
	}
	return p.Email
}

// they is how the person's dialog names the person.
func (p Person) they() string {
	if p.You {
		return "you"
	}
	return "they"
}

// Invited is an open invitation.
type Invited struct {
	ID      string
	Email   string
	Role    string // as a word
	Inviter string
	Expires time.Time
	Change  bool // the one who looks may revoke it
}

func (i Invited) dialog(verb string) string { return verb + "-" + url.PathEscape(i.ID) }

// InvitationShownView is an invitation that was just made: the one time its link is
// shown.
type InvitationShownView struct {
	Email   string
	Role    string // as a word
	Link    string
	Expires time.Time
}

// AuditView is a page of the audit log, the newest entry first.
type AuditView struct {
	Acts  []Act
	Who   Field    // the email address to filter by
	Kind  string   // the value of the chosen one of Kinds; "": all
	Kinds []Choice // of acts
	More  string   // where the next page is; "": this is the last
}

// Act is a line of the audit log.
type Act struct {
	At      time.Time
	Who     string
	What    string // in plain words
	Subject string // what it was done to
	Address string // "": none is known
}

// JoinView is the page of an invitation. Its Workspace is "" if the link only sets a new
// password.
type JoinView struct {
	Token        string // of the address: the form goes to /join/{token}
	Step         string // "password", "signin", "join" or "other"
	Workspace    string
	Role         string // as a word
	Email        string // whose link it is
	Present      string // who is signed in, in the step "other"
	Password     Field  // its value is never shown
	PasswordHint string // what a password must be, as a sentence
	SignOn       string // the name of the sign-in provider; "": there is none
}

func (v JoinView) title() string {
	if v.Workspace == "" {
		return "Choose a password"
	}
	return "Join " + straight(v.Workspace)
}

func (v JoinView) faults() []fault { return faults(fault{"password", v.Password.Error}) }

// signIn is the sign-in page, which leads back here.
func (v JoinView) signIn() string { return "/signin?next=" + url.QueryEscape(path("join", v.Token)) }
