package dash

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"postern/internal/dash/numbers"
	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

const (
	devicesShown = 200  // offered to choose from, and shown by name
	gistLength   = 200  // characters of a text in a list
	bubbleLength = 2000 // and in a conversation
)

func messagePath(id postern.MessageID) string { return "/messages/" + url.PathEscape(string(id)) }

func (d messages) list(w http.ResponseWriter, r *http.Request, v visit) error {
	q, err := search(r)
	view := page.MessagesView{
		Find: page.Field{Value: r.FormValue("q")}, In: r.FormValue("in"), Device: string(q.DeviceID),
		Direction: q.Direction, Status: r.FormValue("status"), Days: daysIn(r, nil),
		ExportRows: numbers.Of(exportRows),
		Send:       v.may(postern.MessagesWrite),
	}
	if id, is := messageID(view.Find.Value); is {
		m, missing := d.g.Messages.Get(r.Context(), v.caller, id)
		switch reason := postern.ReasonOf(missing); {
		case missing == nil:
			return seeOther(w, r, messagePath(m.ID))
		case reason != postern.NotFound && reason != postern.ResourceNotAllowed:
			return missing
		}
		err = postern.Invalid("/q", "no message has this ID")
	}
	return d.showList(w, r, v, q, view, err)
}

// showList shows the search results, or what is wrong with the search.
func (d messages) showList(
	w http.ResponseWriter, r *http.Request, v visit, q gateway.MessageQuery, view page.MessagesView, err error,
) error {
	names, err2 := d.deviceNames(r.Context(), v, q.DeviceID)
	if err2 != nil {
		return err2
	}
	view.Devices = append([]page.Choice{{Label: "All"}}, choices(names, view.Device)...)
	if wrong, ok := faults(err); ok {
		view.Find.Error, view.Days = wrong["q"], daysIn(r, wrong)
		return d.write(w, r, http.StatusUnprocessableEntity,
			page.Messages(d.frame(r, v, "Messages", "/messages"),
				view))
	}
	list, err := d.g.Messages.List(r.Context(), v.caller, q)
	if err == nil && len(list.Data) == 0 && list.Next == "" && mayBeWords(view.Find.Value, q) {
		q.ChatID, q.Text, view.In = "", strings.TrimSpace(view.Find.Value), inWords
		list, err = d.g.Messages.List(r.Context(), v.caller, q)
	}
	if err != nil {
		return err
	}
	for _, m := range list.Data {
		shown := messageOf(m, names, gistLength)
		if q.Text != "" && m.ChatID != "" {
			shown.Found = pathInChat(m)
		}
		view.Messages = append(view.Messages, shown)
	}
	same := asked(r, "direction")
	if view.In == inWords {
		same.Set("in", inWords)
	}
	view.Export = "/messages.csv?" + same.Encode()
	if list.Next != "" {
		same.Set("after", list.Next)
		view.More = "/messages?" + same.Encode()
	}
	return d.write(w, r, http.StatusOK, page.Messages(d.frame(r, v, "Messages", "/messages"), view))
}

// search reads the filters. Statuses are separated by commas; unknown ones, and an unknown direction, select all.
func search(r *http.Request) (q gateway.MessageQuery, err error) {
	q = gateway.MessageQuery{
		DeviceID: postern.DeviceID(r.FormValue("device")), Page: paging.Page{Cursor: r.FormValue("after")},
	}
	for s := range strings.SplitSeq(r.FormValue("status"), ",") {
		switch postern.MessageStatus(s) {
		case postern.Queued, postern.Sending, postern.Sent, postern.Delivered, postern.Read, postern.Played,
			postern.Failed, postern.Expired, postern.Received, postern.Scheduled, postern.Canceled:
			q.Statuses = append(q.Statuses, s)
		}
	}
	switch s := r.FormValue("direction"); s {
	case postern.Inbound, postern.Outbound:
		q.Direction = s
	}
	q.ChatID, q.Text, err = lookedFor(strings.TrimSpace(r.FormValue("q")), r.FormValue("in"))
	var wrong [2]error
	q.Since, wrong[0] = dayIn(r, "from", 0)
	q.Until, wrong[1] = dayIn(r, "until", 1)
	return q, cmp.Or(err, wrong[0], wrong[1])
}

