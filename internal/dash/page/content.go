package page

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
)

// Content is what a message has beside its text. Most is empty.
type Content struct {
	File     File
	Place    Place
	Cards    []Card
	Poll     Poll
	Occasion Occasion
	Preview  Preview
	Call     string // what kind of call it was; "": it is a message
	Unknown  string // the network's name for the kind of an unsupported message
}

// File is the file of a message.
type File struct {
	ID            string
	Show          string // "picture", "video", "audio" or "document"; "": there is no file
	Src           string // where it is served; "": it cannot be read
	Kind          string // of the message, in words
	Type          string // of the file: "image/png"
	Name          string
	Size          string // in words; "": unknown
	Length        string // "0:12"; "": unknown
	Alt           string // what it shows, in words
	Width, Height int    // as it is shown
	Poster        string // URL of the small picture of a video; "" if it has none
	Loops         bool   // a video that plays again and again
	State         string // "pending", "ready", "failed" or "expired"
	Why           string // why it failed; "": unknown
	Again         bool   // it can be fetched again
}

// download is where the file is saved instead of shown.
func (f File) download() string { return local(f.Src + "?download") }

// about is the type and the size of the file, in a line.
func (f File) about() string {
	var list []string
	for _, s := range []string{f.Length, f.Size, f.Type} {
		if s != "" {
			list = append(list, s)
		}
	}
	return strings.Join(list, " · ")
}

// Place is a place on the earth.
type Place struct {
	Name, Address, URL  string
	Latitude, Longitude string // degrees; "": there is no place
	Note                string // about the place; "": nothing to add
	Live                bool   // somebody was there when they began to share it
}

// title is what stands above the coordinates.
func (p Place) title() string {
	switch {
	case p.Name != "":
		return p.Name
	case p.Live:
		return "Live location"
	}
	return "Location"
}

// onMap is where a map shows the place. It is only opened when somebody follows the link.
func (p Place) onMap() templ.SafeURL {
	lat, lon := url.QueryEscape(p.Latitude), url.QueryEscape(p.Longitude)
	return templ.SafeURL("https://www.openstreetmap.org/?mlat=" + lat + "&mlon=" + lon + "#map=16/" + lat + "/" + lon)
}

// Card is a contact that a message shows.
type Card struct {
	Name, Organization string
	Numbers            []Number
}

// Number is a phone number, and the conversation with it.
type Number struct {
	Text string
	Href string // "": nobody can be written to under it
}

// Poll is a question and what people have chosen.
type Poll struct {
	Question string // "": there is no poll
	Rule     string // how many options one person may choose, as a sentence
	One      bool   // one person may choose only one
	Options  []PollOption
	People   int // who have voted
}

// said is how many people have voted.
func (p Poll) said() string {
	switch p.People {
	case 0:
		return "No votes yet."
	case 1:
		return "1 person voted."
	}
	return strconv.Itoa(p.People) + " people voted."
}

// voted reports whether the account has voted.
func (p Poll) voted() bool {
	return slices.ContainsFunc(p.Options, func(o PollOption) bool { return o.Own })
}

// voteOn names the link that leads to voting, which begins as it is shown.
func voteOn(p Poll) string {
	if p.voted() {
		return "Change vote: " + straight(p.Question)
	}
	return "Vote: " + straight(p.Question)
}

// PollOption is an option of a poll and who chose it.
type PollOption struct {
	Text   string
	Voters []string
	Own    bool // the account chose it
}

func (o PollOption) votes() string {
	if len(o.Voters) == 1 {
		return "1 vote"
	}
	return strconv.Itoa(len(o.Voters)) + " votes"
}

// Occasion is an event to which a message invites.
type Occasion struct {
	Name     string // "" if the event has no name
	Text     string
	Link     string // by which to join; not a link, because a stranger chose it
	Starts   time.Time
	Ends     time.Time
	Place    Place
	Canceled bool
}

// Preview is what a text shows of the page behind its link.
type Preview struct {
	Title, Description string // Title is "" if there is no preview
	Host               string // of the link, which is no link here because a stranger chose it
}

// Quote is a message to which another one replies.
type Quote struct {
	Who  string
	Gist string // "" if nothing can be said in one line
	Href string // where the message is; "": it is gone
}

// Reaction is an emoji and the people who react with it.
type Reaction struct {
	Emoji string
	Who   []string
}

// count is how many people there are, if there are several.
func (r Reaction) count() string {
	if len(r.Who) < 2 {
		return ""
	}
	return strconv.Itoa(len(r.Who))
}

func (r Reaction) who() string { return strings.Join(r.Who, ", ") }

// kinds are how a file can be sent.
func kinds() []Choice {
	return []Choice{
		{"", "Automatic"}, {"voice", "Voice message"}, {"sticker", "Sticker"}, {"document", "Document"},
	}
}
