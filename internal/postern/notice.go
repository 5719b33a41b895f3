package postern

import "encoding/json"

// notice is an event that is about no device and is not in the log.
type notice struct {
	EventID     EventID           `json:"eventId"`
	Type        EventType         `json:"type"`
	Timestamp   Time              `json:"timestamp"`
	DeviceID    DeviceID          `json:"deviceId"`
	WorkspaceID WorkspaceID       `json:"workspaceId"`
	Test        *Tested           `json:"test,omitempty"`
	Webhook     *DisabledEndpoint `json:"webhook,omitempty"`
}

// Tested is the object of a webhook.test.
type Tested struct {
	EndpointID EndpointID `json:"endpointId" doc:"The endpoint that the event was sent to." example:"whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

// DisabledEndpoint is the object of a webhook.disabled. It names an endpoint without its URL,
// which may contain a secret.
type DisabledEndpoint struct {
	ID           EndpointID     `json:"id" doc:"Id of the endpoint." example:"whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Description  string         `json:"description" doc:"The note for people that it was given." example:"orders service"`
	Status       EndpointStatus `json:"status" enum:"disabled" doc:"Always disabled." example:"disabled"`
	StatusReason Maybe          `json:"statusReason" nullable:"true" enum:"gone,failing" doc:"Why: it responded with 410 (gone), or no delivery succeeded for five days (failing)." example:"failing"`
}

// TestNotice is the body of a webhook.test for the endpoint.
func (e Endpoint) TestNotice(id EventID, at Time) []byte {
	return encodeNotice(
		notice{EventID: id, Type: WebhookTest, Timestamp: at, WorkspaceID: e.WorkspaceID, Test: &Tested{e.ID}})
}

// DisabledNotice is the body of a webhook.disabled about the endpoint.
func (e Endpoint) DisabledNotice(id EventID, at Time) []byte {
	return encodeNotice(notice{
		EventID: id, Type: WebhookDisabled, Timestamp: at, WorkspaceID: e.WorkspaceID,
		Webhook: &DisabledEndpoint{e.ID, e.Description, e.Status, e.StatusReason},
	})
}

// encodeNotice cannot fail: a notice contains only texts and times.
func encodeNotice(n notice) []byte {
	b, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return b
}
