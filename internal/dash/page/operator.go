package page

import "time"

// OperatorView is how the whole server is doing.
type OperatorView struct {
	Live    string // where the figures are asked for again; "": never
	Server  []Tile
	Queues  []Tile
	Devices []DeviceCount
	Charts  []Chart
}

// DeviceCount is how many devices are in a state.
type DeviceCount struct {
	Status string // as the API says it
	Number string
}

// UsedWorkspacesView is a page of the workspaces of the server.
type UsedWorkspacesView struct {
	Search     string // what they have in their name, or as their id; "": all
	Workspaces []UsedWorkspace
	More       string // where the next page is; "": this is the last
}

// UsedWorkspace is a workspace with what it uses of its plan.
type UsedWorkspace struct {
	ID, Name string
	Plan     string // as a word
	Messages string // "12 of 30,000"
	Devices  string
	Members  string
	Created  time.Time
}

// NewWorkspaceView is the form that makes a workspace.
type NewWorkspaceView struct {
	Name      Field
	Owner     Field // the email address to invite
	Plans     []Choice
	Plan      string // the value of the chosen one of Plans
	PlanError string
	Problem   string // what is wrong with the form; "": nothing
}

func (v NewWorkspaceView) faults() []fault {
	return faults(fault{"name", v.Name.Error}, fault{"plan", v.PlanError}, fault{"owner", v.Owner.Error})
}

// WorkspaceView is a workspace as operators see it: nothing of what it sends.
type WorkspaceView struct {
	ID, Name  string
	Created   time.Time
	Meters    []Meter
	Plans     []Choice
	Plan      string // the value of the chosen one of Plans
	PlanError string
	Limits    []LimitField
	Seen      string // what the form of the limits is filled with
	Problem   string // why a change was not made; "" if a field says that, or nothing went wrong
	Members   []Belongs
	Others    string // how many more members there are, as words; "": none
	Devices   []DeviceState
	More      string // where the next page of devices is; "": this is the last
	Acts      []Act
	Older     string // where older acts are; "": there are none
}

// LimitField is a figure that a workspace may have of its own. Its name and label are
// never somebody's text.
type LimitField struct {
	Name, Label, Hint string
	Field             Field
}

// Belongs is a member of a workspace.
type Belongs struct {
	Email  string
	Role   string // as a word
	Joined time.Time
}

// DeviceState is a device, and how it is.
type DeviceState struct {
	Name   string
	Status string // as in the API
	Reason string // why, as a sentence; "": nothing to say
}

func (v WorkspaceView) faults() []fault {
	list := []fault{{"plan", v.PlanError}}
	for _, f := range v.Limits {
		list = append(list, fault{f.Name, f.Field.Error})
	}
	return faults(list...)
}

// ConfirmView asks before devices or webhooks of a workspace are paused.
type ConfirmView struct {
	ID, Name string
	Action   string   // "plan" or "limits": the last part of where the form goes
	Change   string   // what is about to change, as a sentence
	Effects  []string // what follows, as sentences
	Devices  []string // the names of those that are paused
	Others   string   // how many more there are, as words; "": none
	Values   []Choice // of the form, to be sent again; Label is the name
}

// AccountsView is a page of the users of the server.
type AccountsView struct {
	Search   string // what they have in their address; "": all
	Accounts []UserAccount
	More     string // where the next page is; "": this is the last
}

// UserAccount is a user as operators see one.
type UserAccount struct {
	ID, Email  string
	Operator   bool
	Password   bool   // one is chosen
	Second     bool   // has a second step
	Workspaces string // the names of some, and how many more there are
	SignedIn   time.Time
	You        bool
}

// NewPasswordView is the form before a link for a new password is made.
type NewPasswordView struct {
	ID, Email string
	Second    bool // the user has a second step
	Again     Again
	Password  Field
}

// LinkShownView is a link that was just made: the one time it is shown.
type LinkShownView struct {
	Title string
	Email string // whom it is for
	Text  string // what it is good for
	Link  string
	Back  string // where to continue
}

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
