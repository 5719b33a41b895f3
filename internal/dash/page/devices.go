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
	Add     string // where a device is added; "": the API alone does that
	Live    string // the page's own path: the list asks for it again every 5 seconds; "": it stays as it is
}

// Device is a line of the list of devices.
type Device struct {
	ID       string
	Name     string
	Number   string // "": none yet
	Status   string // as the API says it: "connected", "logged_out"
	Reason   string // why; "": nothing to say
	Mode     string // "live" or "sandbox"; the latter is shown
	LastSeen time.Time
}

// maxWords bounds a state that this package does not know.
const maxWords = 24

// words says a state that the API spells with an underscore.
func words(status string) string {
	s := strings.ToValidUTF8(strings.ReplaceAll(status[:min(len(status), maxWords)], "_", " "), "")
	if s == "" {
		return "Unknown"
	}
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}
