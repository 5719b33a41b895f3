package vendorsim

import "strings"

// maxEchoes is how often the echo number answers what answers its own echo. A gateway that replies to each text,
// or another echo, would otherwise write to it for ever.
const maxEchoes = 3

// echoes is what the echo number has written to an account.
type echoes struct {
	last string // its last echo
	id   string // of it
	deep int    // how many answers in a row it has echoed
}

// again tells whether the echo number echoes a text. A text answers the last echo if it contains that or quotes it.
func (e *echoes) again(c Content) bool {
	if e.last == "" || !strings.Contains(c.Body, e.last) && (c.ReplyTo == "" || c.ReplyTo != e.id) {
		e.deep = 0
		return true
	}
	e.deep++
	return e.deep <= maxEchoes
}
