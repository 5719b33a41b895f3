package api

import (
	"cmp"
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
	Types    []string         `query:"type" doc:"Only events of these types: names and prefixes such as message.*, separated by commas." example:"[\"message.*\"]"`
	DeviceID postern.DeviceID `query:"deviceId" doc:"Only events of this device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

type eventsInput struct {
	EventFilter
	Paging
	After postern.EventID `query:"after" doc:"Only events after this one; cannot be combined with cursor." example:"evt_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
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
	After postern.EventID `query:"after" doc:"Id of the last event that you received; the stream continues after it. By default the stream starts with new events." example:"evt_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Last  postern.EventID `header:"Last-Event-ID" doc:"The same as after, which it replaces: an EventSource that reconnects sends it, with the URL that it began with." example:"evt_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

// stream follows the log until the caller leaves, its key ends, or it stops
// reading. A reader that names no event is first told its position: if it is cut
// off before its first event, it continues from there and misses nothing.
func (h events) stream(ctx context.Context, q *request, in *streamEventsInput) (*huma.StreamResponse, error) {
	after := cmp.Or(in.Last, in.After)
	log, err := h.gateway.Events.Follow(ctx, q.caller, gateway.EventQuery{
		Types: in.Types, DeviceID: in.DeviceID, After: after,
	})
	if err != nil {
		return nil, err
	}
	return h.streams.answer(q, func(ctx context.Context, s *stream) {
		if after != "" || s.place(log.Start()) {
			h.follow(ctx, q, log, s)
		}
	})
}

// place tells where the stream begins. An empty log has no place: an empty id would make
// a reader forget the last one that it knows.
func (s *stream) place(id postern.EventID) bool {
	if id == "" {
		return s.Text(": no events yet\n\n")
	}
	return s.Text("id: " + string(id) + "\n\n")
}

// follow writes the log page by page, and waits at its end. A slow reader keeps
// one page in memory; one that takes nothing for [streamWrite] is dropped.
func (h events) follow(ctx context.Context, q *request, log *gateway.LogReader, s *stream) {
	logged := log.Watch()
	defer logged.Close()
	key, err := h.streams.watchKey(q, "streamEvents")
	if err != nil {
		return // the key may do less than a moment ago
	}
	defer key.changed.Close()
	for key.good(ctx) {
		list, more, err := log.Next(ctx)
		if err != nil || !s.showEvents(list) || !more && !key.wait(ctx, s, logged) {
			return
		}
	}
}

func (s *stream) showEvents(list []gateway.LoggedEvent) bool {
	for _, e := range list {
		head := "id: " + string(e.ID) + "\nevent: " + string(e.Type) + "\ndata: "
		if !s.Write([]byte(head), e.Body, []byte("\n\n")) {
			return false
		}
	}
	return true
}
