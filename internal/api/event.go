package api

import (
	"context"

	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
)

// events are the operations on the log of events.
type events struct {
	gateway *gateway.Gateway
	streams *streams
}

// loggedEvent is an event in an answer: its stored bytes.
type loggedEvent struct{ body []byte }

// MarshalJSON writes the bytes as they are.
func (e loggedEvent) MarshalJSON() ([]byte, error) { return e.body, nil }

// EventFilter are the parameters that narrow the log.
type EventFilter struct {
	Types    []string         `query:"type" doc:"Only these kinds: names and prefixes such as message.*, with commas between." example:"[\"message.*\"]"`
	DeviceID postern.DeviceID `query:"deviceId" doc:"Only events of this device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

type eventsInput struct {
	EventFilter
	Paging
	After postern.EventID `query:"after" doc:"Only events behind this one; not beside cursor." example:"evt_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

func (h events) list(ctx context.Context, q *request, in *eventsInput) (*output[List[loggedEvent]], error) {
	l, err := h.gateway.Events.List(ctx, q.caller, gateway.EventQuery{
		Types: in.Types, DeviceID: in.DeviceID, After: in.After, Page: in.page(),
	})
	shown := paging.List[loggedEvent]{Next: l.Next}
	for _, e := range l.Data {
		shown.Data = append(shown.Data, loggedEvent{e.Body})
	}
	return answerList(shown, err)
}

type streamEventsInput struct {
	EventFilter
	After postern.EventID `header:"Last-Event-ID" doc:"Id of the last event seen; the stream goes on behind it. Without it: what is recorded from now on." example:"evt_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

// stream follows the log until the caller goes away, its key ends, or it
// does not read on. A reader that names no event is told first where it is: cut
// off before its first event it can go on from there and miss nothing.
func (h events) stream(ctx context.Context, q *request, in *streamEventsInput) (*huma.StreamResponse, error) {
	log, err := h.gateway.Events.Follow(ctx, q.caller, gateway.EventQuery{Types: in.Types, DeviceID: in.DeviceID, After: in.After})
	if err != nil {
		return nil, err
	}
	return h.streams.answer(q, func(s *stream) {
		if in.After != "" || s.write("id: "+string(log.Start())+"\n\n") {
			h.follow(ctx, q, log, s)
		}
	})
}

// follow writes the log page by page, and waits at its end. A reader
// that is slow holds one page in memory and no more; one that takes nothing
// for [streamWrite] is dropped.
func (h events) follow(ctx context.Context, q *request, log *gateway.LogReader, s *stream) {
	logged := log.Watch()
	defer logged.Close()
	key, err := h.streams.watchKey(q, "streamEvents")
	if err != nil {
		return // the key may do less than a moment ago
	}
	defer key.changed.Close()
	for {
		list, more, err := log.Next(ctx)
		if err != nil || !s.showEvents(list) {
			return
		}
		if !more && !key.wait(ctx, s, logged) || !key.good(ctx) {
			return
		}
	}
}

func (s *stream) showEvents(list []gateway.LoggedEvent) bool {
	for _, e := range list {
		if !s.write("id: " + string(e.ID) + "\nevent: " + string(e.Type) + "\ndata: " + string(e.Body) + "\n\n") {
			return false
		}
	}
	return true
}
