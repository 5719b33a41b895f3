// Package logline formats lines of whatsmeow's log without what they could reveal.
package logline

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"go.mau.fi/whatsmeow/appstate"
)

// maxError is how much of the text of an error is logged, in bytes.
const maxError = 200

// plain stands for an argument in a line of the log, whatever its verb.
type plain string

// Format writes the text.
func (s plain) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s)) }

// Format formats a line. Arguments of types that can contain something private are
// replaced by "***".
func Format(format string, args []any) string {
	list := make([]any, len(args))
	for i, arg := range args {
		list[i] = harmless(arg)
	}
	return fmt.Sprintf(ownVerbs.Replace(format), list...)
}

// ownVerbs replaces the verbs that package fmt does not leave to a [fmt.Formatter].
var ownVerbs = strings.NewReplacer("%p", "%s", "%T", "%s") //nolint:gochecknoglobals // a constant

// harmless returns what is logged for an argument.
func harmless(arg any) any {
	switch v := arg.(type) {
	case int, int32, int64, uint, uint8, uint16, uint32, uint64, bool, time.Duration, appstate.WAPatchName:
		return v
	case error:
		return plain(errorText(v))
	case string:
		if messageID.MatchString(v) {
			return v
		}
	}
	return plain("***")
}

// messageID matches the ids of messages: capital hexadecimal digits, of which one is a letter, so that a phone
// number is none.
var messageID = regexp.MustCompile(`^[0-9A-F]*[A-F][0-9A-F]*$`)

// private matches what the text of an error may quote: addresses, long numbers and stanzas.
var private = regexp.MustCompile(`[0-9.:_-]*@[a-z.]+|[0-9]{5,}|<[^>]*>|"[^"]*"`)

func errorText(err error) string {
	text := private.ReplaceAllString(err.Error(), "***")
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "") + "…"
	}
	return text
}
