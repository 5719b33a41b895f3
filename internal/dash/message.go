package dash

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"postern/internal/dash/page"
	"postern/internal/postern"
)

func (d *dash) message(w http.ResponseWriter, r *http.Request, v visit) error {
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
		Message: messageOf(m, map[postern.DeviceID]string{one.ID: one.Name}, 0), To: string(m.To), Source: writer(m.Source), NetworkID: m.NetworkID, JSON: indented(body),
		Steps: way(m), Every: every(m, time.Now()), Chats: m.ChatID != "",
	}
	view.Body = m.Content.Text
	if m.ExpiresAt != 0 && (m.Status == postern.Queued || m.Status == postern.Sending) {
		view.Expires = m.ExpiresAt.Std()
	}
	for _, name := range slices.Sorted(maps.Keys(m.Metadata)) {
		view.Labels = append(view.Labels, page.Header{Name: name, Value: m.Metadata[name]})
	}
	return d.show(w, r, http.StatusOK, page.MessagePage(d.frame(r, v, "Message", "/messages"), view))
}

func writer(source string) string {
	known := map[string]string{
		postern.FromAPI: "The API, or somebody in this dashboard", postern.FromPhone: "The account, on its phone", "companion": "The account, on another linked device",
		postern.FromContact: "The contact",
	}
	if s, ok := known[source]; ok {
		return s
	}
	return source
}

// every is how often a page looks for a change of the message: often at first, and
// seldom when it waits for a recipient who may never read it; 0 when nothing comes.
func every(m postern.Message, now time.Time) time.Duration {
	switch {
	case m.Source != postern.FromAPI || m.Status.Rank() <= 0 || m.Status == postern.Read:
		return 0
	case now.Sub(m.CreatedAt.Std()) < 10*time.Minute:
		return 2 * time.Second
	default:
		return 30 * time.Second
	}
}

// way is what is kept of how a message came to its state: the times of the network's
// words, and the reason of an end. When an end came is not kept.
func way(m postern.Message) []page.WayStep {
	switch {
	case m.Direction == postern.Inbound:
		return arrived(m, "Sent by the contact")
	case m.Source != postern.FromAPI:
		return arrived(m, "Sent by the account, not from here")
	}
	list := []page.WayStep{{Title: "Accepted", Text: "It is kept here, and counts against the plan.", At: m.CreatedAt.Std(), Kind: "done"}}
	switch m.Status {
	case postern.Failed:
		return append(append(list, passed(m)...), failed(m))
	case postern.Expired:
		return append(list, page.WayStep{
			Title: "Expired", Text: "Its time was over before it could be sent. Nothing has left, and it does not count against the plan.",
			Do: "Look whether the device is connected, then send it again.", At: m.ExpiresAt.Std(), Kind: "bad",
		})
	case postern.Queued:
		list = append(list, page.WayStep{Title: "Waits to be sent", Text: "The device sends one after the other, at its pace, as soon as it is connected.", Kind: "now"})
	case postern.Sending:
		list = append(list, page.WayStep{Title: "Is being sent", Text: "It has left for the network, which has not answered yet. Without an answer it is sent again, and arrives once.", Kind: "now"})
	case postern.Sent, postern.Delivered, postern.Read, postern.Received: // passed says it
	}
	return append(append(list, passed(m)...), ahead(m)...)
}

// arrived is the way of a message that another has sent.
func arrived(m postern.Message, sent string) (list []page.WayStep) {
	if m.SentAt != 0 {
		list = append(list, page.WayStep{Title: sent, At: m.SentAt.Std(), Kind: "done"})
	}
	return append(list, page.WayStep{Title: "Recorded here", Text: "Webhooks that ask for it get the event from this moment on.", At: m.CreatedAt.Std(), Kind: "done"})
}

// passed are the stations that the network has told of.
func passed(m postern.Message) (list []page.WayStep) {
	for _, s := range stations(m) {
		if s.At != 0 {
			list = append(list, page.WayStep{Title: s.title, Text: s.text, At: s.At.Std(), Kind: "done"})
		}
	}
	return list
}

// ahead are those that may still come.
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
	return []station{
		{"Sent", "The network took it.", m.SentAt},
		{"Delivered", "It is on the recipient's phone.", m.DeliveredAt},
		{"Read", "The recipient has opened it.", m.ReadAt},
	}
}

// failed explains why a message was not sent.
func failed(m postern.Message) page.WayStep {
	s := page.WayStep{Title: "Failed", Kind: "bad", Text: "No reason was given."}
	if m.Error == nil {
		return s
	}
	known := map[postern.FailureCode]page.Why{
		postern.RecipientNotFound: {What: "The number is not on the network.", Do: "Check the number and its country's code."},
		postern.RestrictedSender:  {What: "The network does not let this account write to people who never wrote to it.", Do: "Wait until the restriction ends, and let people write first."},
		postern.NetworkRejected:   {What: "The network refused it.", Do: "If it refuses others too, look at the account on its phone: it may be restricted."},
		postern.EncryptionFailed:  {What: "It could not be encrypted for the recipient's phone.", Do: "Send it again in a few minutes."},
		postern.DeviceLoggedOut:   {What: "The device's link was removed before it was sent.", Do: "Link the phone again, then send it again."},
		postern.Unconfirmed:       {What: "It left, but the network never confirmed it. It may have arrived.", Do: "Ask before you send it again, or the recipient may get it twice."},
	}
	why, ok := known[m.Error.Code]
	if !ok {
		why = page.Why{What: word(m.Error.Detail) + "."}
	}
	s.Text, s.Do = why.What+" ("+string(m.Error.Code)+")", why.Do
	return s
}
