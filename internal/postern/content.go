package postern

import "unicode/utf8"

// Kind is the kind of a message. It is the message's "type" in the API, in
// events and in the database.
type Kind string

// The kinds of messages.
const (
	KindText     Kind = "text"
	KindLocation Kind = "location"
	// KindUnsupported is an inbound message of a kind that Postern does not
	// show. It cannot be sent.
	KindUnsupported Kind = "unsupported"
)

// MaxText bounds the text of a message, in characters: Unicode code points.
const MaxText = 65_536

// Content is what a message says, apart from who wrote it to whom. The same
// value goes from the body of a request to the network, and from the network to
// events and to the database.
type Content struct {
	Kind Kind
	Text string // the text, or the caption of a kind that has one; at most MaxText characters
	// Truncated reports that a part of a received message was longer than its limit and was cut.
	Truncated bool
	Extra
}

// Extra holds the members that only some kinds have. Their names are the same in
// requests, responses, events and the database.
type Extra struct {
	Location *Location `json:"location,omitempty" doc:"The place that a location message shows; absent from other kinds."`
}

// Location is a place on the earth. Name and Address have at most MaxPlace bytes, and
// URL has at most MaxURL.
type Location struct {
	Latitude  float64 `json:"latitude" minimum:"-90" maximum:"90" doc:"Degrees; positive values are north of the equator." example:"52.5163"`
	Longitude float64 `json:"longitude" minimum:"-180" maximum:"180" doc:"Degrees; positive values are east of Greenwich." example:"13.3777"`
	Name      string  `json:"name,omitempty" doc:"Name of the place, at most 1,000 bytes in UTF-8." example:"Brandenburg Gate"`
	Address   string  `json:"address,omitempty" doc:"Address of the place, at most 1,000 bytes in UTF-8." example:"Pariser Platz, Berlin"`
	URL       string  `json:"url,omitempty" doc:"Address of a page about the place, at most 2,000 bytes." example:"https://example.com/gate"`
}

// Limits of a location, in bytes of UTF-8.
const (
	MaxPlace = 1000
	MaxURL   = 2000
)

// IsValid reports whether l is a point on the earth. NaN is not.
func (l Location) IsValid() bool {
	return l.Latitude >= -90 && l.Latitude <= 90 && l.Longitude >= -180 && l.Longitude <= 180
}

// check returns nil if l can be sent; l may be nil.
func (l *Location) check() error {
	switch {
	case l == nil:
		return Invalid("/location", "a location message needs a location")
	case !l.IsValid():
		return Invalid("/location", "a latitude is from -90 to 90, and a longitude from -180 to 180")
	case len(l.Name) > MaxPlace:
		return Errorf(PayloadTooLarge, "the name of a place has at most %d bytes in UTF-8", MaxPlace)
	case len(l.Address) > MaxPlace:
		return Errorf(PayloadTooLarge, "the address of a place has at most %d bytes in UTF-8", MaxPlace)
	case len(l.URL) > MaxURL:
		return Errorf(PayloadTooLarge, "the URL of a place has at most %d bytes in UTF-8", MaxURL)
	}
	return nil
}

// Text returns the content of a text message.
func Text(text string) Content { return Content{Kind: KindText, Text: text} }

// Unsupported returns the content of a message that Postern does not show.
func Unsupported() Content { return Content{Kind: KindUnsupported} }

// Check returns nil if c can be sent. Otherwise the error names the member of
// the request's body that must change.
func (c Content) Check() error {
	switch {
	case c.Kind == KindLocation && c.Text != "":
		return Invalid("/body", "a location has no text")
	case c.Kind == KindLocation:
		return c.Location.check()
	case c.Kind != KindText:
		return Invalid("/type", "a message of this kind cannot be sent")
	case c.Location != nil:
		return Invalid("/location", "a text message has no location")
	case c.Text == "":
		return Invalid("/body", "a text message needs a body")
	case utf8.RuneCountInString(c.Text) > MaxText:
		return Errorf(PayloadTooLarge, "a text may have at most %d characters", MaxText)
	}
	return nil
}
