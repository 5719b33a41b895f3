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

// Start is an Options.After: the oldest event that the server keeps.
const Start = "start"

// Options say what to listen to and where it goes.
type Options struct {
	URL    string // of the server
	Key    seal.Secret
	After  string   // the event behind which to begin, or Start; "": from now on
	Types  []string // names and prefixes such as message.*; none: all
	Device string   // "": all that the key may see

	ForwardTo string      // where each event is posted; "": nowhere
	Secret    seal.Secret // signs the posts; "": one is made and shown

	JSON     bool // an object a line, for programs
	ShowText bool // also what messages say
	Version  string
	Out      io.Writer // a line for each event
	Err      io.Writer // what else there is to say
}

// Validate finds what can be known to be wrong before the server is asked. No
// error repeats what was given.
func (o Options) Validate() error {
	switch {
	case o.Key == "":
		return errors.New("give an API key with the scope events:read, as POSTERN_KEY or --key; \"postern key create\" makes one")
	case !visible(o.key()):
		return errors.New("--key holds characters that no API key has")
	case !validServer(o.URL):
		return errors.New("--url is where the API is reached, such as http://127.0.0.1:8080 or https://postern.example.com")
	case o.After != "" && o.After != Start && (!strings.HasPrefix(o.After, "evt_") || !visible(o.After)):
		return errors.New("--after is the id of an event, such as evt_01JD8Z3NDEKTSV4RRFFQ69G5FA, or \"start\"")
	case o.ForwardTo != "" && !validTarget(o.ForwardTo):
		return errors.New("--forward-to is a URL such as http://localhost:3000/hook")
	case o.Secret != "" && !validSecret(o.Secret.Reveal()):
		return errors.New("--secret is whsec_ and base64 of 24 to 64 bytes; left out, one is made")
	}
	return nil
}

// key is the key without the end of a line that files bring along.
func (o Options) key() string { return strings.TrimSpace(o.Key.Reveal()) }

func (o Options) base() string { return strings.TrimRight(o.URL, "/") }

// visible tells whether a text is ASCII without spaces: fit for a header.
func visible(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

func validServer(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

func validTarget(raw string) bool {
	c := egress.NewClient(egress.Options{AllowPrivate: true})
	defer c.Close()
	return c.CheckURL(raw) == nil
}

// validSecret takes what the Standard Webhooks specification allows.
func validSecret(s string) bool {
	text, ok := strings.CutPrefix(s, secretPrefix)
	raw, err := base64.StdEncoding.DecodeString(text)
	return ok && err == nil && len(raw) >= 24 && len(raw) <= 64
}
