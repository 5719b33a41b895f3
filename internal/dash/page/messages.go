package page

import (
	"net/url"
	"time"
)

// MessagesView is a search among the messages of a workspace.
type MessagesView struct {
	Find       Field  // a number, words or a message's id
	In         string // "words" if Find could be a number but is looked for in texts; otherwise ""
	Device     string
	Devices    []Choice
	Direction  string
	Status     string
	Days       DayRange
	Messages   []Message
	More       string // where the next page is; "": this is the last
	Export     string // the path of the same list as a file
	ExportRows string // its row limit
	Send       bool   // the person may write
}

// DayRange chooses messages by the day on which they were created.
type DayRange struct{ From, Until Day }

func (d DayRange) chosen() bool { return d.From.Value != "" || d.Until.Value != "" }

func (d DayRange) wrong() bool { return d.From.Error != "" || d.Until.Error != "" }

// words are the days as a button shows them.
func (d DayRange) words() string {
	switch from, until := straight(d.From.Value), straight(d.Until.Value); {
	case from == "" && until == "":
		return "Any day"
	case until == "":
		return "From " + from
	case from == "":
		return "Until " + until
	default:
		return from + " to " + until
	}
}

// Day is a field with a date.
type Day struct {
	Field
	Offset string // minutes by which the reader's time is ahead of UTC when the day begins, or ends; "": 0
}

// Message is one, as lists and conversations show it.
type Message struct {
	ID       string
	Device   string // its name
	DeviceID string
	Chat     string
	Found    string // where its conversation shows it, in the results of a search; "": its own page
	Name     string // the sender's on the network; "": unknown
	From     string // the sender's number; "": hidden
	Out      bool   // the account wrote it
	Type     string // a postern.Kind
	Body     string // the beginning of its text
	Cut      bool   // there is more of it
	Gist     string // all of it in a line
	Status   string
	At       time.Time

	Content
	Quote     Quote // of the message to which it replies
	Reactions []Reaction
	Edited    time.Time // zero: never
	Deleted   time.Time // for everyone; zero: never
	Pinned    time.Time // until when; zero: it is not pinned
	Starred   bool
	Sends     time.Time // of a scheduled message; zero for others
	Forwarded bool
	ViewOnce  bool
	Wrong     string // why it could not be read, as a sentence; "": it could
	May       May
	Unread    int      // in a list of conversations: how many messages nobody has read
	Archived  bool     // in a list of conversations
	Muted     bool     // in a list of conversations
	Labels    []string // in a list of conversations: those of the conversation
	Assignee  string   // likewise: the email address of the member who takes care of it
}

// May is what the person may do with a message.
type May struct {
	Reply, React, Edit, Delete, Pin, Star, Vote, Cancel bool
}

// any reports whether there is something to do.
func (m May) any() bool {
	return m.Reply || m.React || m.Edit || m.Delete || m.Pin || m.Star || m.Vote || m.Cancel
}

func (m Message) path() string { return path("messages", m.ID) }

// target is where a line of a list leads.
func (m Message) target() string {
	if m.Found != "" {
		return local(m.Found)
	}
	return m.path()
}

// direction is a word for it.
func (m Message) direction() string {
	if m.Out {
		return "To"
	}
	return "From"
}

// StillToSend are the statuses of messages in a queue.
const StillToSend = "queued,sending"

func messageStates() []Choice {
	return []Choice{
		{"", "All"},
		{"received", "Received"},
		{"scheduled", "Scheduled"},
		{StillToSend, "Still to be sent"},
		{"queued", "Queued"},
		{"sending", "Sending"},
		{"sent", "Sent"},
		{"delivered", "Delivered"},
		{"read", "Read"},
		{"played", "Played"},
		{"failed", "Failed"},
		{"expired", "Expired"},
		{"canceled", "Canceled"},
	}
}

func directions() []Choice {
	return []Choice{{"", "Both"}, {"inbound", "Received"}, {"outbound", "Sent"}}
}

// empty reports whether no filter is set.
func (v MessagesView) empty() bool {
	return v.Find == Field{} && v.Device == "" && v.Direction == "" && v.Status == "" && v.More == "" &&
		!v.Days.chosen()
}

// MessageView is one message and its timeline.
type MessageView struct {
	Message
	To        string
	Source    string // who wrote it, in words
	NetworkID string
	Expires   time.Time // zero: it does not expire, or is final
	Steps     []WayStep
	Labels    []Header      // the caller's own
	JSON      string        // as the API shows it
	Every     time.Duration // how often to look for a change; 0: it changes no more
	Chats     bool          // there is a conversation to go to
	Events    []EventHead   // that report it, oldest first
	Most      int           // how many events are listed at most
	ShowsLog  bool          // the reader may see events
}

// EventHead is an event that reports a message.
type EventHead struct {
	ID, Type string
	At       time.Time
}

