package page

import (
	"cmp"
	"time"
)

// ContactsView is the people whom the devices of a workspace know.
type ContactsView struct {
	Find     Field // a number or a LID
	Device   string
	Devices  []Choice
	Contacts []Contact
	More     string // where the next page is; "": this is the last
}

func (v ContactsView) empty() bool { return v.Find == Field{} && v.Device == "" && v.More == "" }

// Contact is a person.
type Contact struct {
	Name     string // "": unknown
	Number   string // "": hidden by the network
	Chat     string
	Business bool     // the network has verified the name of the business
	Devices  []Choice // the devices that know the person
	Since    time.Time
}

// title is what a contact is called in a list.
func (c Contact) title() string { return cmp.Or(c.Name, c.Number, c.Chat) }

// GroupsView is the groups that a device is in.
type GroupsView struct {
	Device  string
	Devices []Choice
	Groups  []Group
	More    string // where the next page is; "": this is the last
}

// Group is one, without its members.
type Group struct {
	Chat         string
	Subject      string
	Description  string
	Members      int
	Role         string // of the account: member, admin or owner
	AnnounceOnly bool   // only administrators may write
	Since        time.Time
}

func (g Group) title() string { return cmp.Or(g.Subject, g.Chat) }

// role is a word for what somebody is in a group.
func role(of string) string {
	switch of {
	case "owner":
		return "Owner"
	case "admin":
		return "Administrator"
	}
	return "Member"
}

func groupPath(device, chat string) string { return path("contacts", "groups", device, chat) }

// GroupView is a group with its members.
type GroupView struct {
	Group

	Device     string
	DeviceName string
	People     []Member
}

// Member is somebody in a group.
type Member struct {
	Number string // "": hidden by the network
	LID    string
	Role   string
	Self   bool // the account of the device
}

// chat is the direct chat with the member.
func (m Member) chat() string { return cmp.Or(m.Number, m.LID) }
