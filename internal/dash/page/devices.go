package page

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// DevicesView is a page of the list of devices.
type DevicesView struct {
	Devices []Device
	More    string // where the next page is, such as "/devices?after=dev_…"; "": this is the last
	Add     string // where a device is added; "": not offered
	Live    string // the page's own path, asked for again when something has changed; "": never
}

// Device is a line of the list of devices.
type Device struct {
	ID       string
	Name     string
	Number   string // "": none yet
	Status   string // as in the API: "connected", "logged_out"
	Reason   string // why, as a sentence; "": nothing to say
	Mode     string // "live" or "sandbox"; the latter is shown
	LastSeen time.Time
	Until    time.Time // when a restriction ends; zero if unknown or not restricted

	Limited   bool      // the account may not start chats
	LimitEnds time.Time // zero if unknown
	Slowed    int       // how many times the pace for new chats is halved
}

// maxWords limits the length of a status that this package does not know.
const maxWords = 24

// words formats a status of the API, without underscores.
func words(status string) string {
	s := strings.ToValidUTF8(strings.ReplaceAll(status[:min(len(status), maxWords)], "_", " "), "")
	if s == "" {
		return "Unknown"
	}
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// RemovalView is the form to delete a device.
type RemovalView struct {
	Device
	Linked   bool  // a phone is linked to it
	Password Field // its value is never shown
	Again    Again
}

// Health is a part of a device's health history, newest first.
type Health struct {
	Changes []HealthChange
	More    string // where the older ones are; "": there are none
}

// HealthChange is an entry of the health history.
type HealthChange struct {
	Status string // "connected"
	Text   string // as a sentence
	Reason string // why, as a sentence; "": nothing to say
	At     time.Time
}

// DeviceHealthView is a page of a device's health history.
type DeviceHealthView struct {
	Device
	Health Health
}

// DeviceView is the page of one device.
type DeviceView struct {
	Device
	Account string    // the account's own name on the network
	Linked  time.Time // zero: never
	Change  bool      // the person may link, pause and unlink
	Pauses  bool      // the device can be paused now
	Resumes bool      // it can be resumed

	ResumeLabel string
	Links       bool     // a link attempt can be opened now
	Unlinks     bool     // it has an account that can be unlinked
	Sandbox     bool     // the phone is a simulated one, on a page of its own
	Link        LinkView // the newest attempt, while it is worth showing
	Share       string   // the address of a link page, shown once
	Health      Health   // the newest part
	Enter       Field    // the number in the form for a pairing code
}

// LinkView is an attempt to link a phone.
type LinkView struct {
	// State is "wait", "scan", "enter", "passkey", "checking", "compare", "linked", "expired" or "failed"; "" shows nothing.
	State    string
	Picture  string // an SVG that we drew, for "scan"
	Code     string // for "enter" and "compare"
	Number   string // whose phone it is entered on
	Seconds  int    // until the code changes
	Why      string // for "failed", as a sentence
	Cancels  bool   // the person may end the attempt
	Scanning bool   // the simulated phone may scan it
	Answers  bool   // the simulated phone may answer with its passkey
}

// open reports whether the attempt is still open.
func (v LinkView) open() bool {
	switch v.State {
	case "wait", "scan", "enter", "passkey", "checking", "compare":
		return true
	}
	return false
}

// pace is the poll interval of the page.
func (v DeviceView) pace() string {
	if v.Link.open() || v.Status == "linking" || v.Status == "connecting" {
		return "every 1s"
	}
	return "news from:body, every 10s"
}

// DeviceSettingsView is the form with the settings of a device.
type DeviceSettingsView struct {
	ID                        string
	Name, PerMinute, NewChats Field
	Proxy                     Field // its value is what was typed; the stored one is never shown
	Receives                  []ReceiveChoice
	Media                     string
	Problem                   string
	Title                     string // the name of the device
	Seen                      string // identifies the settings as they are shown
	NoProxy                   bool   // the proxy is to be removed
}

// ReceiveChoice is something that a device can receive.
type ReceiveChoice struct {
	Name, Label, Text string
	Chosen            bool
}

func (v DeviceSettingsView) faults() []fault {
	return faults(fault{"name", v.Name.Error}, fault{"perMinute", v.PerMinute.Error}, fault{"newChats", v.NewChats.Error},
		fault{"proxy", v.Proxy.Error})
}

func mediaModes() []Choice {
	return []Choice{{"eager", "At once"}, {"lazy", "When somebody asks for one"}, {"off", "Never"}}
}

// DeviceFormView is the form that adds a device.
type DeviceFormView struct {
	Name    Field
	Problem string
}

// PhoneView is the simulated phone of a device.
type PhoneView struct {
	Device
	Chats    []string      // numbers, and the ids of other chats; the one with the newest message first
	Chat     string        // the one that is open
	Chosen   string        // Chat, if the reader has chosen it; "": the page follows the newest message
	Messages []Message     // of it, the newest last
	Sent     []SentMessage // by the device, the newest first
	From     Field         // of the contact who writes
	Body     Field
	Faults   []Choice // what can go wrong
	Problem  string

	// What was entered in a form that was refused.
	Type                                string // "location", "contact", "poll", "call", or "" for a text or a file
	Latitude, Longitude, Place, Address string
	Contact, Phone, Organization        string
	Question, Options                   string
	Many                                bool // of the options can be chosen
	Video, Group                        bool // the call
}

// chatPath is the page with another chat open.
func (v PhoneView) chatPath(chat string) string {
	to := "/devices/" + query(v.ID) + "/phone"
	if chat != "" {
		to += "?chat=" + query(chat)
	}
	return local(to)
}

// Absences lists how long a simulated phone can be offline, in seconds.
func Absences() []Choice {
	return []Choice{{"10", "10 seconds"}, {"30", "30 seconds"}, {"120", "2 minutes"}, {"600", "10 minutes"}}
}

// SentMessage is one that the device has sent, for the contact to confirm.
type SentMessage struct {
	ID, To, Body, Status string
}
