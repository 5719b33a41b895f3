package postern

import (
	"cmp"
	"fmt"
	"slices"
)

// AttemptOutcome is what came of an attempt to send a message.
type AttemptOutcome string

// The outcomes of attempts. AttemptUnconfirmed: the network has not answered, or not yet.
const (
	AttemptSent         AttemptOutcome = "sent"
	AttemptRefused      AttemptOutcome = "refused"
	AttemptNotConnected AttemptOutcome = "not_connected"
	AttemptUnconfirmed  AttemptOutcome = ""
)

// SendAttempt is one attempt to send a message.
type SendAttempt struct {
	Number  int
	At      Time
	Outcome AttemptOutcome
}

// Post is one attempt to deliver an event about a message to a webhook endpoint.
type Post struct {
	EndpointID EndpointID `json:"endpointId" doc:"The webhook endpoint." example:"whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	DeliveryID DeliveryID `json:"deliveryId" doc:"The delivery of which this is an attempt." example:"dlv_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	EventID    EventID    `json:"eventId" doc:"The event that was posted." example:"evt_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	EventType  EventType  `json:"eventType" doc:"Type of the event." example:"message.sent"`
	Number     int        `json:"number" doc:"Number of the attempt, starting with 1." example:"1"`
	At         Time       `json:"-"`
	DurationMs int        `json:"durationMs" doc:"How long it took, in milliseconds." example:"120"`
	Status     int        `json:"status" doc:"HTTP status of the response; 0 if there was none." example:"200"`
	Reason     Maybe      `json:"reason" nullable:"true" enum:"dns,connect,tls,timeout,reset,redirect,blocked,status,body" doc:"Why it failed; null when it succeeded."`
}

// Receipt is what one recipient of a message has confirmed.
type Receipt struct {
	From        Maybe  `json:"from" nullable:"true" doc:"Number of the recipient; null while the network hides it." example:"+15551234567"`
	FromLID     string `json:"fromLid,omitempty" doc:"Identifies the recipient, as in the chatId of an event; absent if only the number is known." example:"lid:123456789012345"`
	DeliveredAt Time   `json:"deliveredAt" format:"date-time" nullable:"true" doc:"When the message reached the recipient, by the network's clock." example:"2026-11-21T09:00:01.000Z"`
	ReadAt      Time   `json:"readAt" format:"date-time" nullable:"true" doc:"When the recipient read the message, by the network's clock; null if that is not known." example:"2026-11-21T09:00:02.000Z"`
	PlayedAt    Time   `json:"playedAt" format:"date-time" nullable:"true" doc:"When the recipient played the message, by the network's clock; null if that is not known." example:"2026-11-21T09:00:03.000Z"`
}

// Place is the position of the receipt in the list of a message's receipts.
func (r Receipt) Place() string { return cmp.Or(r.FromLID, string(r.From)) }

// NotBefore moves times that are before a time to it: the network's clock has only whole seconds.
func (r *Receipt) NotBefore(at Time) {
	for _, t := range []*Time{&r.DeliveredAt, &r.ReadAt, &r.PlayedAt} {
		if *t != 0 {
			*t = max(*t, at)
		}
	}
}

// Receipt returns what the recipient of a message in a direct chat has confirmed; ok is false if that is nothing.
func (m Message) Receipt() (r Receipt, ok bool) {
	r = Receipt{From: m.To, DeliveredAt: m.DeliveredAt, ReadAt: m.ReadAt, PlayedAt: m.PlayedAt}
	if NumberOfChat(m.ChatID) == "" {
		r.FromLID = m.ChatID
	}
	return r, m.Direction == Outbound && m.DeliveredAt != 0 && IsDirect(m.ChatID)
}

// Progress is what is known of the way of a message, in addition to the message itself.
type Progress struct {
	QueuedAt   Time          // when a scheduled message joined the queue; 0 for others
	FinishedAt Time          // when sending was done or given up; 0 before
	Attempts   []SendAttempt // oldest first
	Actions    []ActionTaken // oldest first
	Posts      []Post        // by event
}

// ActionTaken is an action on a message, and when sending it was done or given up.
type ActionTaken struct {
	Message
	FinishedAt Time
}

// TimelineEntry is something that happened to a message.
type TimelineEntry struct {
	At      Time            `json:"at" format:"date-time" doc:"When. The times of delivered, read and played are those of the network, whose clock has only whole seconds." example:"2026-11-21T09:00:00.000Z"`
	Type    string          `json:"type" enum:"accepted,queued,attempt,sent,delivered,read,played,failed,expired,canceled,received,action,webhook" doc:"What happened. attempt: the message was handed to the network. action: an action on it was requested, or arrived. webhook: an event about it was posted." example:"attempt"`
	Attempt *TimelineTry    `json:"attempt,omitempty" doc:"The attempt; only of the type attempt."`
	Error   *Failure        `json:"error,omitempty" doc:"Why the message failed; only of the type failed."`
	Action  *TimelineAction `json:"action,omitempty" doc:"The action; only of the type action."`
	Webhook *Post           `json:"webhook,omitempty" doc:"The attempt to post an event; only of the type webhook."`

	place string // in the timeline
}

// TimelineTry is an attempt to send a message, in its timeline.
type TimelineTry struct {
	Number  int    `json:"number" doc:"Number of the attempt, starting with 1." example:"1"`
	Outcome string `json:"outcome" enum:"sent,refused,not_connected,unconfirmed" doc:"What came of it. sent: the network took the message. not_connected: nothing left. unconfirmed: the network has not answered, or not yet." example:"sent"`
}

