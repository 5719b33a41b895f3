package listen

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"postern/internal/egress"
	"postern/internal/postern"
)

// printer prints each event: as a line for people, or as an object for programs.
type printer struct {
	out        io.Writer
	json, text bool
}

func newPrinter(o Options) *printer { return &printer{o.Out, o.JSON, o.ShowText} }

// event contains the printed fields of an event.
type event struct {
	EventID   string       `json:"eventId"`
	Type      string       `json:"type"`
	Timestamp postern.Time `json:"timestamp"`
	DeviceID  string       `json:"deviceId"`
	Message   *struct {
		ID     string           `json:"id"`
		From   string           `json:"from"`
		To     string           `json:"to"`
		ChatID string           `json:"chatId"`
		Body   string           `json:"body"`
		Status string           `json:"status"`
		Error  *postern.Failure `json:"error"`
	} `json:"message"`
	Call *struct {
		ID     string `json:"id"`
		From   string `json:"from"`
		ChatID string `json:"chatId"`
	} `json:"call"`
	Device *struct {
		Status       string `json:"status"`
		StatusReason string `json:"statusReason"`
	} `json:"device"`
}

// read decodes the printed fields. A body that cannot be decoded, such as one from
// a newer server, is still posted.
func read(body []byte) (e event) {
	_ = json.Unmarshal(body, &e)
	return e
}

func (p *printer) event(m message, o *outcome) error {
	if p.json {
		return p.object(m, o)
	}
	e := read(m.data)
	line := fmt.Sprintf("%s  %-18s  %s  %s", clock(e.Timestamp.Std()), m.name, e.DeviceID, e.subject(p.text))
	if o != nil {
		line += "  → " + o.String()
	}
	_, err := fmt.Fprintln(p.out, printable(line))
	return err
}

// clock formats a time in the local time zone, with the date if it is more than a
// day ago.
func clock(t time.Time) string {
	t = t.Local()
	if time.Since(t) < 24*time.Hour {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

const shownText = 60 // characters of a message's text in a line

// subject describes the event. The text of a message is included only on request.
func (e event) subject(text bool) string {
	var s []string
	switch {
	case e.Message != nil:
		s = []string{e.Message.ID, e.who()}
		if e.Message.Error != nil {
			s = append(s, string(e.Message.Error.Code))
		}
		if text {
			s = append(s, strconv.Quote(shorten(e.Message.Body)))
		}
	case e.Call != nil:
		s = []string{e.Call.ID, "from " + cmp.Or(e.Call.From, e.Call.ChatID)}
	case e.Device != nil:
		s = []string{e.Device.Status}
		if e.Device.StatusReason != "" {
			s = append(s, "("+e.Device.StatusReason+")")
		}
	}
	return strings.Join(s, " ")
}

// who is the other party of a message.
func (e event) who() string {
	switch m := e.Message; {
	case e.Type != string(postern.MessageReceived) && m.To != "":
		return "to " + m.To
	case !postern.IsDirect(m.ChatID) && e.Type != string(postern.MessageReceived):
		return "to " + m.ChatID
	case !postern.IsDirect(m.ChatID) && m.From != "":
		return "from " + m.From + " in " + m.ChatID
	case m.From != "":
		return "from " + m.From
	default:
		return "from " + m.ChatID
	}
}

func shorten(s string) string {
	if r := []rune(s); len(r) > shownText {
		return string(r[:shownText-1]) + "…"
	}
	return s
}

// String describes the result of a POST for people.
func (o outcome) String() string {
	e, _ := errors.AsType[*egress.Error](o.err)
	if o.status == 0 || e != nil && (e.Reason == egress.Body || e.Reason == egress.Timeout) {
		return o.failure(e)
	}
	s := fmt.Sprintf("%d %d ms", o.status, o.took.Milliseconds())
	switch {
	case o.taken():
		return s
	case o.status == http.StatusGone:
		return s + ", not accepted (this would disable a webhook endpoint)"
	case e != nil && e.Reason == egress.Redirect:
		return s + ", not accepted: redirects are not followed"
	}
	return s + ", not accepted"
}

// failure says why there was no complete response.
func (o outcome) failure(e *egress.Error) string {
	switch {
	case e == nil:
		return "not accepted: " + o.err.Error()
	case e.Reason == egress.Timeout:
		return fmt.Sprintf("not accepted: no complete response within %s", o.took.Round(time.Second))
	}
	return "not accepted: " + e.Err.Error()
}

// object is the line printed for programs.
type object struct {
	EventID   string          `json:"eventId"`
	Type      string          `json:"type"`
	Timestamp postern.Time    `json:"timestamp"`
	DeviceID  string          `json:"deviceId"`
	MessageID string          `json:"messageId,omitempty"`
	From      string          `json:"from,omitempty"`
	To        string          `json:"to,omitempty"`
	Status    string          `json:"status,omitempty"`
	Forward   *forward        `json:"forward,omitempty"`
	Event     json.RawMessage `json:"event,omitempty"` // with ShowText
}

// forward is the result of a POST for programs.
type forward struct {
	Taken      bool          `json:"taken"`
	HTTPStatus int           `json:"httpStatus"` // 0: there was no response
	Reason     egress.Reason `json:"reason,omitempty"`
	DurationMS int64         `json:"durationMs"`
}

func (p *printer) object(m message, o *outcome) error {
	e := read(m.data)
	line := object{EventID: m.id, Type: m.name, Timestamp: e.Timestamp, DeviceID: e.DeviceID, Forward: o.forward()}
	switch {
	case e.Message != nil:
		line.MessageID, line.From, line.To, line.Status = e.Message.ID, e.Message.From, e.Message.To, e.Message.Status
	case e.Device != nil:
		line.Status = e.Device.Status
	}
	if p.text && json.Valid(m.data) {
		line.Event = m.data
	}
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(line)
}

func (o *outcome) forward() *forward {
	if o == nil {
		return nil
	}
	f := &forward{Taken: o.taken(), HTTPStatus: o.status, DurationMS: o.took.Milliseconds()}
	if e, ok := errors.AsType[*egress.Error](o.err); ok {
		f.Reason = e.Reason
	}
	return f
}

// printable replaces characters that a terminal would interpret.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
