package page

import "net/url"

// ChatsView lists the chats of a device.
type ChatsView struct {
	Device  string // id of the chosen one; "": there is none
	Devices []Choice
	Chats   []Message // the newest of each
	More    string    // where the next page is; "": this is the last
	Live    string    // the page's own path: it asks for itself again; "": it stays as it is
	Send    bool      // the person may write
}

// ChatView is a conversation.
type ChatView struct {
	Device     string // id
	DeviceName string
	Chat       string
	Name       string    // the contact's on the network; "": unknown
	Messages   []Message // the newest last
	Older      string    // where those before are; "": there are none
	Newest     bool      // this is the newest part: it goes on by itself
	Send       bool      // the person may write
	Key        string    // that what is written is sent once by
	Body       Field
	Problem    string
}

func (v ChatView) path() string { return chatPath(v.Device, v.Chat) }

func (v ChatView) title() string {
	if v.Name == "" {
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

func query(s string) string { return url.QueryEscape(s) }