// TimelineAction is an action on a message, in its timeline.
type TimelineAction struct {
	Type    string        `json:"type" enum:"reaction,edit,delete,vote,pin,unpin,star,unstar,read,played" doc:"What was done." example:"reaction"`
	From    Maybe         `json:"from" nullable:"true" doc:"Number of the person who did it; null while the network hides it." example:"+15551234567"`
	FromLID string        `json:"fromLid,omitempty" doc:"Identifies a contact who did it, as in the chatId of an event; absent for the account itself." example:"lid:123456789012345"`
	Emoji   string        `json:"emoji,omitempty" doc:"The emoji of a reaction; absent if a reaction was taken back." example:"👍"`
	Status  MessageStatus `json:"status" enum:"queued,sending,sent,failed,expired,received" doc:"How far the action has come. received: it arrived from the network." example:"sent"`
	EndedAt Time          `json:"endedAt,omitzero" format:"date-time" doc:"When the action was sent, or given up; absent before, and if it arrived." example:"2026-11-21T09:00:01.000Z"`
	Error   *Failure      `json:"error" nullable:"true" doc:"Why the action failed."`
}

// Place orders the entries of a timeline, and names them in cursors.
func (e TimelineEntry) Place() string { return e.place }

// Timeline returns what happened to m, oldest first.
func (m Message) Timeline(p Progress) []TimelineEntry {
	list := m.steps(p)
	for _, a := range p.Actions {
		if kind, ok := m.effect(a.Message); ok {
			list = append(list, TimelineEntry{At: a.CreatedAt, Type: "action", Action: a.entry(kind), place: string(a.ID)})
		}
	}
	for _, post := range p.Posts {
		list = append(list, TimelineEntry{
			At: post.At, Type: "webhook", Webhook: &post, place: fmt.Sprintf("%s %09d", post.DeliveryID, post.Number),
		})
	}
	for i := range list {
		list[i].place = fmt.Sprintf("%015d %s", list[i].At, list[i].place)
	}
	slices.SortFunc(list, func(a, b TimelineEntry) int { return cmp.Compare(a.place, b.place) })
	return list
}

// steps returns the steps of the message itself. Each is at least as late as the one before,
// although the network's clock has only whole seconds.
func (m Message) steps(p Progress) (list []TimelineEntry) {
	last := Time(0)
	add := func(at Time, e TimelineEntry) {
		last = max(last, at)
		e.At, e.place = last, fmt.Sprintf("%06d", len(list)) // before all others of the time
		list = append(list, e)
	}
	if m.Source != FromAPI {
		add(m.CreatedAt, TimelineEntry{Type: "received"})
	} else {
		add(m.CreatedAt, TimelineEntry{Type: "accepted"})
		if queued := cmp.Or(p.QueuedAt, m.CreatedAt); m.Status != Scheduled && (m.SendAt == 0 || p.QueuedAt != 0) {
			add(queued, TimelineEntry{Type: "queued"})
		}
	}
	for i, a := range p.Attempts {
		add(a.At, TimelineEntry{Type: "attempt", Attempt: m.try(a, i == len(p.Attempts)-1)})
	}
	if m.Source == FromAPI && m.SentAt != 0 {
		add(m.SentAt, TimelineEntry{Type: string(Sent)})
	}
	for _, step := range []struct {
		at Time
		to MessageStatus
	}{{m.DeliveredAt, Delivered}, {m.ReadAt, Read}, {m.PlayedAt, Played}} {
		if step.at != 0 {
			add(step.at, TimelineEntry{Type: string(step.to)})
		}
	}
	if m.Status == Failed || m.Status == Expired || m.Status == Canceled {
		add(p.FinishedAt, TimelineEntry{Type: string(m.Status), Error: m.Error})
	}
	return list
}

// try returns the entry of an attempt. A receipt shows that the last one was successful, even if
// the network's answer was lost.
func (m Message) try(a SendAttempt, last bool) *TimelineTry {
	outcome := cmp.Or(string(a.Outcome), "unconfirmed")
	if last && m.Status.Rank() >= Sent.Rank() {
		outcome = string(AttemptSent)
	}
	return &TimelineTry{Number: a.Number, Outcome: outcome}
}

// effect returns the name of an action in timelines. It returns false for an action that has no
// effect on m, such as an edit by somebody who is not the sender.
func (m Message) effect(a Message) (kind string, ok bool) {
	switch a.Content.Kind {
	case KindReaction, KindVote, KindRead, KindPlayed:
		return string(a.Content.Kind), true
	case KindPin:
		if a.Content.Text == "" {
			return "unpin", true
		}
		return "pin", true
	case KindStar:
		if !a.Content.IsStar() {
			return "unstar", true
		}
		return "star", true
	case KindEdit:
		return "edit", m.isBy(a)
	case KindRevoke:
		deleted := m.State.DeletedAt == cmp.Or(a.SentAt, a.CreatedAt)
		return "delete", m.isBy(a) || m.Moderates(a) && (a.Direction == Outbound || deleted)
	default:
		return "", false
	}
}

func (a ActionTaken) entry(kind string) *TimelineAction {
	e := &TimelineAction{Type: kind, From: a.From, FromLID: a.actor(), Status: a.Status, EndedAt: a.FinishedAt, Error: a.Error}
	if a.Content.Kind == KindReaction {
		e.Emoji = a.Content.Text
	}
	return e
}
