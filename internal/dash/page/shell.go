package page

import (
	"net/url"
	"strings"
	"time"
)

// Frame is what Shell shows around a page.
type Frame struct {
	Title      string
	Current    string      // the path of the entry that the page belongs to, such as "/devices"
	Entries    []Entry     // nil: Entries()
	Workspace  Workspace   // the one that the page is about
	Workspaces []Workspace // those in the menu
	More       bool        // there may be more, on a separate page
	TimeZone   string      // in which times are shown; "": the reader's own
	Email      string      // the person's
	Role       string      // the person's in this workspace, as a word: "Owner"
	Notice     string      // the result of the last action, shown once; "": none
	Part       bool        // a page that is open asks for a part of itself: it needs no navigation

	Health *AttentionView // what the page shows of its workspace's state; nil: the page asks for a line about it
}

// Entry is a line of the navigation.
type Entry struct {
	Path, Label string
}

// Workspace is a workspace of the user.
type Workspace struct {
	ID, Name string
}

// Entries is the navigation of the dashboard.
func Entries() []Entry {
	return []Entry{
		{"/", "Overview"},
		{"/messages/chats", "Inbox"},
		{"/messages", "Messages"},
		{"/contacts", "Contacts"},
		{"/devices", "Devices"},
		{"/webhooks", "Webhooks"},
		{"/events", "Events"},
		{"/keys", "API keys"},
		{"/people", "People"},
		{"/account", "Account"},
		{"/operator", "Operator"},
	}
}

func (f Frame) entries() []Entry {
	if f.Entries == nil {
		return Entries()
	}
	return f.Entries
}

// straight removes characters that change the direction of text. It is for places that cannot
// contain a <bdi>: titles, options, and attributes. Fields of forms keep them, because what they hold is saved again.
func straight(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return -1
		}
		return r
	}, s)
}

// local is a path of this server with its query, or "/" when s is anything
// else.
func local(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(s, "/") ||
		strings.HasPrefix(s, "//") || strings.Contains(s, `\`) {
		return "/"
	}
	return u.String()
}

// path joins parts to a path; each part stays one segment.
func path(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + url.PathEscape(p))
	}
	return b.String()
}

func machineTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// exactForm is RFC 3339 with milliseconds.
const exactForm = "2006-01-02T15:04:05.000Z07:00"

func readTime(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") }