// dayIn returns when the day begins that a field names, or so many days later; 0 if it is empty. The day is one of the
// reader's time, if the request says how far it is ahead of UTC, and else of UTC.
func dayIn(r *http.Request, field string, later int) (postern.Time, error) {
	value := r.FormValue(field)
	if value == "" {
		return 0, nil
	}
	day, err := time.Parse(time.DateOnly, value)
	if err != nil || day.Year() < 1970 {
		return 0, postern.Invalid("/"+field, "enter a date such as 2026-11-29")
	}
	ahead, err := strconv.Atoi(r.FormValue(field + "Offset"))
	if most := 24 * 60; err != nil || ahead < -most || ahead > most {
		ahead = 0
	}
	return postern.TimeOf(day.AddDate(0, 0, later).Add(-time.Duration(ahead) * time.Minute)), nil
}

// daysIn returns the days that a request names, and what is wrong with them.
func daysIn(r *http.Request, wrong map[string]string) page.DayRange {
	one := func(field string) page.Day {
		return page.Day{
			Field: page.Field{Value: r.FormValue(field), Error: wrong[field]}, Offset: r.FormValue(field + "Offset"),
		}
	}
	return page.DayRange{From: one("from"), Until: one("until")}
}

// asked are the filters of a search, as its pages name them.
func asked(r *http.Request, fields ...string) url.Values {
	in := url.Values{}
	for _, f := range append(fields, "q", "device", "status", "from", "fromOffset", "until", "untilOffset", "in") {
		if s := r.FormValue(f); s != "" {
			in.Set(f, s)
		}
	}
	return in
}

const (
	inWords  = "words" // where a number is looked for if it is not that of a conversation
	maxWords = 200     // characters of a search, as in the API
)

// lookedFor returns the conversation that a search names, or else its words.
func lookedFor(find, in string) (chat, words string, err error) {
	chat, wrong := postern.ParseChat(find)
	switch {
	case find == "", wrong == nil && in != inWords:
		return chat, "", nil
	case utf8.RuneCountInString(find) > maxWords:
		return "", "", postern.Invalid("/q", "search for at most %d characters", maxWords)
	case !strings.ContainsFunc(find, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }):
		return "", "", postern.Invalid("/q", "enter words, a phone number, or a message ID")
	}
	return "", find, nil
}

// mayBeWords reports whether a search for a conversation without messages could mean words of a
// message: digits that are no number of a person, such as those of an order.
func mayBeWords(find string, q gateway.MessageQuery) bool {
	return q.ChatID != "" && q.Page.Cursor == "" && !strings.ContainsAny(find, "+@:")
}

// messageID extracts a message id from the search field.
func messageID(s string) (id postern.MessageID, ok bool) {
	s = strings.TrimSpace(s)
	return postern.MessageID(s), strings.HasPrefix(s, "msg_")
}

// choices lists the devices to choose from, oldest first, and always includes the chosen one.
func choices(names map[postern.DeviceID]string, chosen string) (list []page.Choice) {
	for _, id := range slices.Sorted(maps.Keys(names)) {
		if names[id] != "" { // it exists
			list = append(list, page.Choice{Value: string(id), Label: names[id]})
		}
	}
	if names[postern.DeviceID(chosen)] == "" && chosen != "" {
		list = append(list, page.Choice{Value: chosen, Label: chosen})
	}
	return list
}

func (d messages) show(w http.ResponseWriter, r *http.Request, v visit) error {
	m, err := d.g.Messages.Get(r.Context(), v.caller, postern.MessageID(r.PathValue("id")))
	if err != nil {
		return err
	}
	one, err := d.g.Devices.Get(r.Context(), v.caller, m.DeviceID)
	if err != nil {
		return err
	}
	body, err := postern.EncodeJSON(m)
	if err != nil {
		return err
	}
	view := page.MessageView{
		Message: messageOf(m, map[postern.DeviceID]string{one.ID: one.Name}, 0), To: string(m.To),
		Source:    writer(m.Source),
		NetworkID: m.NetworkID, JSON: indented(body),
		Steps: way(m), Every: every(m, time.Now()), Chats: m.ChatID != "",
	}
	events, err := d.g.Messages.Timeline(r.Context(), v.caller, m.ID, paging.Page{Limit: 200})
	if err != nil {
		return err
	}
	view.Steps = apart(withDetails(view.Steps, events.Data, d.urlsOf(r.Context(), v, events.Data)))
	if v.may(postern.MessagesWrite) {
		view.May = mayWith(m, time.Now())
	}
	if view.Quote, err = d.quoteOf(r.Context(), v, m, nil); err != nil {
		return err
	}
	if view.ShowsLog = v.may(postern.EventsRead); view.ShowsLog {
		view.Most = gateway.MostReported
		if view.Events, err = d.eventHeads(r, v, m.ID); err != nil {
			return err
		}
	}
	if m.ExpiresAt != 0 && (m.Status == postern.Queued || m.Status == postern.Sending) {
		view.Expires = m.ExpiresAt.Std()
	}
	for _, name := range slices.Sorted(maps.Keys(m.Metadata)) {
		view.Labels = append(view.Labels, page.Header{Name: name, Value: m.Metadata[name]})
	}
	return d.write(w, r, http.StatusOK, page.MessagePage(d.frame(r, v, "Message", "/messages"), view))
}

