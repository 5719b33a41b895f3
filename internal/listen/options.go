package listen

import (
	"encoding/base64"
	"errors"
	"io"
	"net/url"
	"strings"

	"postern/internal/egress"
	"postern/internal/seal"
)

// Start is a value of Options.After: begin with the oldest event on the server.
const Start = "start"

// Options say which events to listen to and where to send them.
type Options struct {
	URL    string // the server's address
	Key    seal.Secret
	After  string   // the event after which to begin, or Start; "": new events only
	Types  []string // names, and prefixes such as message.*; empty: all
	Device string   // "": all devices that the key may access

	ForwardTo string      // where to post each event; "": nowhere
	Secret    seal.Secret // signs the posts; "": a new one is generated and printed

	JSON     bool // print one object per line, for programs
	ShowText bool // also print the text of messages
	Version  string
	Out      io.Writer // one line per event
	Err      io.Writer // everything else
}

// Validate finds invalid options before the server is contacted. Its errors never
// repeat a given value.
func (o Options) Validate() error {
	switch {
	case o.Key == "":
		return errors.New("no API key: set POSTERN_KEY or --key to a key with the scope events:read " +
			"(\"postern key create\" creates one)")
	case !visible(o.key()):
		return errors.New("--key contains characters that are not allowed in an API key")
	case !validServer(o.URL):
		return errors.New("--url must be the address of the API, " +
			"such as http://127.0.0.1:8080 or https://postern.example.com")
	case o.After != "" && o.After != Start && (!strings.HasPrefix(o.After, "evt_") || !visible(o.After)):
		return errors.New("--after must be the id of an event, such as evt_01JD8Z3NDEKTSV4RRFFQ69G5FA, or \"start\"")
	case o.ForwardTo != "" && !validTarget(o.ForwardTo):
		return errors.New("--forward-to must be a URL such as http://localhost:3000/hook")
	case o.Secret != "" && !validSecret(o.Secret.Reveal()):
		return errors.New("--secret must be whsec_ followed by the base64 of 24 to 64 bytes; " +
			"leave it out to generate one")
	}
	return nil
}

// key returns the key without the newline it may have if it was read from a file.
func (o Options) key() string { return strings.TrimSpace(o.Key.Reveal()) }

func (o Options) base() string { return strings.TrimRight(o.URL, "/") }

// visible reports whether s is printable ASCII without spaces, so that it can be
// the value of a header.
func visible(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

func validServer(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil &&
		u.RawQuery == "" &&
		u.Fragment == ""
}

func validTarget(raw string) bool {
	c := egress.NewClient(egress.Options{AllowPrivate: true})
	defer c.Close()
	return c.CheckURL(raw) == nil
}

// validSecret reports whether the Standard Webhooks specification allows s.
func validSecret(s string) bool {
	text, ok := strings.CutPrefix(s, secretPrefix)
	raw, err := base64.StdEncoding.DecodeString(text)
	return ok && err == nil && len(raw) >= 24 && len(raw) <= 64
}
