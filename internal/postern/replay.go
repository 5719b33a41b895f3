package postern

import "slices"

// ReplayStatus is the state of a replay.
type ReplayStatus string

// The states of a replay.
const (
	ReplayRunning   ReplayStatus = "running"
	ReplayCompleted ReplayStatus = "completed"
	ReplayStopped   ReplayStatus = "stopped"
)

// Replay delivers events of the log to an endpoint again, with the same ids and bytes,
// including events that the endpoint never received.
type Replay struct {
	ID             ReplayID     `json:"id" doc:"Opaque id of the replay." example:"rpl_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	EndpointID     EndpointID   `json:"endpointId" doc:"The endpoint to which events are delivered again." example:"whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Status         ReplayStatus `json:"status" enum:"running,completed,stopped" doc:"It waits while its endpoint is not active." example:"running"`
	Since          Time         `json:"since" format:"date-time" nullable:"true" doc:"Events recorded at this time or later." example:"2026-11-21T09:00:00.000Z"`
	Until          Time         `json:"until" format:"date-time" nullable:"true" doc:"Events recorded before this time, and before the replay was made." example:"2026-11-22T09:00:00.000Z"`
	Types          []string     `json:"types" nullable:"true" doc:"Only events of these types; null for all that the endpoint receives." example:"[\"message.*\"]"`
	OnlyFailed     bool         `json:"onlyFailed" doc:"Only events whose delivery was exhausted."`
	Matched        int          `json:"matched" doc:"How many deliveries have been queued so far." example:"120"`
	Delivered      int          `json:"delivered" doc:"How many of these deliveries succeeded." example:"118"`
	Failed         int          `json:"failed" doc:"How many of these deliveries were exhausted." example:"0"`
	AlreadyPending int          `json:"alreadyPending" doc:"How many events were left as they were, because their delivery to the endpoint was already pending. They are not part of matched." example:"2"`
	CreatedAt      Time         `json:"createdAt" format:"date-time" doc:"When the replay was created." example:"2026-11-22T09:00:00.000Z"`
	EndedAt        Time         `json:"endedAt" format:"date-time" nullable:"true" doc:"When it ended; null while it runs." example:"2026-11-22T09:01:00.000Z"`

	WorkspaceID WorkspaceID `json:"-"`
	Position    int64       `json:"-"` // the log has been read up to here
	Last        int64       `json:"-"` // the log will be read up to here
}

// Wants reports whether the replay includes events of this type.
func (r Replay) Wants(t EventType) bool {
	return r.Types == nil || slices.ContainsFunc(r.Types, func(pattern string) bool { return MatchesEvent(pattern, t) })
}