// eventHeads returns the events that report a message.
func (d messages) eventHeads(r *http.Request, v visit, id postern.MessageID) (list []page.EventHead, err error) {
	events, err := d.g.Messages.Events(r.Context(), v.caller, id)
	for _, e := range events {
		list = append(list, page.EventHead{ID: string(e.ID), Type: string(e.Type), At: e.At.Std()})
	}
	return list, err
}

// cancel ends a message that has not been sent.
func (d messages) cancel(w http.ResponseWriter, r *http.Request, v visit) error {
	id, said := postern.MessageID(r.PathValue("id")), "The message was canceled."
	_, err := d.g.Actions.Cancel(r.Context(), v.caller, id)
	if postern.ReasonOf(err) == postern.MessageNotCancelable {
		said, err = "It is too late to cancel the message: "+err.Error()+".", nil
	}
	if err != nil {
		return err
	}
	return d.done(w, r, said, messagePath(id))
}

// urlsOf returns the URLs of the endpoints to which a message's events were posted.
func (d messages) urlsOf(
	ctx context.Context, v visit, timeline []postern.TimelineEntry,
) map[postern.EndpointID]string {
	urls := map[postern.EndpointID]string{}
	for _, e := range timeline {
		if e.Webhook == nil || urls[e.Webhook.EndpointID] != "" {
			continue
		}
		urls[e.Webhook.EndpointID] = string(e.Webhook.EndpointID)
		if one, err := d.g.Webhooks.Get(ctx, v.caller, e.Webhook.EndpointID); err == nil {
			urls[one.ID] = one.URL
		}
	}
	return urls
}

func writer(source string) string {
	known := map[string]string{
		postern.FromAPI: "API or dashboard", postern.FromPhone: "The account's phone",
		postern.FromCompanion: "Another linked device of the account",
		postern.FromContact:   "The contact",
	}
	if s, ok := known[source]; ok {
		return s
	}
	return source
}

// every is the poll interval of a message's page: short at first, and long while it waits for a
// recipient who may never read it; 0 if the message is final and its file has come.
func every(m postern.Message, now time.Time) time.Duration {
	switch file := m.Content.Media; {
	case file != nil && file.Status == postern.MediaPending:
		return 2 * time.Second
	case m.Source != postern.FromAPI || m.Status.Rank() <= 0 || m.Status.Rank() >= postern.Played.Rank(),
		m.Status == postern.Read && !m.Content.Kind.IsPlayed():
		return 0
	case now.Sub(m.CreatedAt.Std()) < 10*time.Minute:
		return 2 * time.Second
	default:
		return 30 * time.Second
	}
}

