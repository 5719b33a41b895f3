package postern

import "encoding/json"

// notice is an event that is about no device and is not in the log.
type notice struct {
	EventID     EventID       `json:"eventId"`
	Type        EventType     `json:"type"`
	Timestamp   Time          `json:"timestamp"`
	DeviceID    DeviceID      `json:"deviceId"`
	WorkspaceID WorkspaceID   `json:"workspaceId"`
	Test        *testNotice   `json:"test,omitempty"`
	Webhook     *disabledHook `json:"webhook,omitempty"`
}

type testNotice struct {
	EndpointID EndpointID `json:"endpointId"`
}

// disabledHook names an endpoint without its URL, which may contain a secret.
type disabledHook struct {
	ID           EndpointID     `json:"id"`
	Description  string         `json:"description"`
	Status       EndpointStatus `json:"status"`
	StatusReason Maybe          `json:"statusReason"`
}

// TestNotice is the body of a webhook.test for the endpoint.
func (e Endpoint) TestNotice(id EventID, at Time) []byte {
	return encodeNotice(
		notice{EventID: id, Type: WebhookTest, Timestamp: at, WorkspaceID: e.WorkspaceID, Test: &testNotice{e.ID}})
}

// DisabledNotice is the body of a webhook.disabled about the endpoint.
func (e Endpoint) DisabledNotice(id EventID, at Time) []byte {
	return encodeNotice(notice{
		EventID: id, Type: WebhookDisabled, Timestamp: at, WorkspaceID: e.WorkspaceID,
		Webhook: &disabledHook{e.ID, e.Description, e.Status, e.StatusReason},
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
