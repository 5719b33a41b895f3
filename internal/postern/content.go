package postern

// Kind is the kind of a message. It is the message's "type" in the API, in
// events and in the database.
type Kind string

// The kinds of messages.
const (
	KindText Kind = "text"
	// KindUnsupported is an inbound message of a kind that Postern does not
	// show. It cannot be sent.
	KindUnsupported Kind = "unsupported"
)

// MaxText bounds the text of a message, in bytes of UTF-8.
const MaxText = 65_536

// Content is what a message says, apart from who wrote it to whom. The same
// value goes from the body of a request to the network, and from the network to
// events and to the database.
type Content struct {
	Kind Kind
	Text string // the text, or the caption of a kind that has one; at most MaxText bytes
	Extra
}

// Extra holds the members that only some kinds have. Their names are the same in
// requests, responses, events and the database.
type Extra struct{}

// Text returns the content of a text message.
func Text(text string) Content { return Content{Kind: KindText, Text: text} }

// Unsupported returns the content of a message that Postern does not show.
func Unsupported() Content { return Content{Kind: KindUnsupported} }

// Check returns nil if c can be sent. Otherwise the error names the member of
// the request's body that must change.
func (c Content) Check() error {
	switch {
	case c.Kind != KindText:
		return Invalid("/type", "a message of this kind cannot be sent")
	case c.Text == "":
		return Invalid("/body", "a text message needs a body")
	case len(c.Text) > MaxText:
		return Errorf(PayloadTooLarge, "a text may be at most %d bytes long in UTF-8", MaxText)
	}
	return nil
}