// way returns the timeline of a message from the recorded times and the failure. The time of a
// failure is not recorded.
func way(m postern.Message) []page.WayStep {
	switch {
	case m.Direction == postern.Inbound:
		return arrived(m, "Sent by the contact")
	case m.Source != postern.FromAPI:
		return arrived(m, "Sent by the account outside Postern")
	}
	list := []page.WayStep{
		{Title: "Accepted", Text: "The message was stored and counts toward the plan.", At: m.CreatedAt.Std(), Kind: "done"},
	}
	switch m.Status {
	case postern.Failed:
		return append(append(list, passed(m)...), failed(m))
	case postern.Expired:
		return append(list, page.WayStep{
			Title: "Expired", Text: "The message expired before it could be sent. It does not count toward the plan.",
			Do: "Check that the device is connected, then send the message again.", At: m.ExpiresAt.Std(), Kind: "bad",
		})
	case postern.Canceled:
		return append(list, page.WayStep{
			Title: "Canceled", Text: "The message was canceled before it was sent. It does not count toward the plan.", Kind: "done",
		})
	case postern.Scheduled:
		list = append(list, page.WayStep{
			Title: "Scheduled", Text: "The message is sent at this time, or when the device is connected again after it.",
			At: m.SendAt.Std(), Kind: "now",
		})
	case postern.Queued:
		list = append(list, page.WayStep{
			Title: "Queued", Text: "The device sends its messages one at a time while it is connected.", Kind: "now",
		})
	case postern.Sending:
		list = append(list, page.WayStep{
			Title: "Sending",
			Text: "The message was handed to the network, which has not confirmed it yet. If no confirmation arrives, Postern " +
				"sends it again. The recipient gets it once.",
			Kind: "now",
		})
	case postern.Sent, postern.Delivered, postern.Read, postern.Played, postern.Received: // passed covers these
	}
	return append(append(list, passed(m)...), ahead(m)...)
}

// apart returns the steps with how long each came after the one before it. A time in whole seconds says little about less
// than that.
func apart(list []page.WayStep) []page.WayStep {
	for i := 1; i < len(list); i++ {
		before, s := list[i-1], &list[i]
		took := s.At.Sub(before.At)
		switch whole := before.Whole || s.Whole; {
		case before.At.IsZero() || took < 0 || whole && took < time.Second:
		case whole:
			s.After = "+" + took.Round(time.Second).String()
		default:
			s.After = "+" + brief(took)
		}
	}
	return list
}

