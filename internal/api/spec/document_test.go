package spec_test

import (
	"encoding/json"
	"slices"
	"testing"

	"postern/internal/api"
	"postern/internal/api/spec"
	"postern/internal/postern"
)

// TestServersFollowTheBaseURL asks for a document of a server that has an
// address, and of one that has none.
func TestServersFollowTheBaseURL(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{"https://gw.example.com/": "https://gw.example.com", "": "/"} {
		raw, err := api.Document(base)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct{ Servers []struct{ URL string } }
		if err := json.Unmarshal(raw, &doc); err != nil || len(doc.Servers) != 1 || doc.Servers[0].URL != want {
			t.Errorf("servers for %q: %v %v", base, doc.Servers, err)
		}
	}
}

// TestEveryOperationHasANote fails for an operation without a text, and for a
// text about no operation.
func TestEveryOperationHasANote(t *testing.T) {
	t.Parallel()
	raw, err := api.Document("")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, methods := range doc.Paths {
		for _, op := range methods {
			want = append(want, op.OperationID)
		}
	}
	slices.Sort(want)
	if got := spec.Notes(); !slices.Equal(got, want) {
		t.Errorf("notes about %v, operations %v", got, want)
	}
}

// TestWebhooksAreDescribed looks that every kind of event that is posted is in the document,
// and that each property of the schemas about webhooks has a description.
func TestWebhooksAreDescribed(t *testing.T) {
	t.Parallel()
	raw, err := api.Document("")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Webhooks map[string]struct {
			Post struct {
				Description string
				RequestBody struct {
					Content map[string]struct{ Example json.RawMessage }
				}
			}
		}
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Description string }
			}
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for _, kind := range append(postern.EventTypes(), postern.WebhookTest, postern.WebhookVerification) {
		post := doc.Webhooks[string(kind)].Post
		if post.Description == "" || post.RequestBody.Content["application/json"].Example == nil {
			t.Errorf("%s has no description or no example", kind)
		}
	}
	for _, name := range []string{
		"Attempt", "Delivery", "DeliveryLog", "DisabledEndpoint", "DisabledEvent", "Endpoint",
		"EndpointHour", "EndpointWithSecret", "NewReplay", "NewWebhook", "Replay", "Rotation", "TestEvent", "Tested",
		"Verification", "VerificationAnswer", "WebhookChange",
	} {
		if len(doc.Components.Schemas[name].Properties) == 0 {
			t.Errorf("there is no schema %s", name)
		}
		for property, p := range doc.Components.Schemas[name].Properties {
			if p.Description == "" {
				t.Errorf("%s.%s has no description", name, property)
			}
		}
	}
}