// WayStep is a station of a message.
type WayStep struct {
	Title string
	Text  string // "": nothing to add
	Do    string // what helps; "": nothing to do
	At    time.Time
	Whole bool   // At is a time of the network, which has only whole seconds
	Href  string // where more is shown; "": nowhere
	After string // how long after the step before it, such as "+0.4 s"; "": not known
	Kind  string // "done", "now", "bad", or "next" for what has not come yet
}

// mark stands before a step, for the eye.
func (s WayStep) mark() string {
	switch s.Kind {
	case "done":
		return "✓"
	case "bad":
		return "!"
	case "now":
		return "…"
	}
	return ""
}

// MessageFormView is the form that sends a message.
type MessageFormView struct {
	Draft

	Device  Field
	Devices []Choice
	To      Field
}

// Draft is a new message in a form.
type Draft struct {
	Key     string // that it is sent once by
	Body    Field
	Preview bool       // of the page behind the first link of the text
	File    Attachment // of a form that was refused
	Kind    string     // how the file is to be sent; "": as its type asks for
	MaxFile string     // bytes that a file may have
	Problem string
}

func (v MessageFormView) faults() []fault {
	return faults(fault{"device", v.Device.Error}, fault{"to", v.To.Error}, fault{"body", v.Body.Error})
}

// ChatsView lists the chats of a device.
type ChatsView struct {
	Device  string // id of the chosen one; "": all
	Devices []Choice
	Show    string    // "unread", "mine", "archived"; "": all
	Find    string    // what is searched for; "": nothing
	Status  string    // of the messages that are searched for; "": any
	Days    DayRange  // of these messages
	Wrong   string    // why it cannot be searched for
	People  []Contact // with a name that was searched for
	Found   []Message // in place of the conversations, if something is searched for
	Chats   []Message // the newest of each
	More    string    // where the next page is; "": this is the last
	Live    string    // the page's own path: it asks for itself again; "": it stays as it is
	Send    bool      // the person may write
	Beside  bool      // the list is beside a conversation
	Open    string    // the chatKey of that conversation
}

// Searches reports whether messages are searched for.
func (v ChatsView) Searches() bool { return v.Find != "" || v.filtered() }

// filtered reports whether messages are searched for by more than words.
func (v ChatsView) filtered() bool { return v.Status != "" || v.Days.chosen() }

// chatKey identifies a conversation among those of all devices.
func chatKey(device, chat string) string { return device + "/" + chat }

func shownChats() []Choice {
	return []Choice{{"", "All"}, {"unread", "Unread"}, {"mine", "Assigned to me"}, {"archived", "Archived"}}
}

// ChatView is a conversation.
type ChatView struct {
	Draft

	Device     string // id
	DeviceName string
	Down       string // that the device is not connected, as a sentence; "": it is
	Chat       string
	Name       string    // the contact's on the network; "": unknown
	Group      bool      // several people write
	Messages   []Message // the newest last
	Older      string    // where those before are; "": there are none
	Newest     bool      // this is the newest part, which is polled
	Send       bool      // the person may write
	Settings   bool      // the person may mark the conversation as read, archive and mute it
	Archived   bool
	Muted      bool
	Labels     []LabelOn // of the account
	Assignee   string    // email address of the member who takes care of it; "": nobody
	Mine       bool      // that is the reader
	Note       string    // what members have noted
	NoteSeen   string    // identifies the note as it is stored
	Typed      bool      // Note is what was typed, and not stored
	Notable    bool      // the person may assign it and note something
	Mode       string    // what is done with About: "reply", "edit", "vote", "delete", or "options" to choose; "": nothing
	About      Message
}

// LabelOn is a label that can be put on a conversation.
type LabelOn struct {
	ID   string
	Name string
	On   bool
}

// Attachment is a file that was uploaded and is not sent yet.
type Attachment struct {
	ID   string // "" if no file was uploaded
	Name string
	Size string
}

// to is where something is done with a message.
func (v ChatView) to(m Message, do string) string {
	to := v.path() + "?message=" + query(m.ID)
	if do != "" {
		to += "&do=" + do
	}
	return local(to + "#write")
}

// emojis are those that most people react with.
func emojis() []string { return []string{"👍", "❤️", "😂", "😮", "😢", "🙏"} }

func (v ChatView) path() string { return chatPath(v.Device, v.Chat) }

func (v ChatView) title() string {
	switch {
	case v.Group && v.Name == "":
		return "Group"
	case v.Name == "":
		return v.Chat
	}
	return v.Name
}

// chatPath is where a conversation is shown.
func chatPath(device, chat string) string { return path("messages", "chats", device, chat) }

// said is the state of a message in a conversation; one that arrived here has none
// to speak of.
func (m Message) said() string {
	if !m.Out {
		return ""
	}
	return words(m.Status)
}

func (m Message) who() string {
	switch {
	case m.Name != "":
		return m.Name
	case m.From != "":
		return m.From
	}
	return m.Chat
}

// whoOrYou names who wrote it.
func (m Message) whoOrYou() string {
	if m.Out {
		return "You"
	}
	return m.who()
}

func query(s string) string { return url.QueryEscape(s) }