// brief is a duration to two or three digits.
func brief(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// arrived is the timeline of a message that was not sent from here.
func arrived(m postern.Message, sent string) (list []page.WayStep) {
	if m.SentAt != 0 {
		list = append(list, page.WayStep{Title: sent, At: m.SentAt.Std(), Whole: true, Kind: "done"})
	}
	return append(list, page.WayStep{
		Title: "Recorded", Text: "The event was queued for the webhooks that subscribe to it.", At: m.CreatedAt.Std(),
		Kind: "done",
	})
}

// passed returns the steps that the network has confirmed.
func passed(m postern.Message) (list []page.WayStep) {
	for _, s := range stations(m) {
		if s.At != 0 {
			list = append(list, page.WayStep{Title: s.title, Text: s.text, At: s.At.Std(), Whole: true, Kind: "done"})
		}
	}
	return list
}

// ahead returns the steps that may still come.
func ahead(m postern.Message) (list []page.WayStep) {
	for _, s := range stations(m) {
		if s.At == 0 {
			list = append(list, page.WayStep{Title: s.title, Kind: "next"})
		}
	}
	return list
}

type station struct {
	title, text string

	At postern.Time
}

func stations(m postern.Message) []station {
	list := []station{
		{"Sent", "The network accepted the message.", m.SentAt},
		{"Delivered", "The message reached the recipient's phone.", m.DeliveredAt},
		{"Read", "The recipient read the message.", m.ReadAt},
	}
	if postern.IsChannel(m.ChatID) || m.ChatID == postern.StatusChat { // who saw a post is not recorded
		list[0].text = "The network accepted the post."
		return list[:1]
	}
	if postern.IsGroup(m.ChatID) {
		list[1].text, list[2].text = "The message reached everybody in the group.", "Everybody in the group read the message."
	}
	if m.Content.Kind.IsPlayed() {
		list = append(list, station{"Played", "The recipient played the message.", m.PlayedAt})
	}
	return list
}

// failed explains why a message was not sent.
func failed(m postern.Message) page.WayStep {
	s := page.WayStep{Title: "Failed", Kind: "bad", Text: "No reason was given."}
	if m.Error == nil {
		return s
	}
	known := map[postern.FailureCode]page.Why{
		postern.RecipientNotFound: {
			What: "The number is not on the network.",
			Do:   "Check the number and its country code.",
		},
		postern.NotInGroup: {
			What: "The account is not a member of the group.",
			Do:   "Ask an administrator of the group to add the account, then send the message again.",
		},
		postern.RestrictedSender: {
			What: "The network does not let this account write to people who have never written to it.",
			Do:   "Wait until the restriction ends, and let people write to you first.",
		},
		postern.NetworkRejected: {
			What: "The network refused the message.",
			Do:   "If other messages are refused too, check the account on its phone. It may be restricted.",
		},
		postern.EncryptionFailed: {
			What: "The message could not be encrypted for the recipient's phone.",
			Do:   "Send the message again in a few minutes.",
		},
		postern.DeviceLoggedOut: {
			What: "The device was logged out before the message was sent.",
			Do:   "Link the phone again, then send the message again.",
		},
		postern.Unconfirmed: {
			What: "The message was sent, but the network never confirmed it. It may have been delivered.",
			Do:   "Check with the recipient before you send it again. Otherwise they may get it twice.",
		},
	}
	why, ok := known[m.Error.Code]
	if !ok {
		why = page.Why{What: word(m.Error.Detail) + "."}
	}
	s.Text, s.Do = why.What+" ("+string(m.Error.Code)+")", why.Do
	return s
}

// withDetails adds repeated attempts, actions and posts to webhooks to the way of a message, at
// their times.
func withDetails(
	steps []page.WayStep, timeline []postern.TimelineEntry, urls map[postern.EndpointID]string,
) []page.WayStep {
	for _, e := range timeline {
		detail, ok := detailOf(e, urls)
		if !ok {
			continue
		}
		detail.At = e.At.Std()
		place := slices.IndexFunc(steps, func(s page.WayStep) bool { return s.At.IsZero() || s.At.After(detail.At) })
		if place < 0 {
			place = len(steps)
		}
		steps = slices.Insert(steps, place, detail)
	}
	return steps
}

// detailOf returns an entry of a timeline as a step; ok is false for those that other steps show.
func detailOf(e postern.TimelineEntry, urls map[postern.EndpointID]string) (s page.WayStep, ok bool) {
	switch s.Kind = "done"; {
	case e.Attempt != nil:
		s.Title = "Attempt " + strconv.Itoa(e.Attempt.Number)
		s.Text = map[string]string{
			"sent": "The network accepted the message.", "refused": "The network refused the message.",
			"not_connected": "The connection was lost before anything was sent.",
			"unconfirmed":   "The network did not confirm the message, so it is sent again.",
		}[e.Attempt.Outcome]
		return s, e.Attempt.Number > 1 || e.Attempt.Outcome == "not_connected" || e.Attempt.Outcome == "unconfirmed"
	case e.Action != nil:
		return actionStep(*e.Action), true
	case e.Webhook != nil:
		if urls[e.Webhook.EndpointID] != "" {
			s.Href = hookPath(e.Webhook.EndpointID) + "/deliveries/" + string(e.Webhook.DeliveryID)
		}
		s.Title, s.Text = "Webhook", string(e.Webhook.EventType)+" was posted to "+urls[e.Webhook.EndpointID]+"."
		if e.Webhook.Reason != "" {
			s.Kind, s.Do = "bad", "Look at the deliveries of the webhook to see why this attempt failed."
		}
		return s, true
	}
	return s, false
}

func actionStep(a postern.TimelineAction) page.WayStep {
	s := page.WayStep{Kind: "done", Text: "By you."}
	if a.FromLID != "" {
		s.Text = "By " + cmp.Or(string(a.From), a.FromLID) + "."
	}
	s.Title = map[string]string{
		"reaction": "Reaction " + cmp.Or(a.Emoji, "taken back"), "edit": "Edit", "delete": "Deletion", "vote": "Vote",
		"pin": "Pinned", "unpin": "Unpinned", "star": "Starred", "unstar": "Star removed", "read": "Marked as read", "played": "Marked as played",
	}[a.Type]
	switch a.Status {
	case postern.Queued, postern.Sending:
		s.Kind, s.Text = "now", s.Text+" The network has not confirmed it yet."
	case postern.Failed, postern.Expired:
		s.Kind, s.Text = "bad", s.Text+" It could not be sent."
		if a.Error != nil {
			s.Text, s.Do = s.Text+" ("+string(a.Error.Code)+")", word(a.Error.Detail)+"."
		}
	case postern.Scheduled, postern.Sent, postern.Delivered, postern.Read, postern.Played, postern.Canceled,
		postern.Received: // nothing to add
	}
	return s
}
