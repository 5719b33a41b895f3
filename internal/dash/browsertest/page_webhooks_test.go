package browsertest

import (
	"time"

	. "postern/internal/dash/page"
)

// hostileWebhooks are the pages of webhooks, with s wherever a text can be.
func hostileWebhooks(f Frame, s string) []sample {
	list := []sample{
		{"Webhooks", Webhooks(f, full[WebhooksView](s))},
		{"Webhooks none", Webhooks(f, WebhooksView{More: s})},
		{"WebhookForm", WebhookForm(f, full[WebhookFormView](s))},
		{"WebhookSecret", WebhookSecret(f, full[WebhookSecretView](s))},
		{"WebhookReveal", WebhookReveal(f, full[WebhookRevealView](s))},
		{"Deliveries", Deliveries(f, full[DeliveriesView](s))},
		{"Deliveries none", Deliveries(f, DeliveriesView{ID: s, URL: s, More: s})},
		{"Replays", Replays(f, full[ReplaysView](s))},
		{"Replays none", Replays(f, ReplaysView{ID: s, URL: s, More: s})},
		{"ReplayForm", ReplayForm(f, full[ReplayFormView](s))},
	}
	for _, status := range []string{s, "active", "pending", "failed", "paused", "running", "completed"} {
		w, d, r := full[WebhookView](s), full[DeliveryView](s), full[ReplayView](s)
		w.Webhook.Status, d.Delivery.Status, r.Status = status, status, status
		list = append(
			list, sample{"Webhook " + status, WebhookPage(f, w)}, sample{"Delivery " + status, DeliveryPage(f, d)},
			sample{"Replay " + status, ReplayPage(f, r)},
		)
	}
	shown := full[DeliveryView](s)
	shown.Hidden = ""
	return append(list, sample{"Delivery with its body", DeliveryPage(f, shown)})
}

// webhookSamples are the pages of webhooks with example data.
func webhookSamples(frame func(title, current string) Frame, at time.Time) []sample {
	f := frame("Webhooks", "/webhooks")
	events := []EventChoice{
		{"*", "Everything.", true},
		{"message.*", "All message events.", false},
		{"message.received", "A message from a contact was received.", false},
	}
	hook := Webhook{
		ID: "whk_1", URL: "https://hooks.example.com/postern", Description: "orders service", Status: "active",
		Events: []string{"*"}, Succeeded: 1204, LastSuccess: at,
	}
	ill := Webhook{
		ID: "whk_2", URL: "https://staging.example.com/a/very/long/path/that/somebody/has/chosen/for/a/reason",
		Status: "failed", Events: []string{"message.received", "message.read"}, Succeeded: 3, Failed: 14,
		LastSuccess: at,
		LastFailure: at,
	}
	hours := chartSample("attempts", at, time.Hour)
	active := WebhookView{
		Webhook: hook, Change: true, Plan: true, InFlight: 8, Key: "whpk_x", Created: at, Verified: at,
		LastFour: "x9Q=", Chart: hours,
		Headers: []string{"X-Tenant"}, Devices: []Choice{{"dev_1", "Support"}, {"dev_2", "Sales"}},
	}
	failed := WebhookView{
		Webhook: ill, Change: true, Plan: true, Created: at, LastFour: "x9Q=", Chart: hours, Tries: 5, TriesOf: 5,
		Why: Why{"The connection failed.", "Check that the server runs."},
	}
	pending := WebhookView{
		Webhook: ill, Pending: "https://new.example.com", Created: at, Chart: Chart{ID: "attempts", Title: "Attempts"},
		Tries: 1, TriesOf: 5, NextTry: at, Asked: true, Why: Why{"The name was not found.", "Check the spelling."},
	}
	pending.Webhook.Status = "pending"
	for _, v := range []*WebhookView{&active, &failed, &pending} {
		v.Backlog.Webhook = "whk_1" // a path with an empty part is redirected, and the page is loaded anew
	}
	done := Delivery{
		"dlv_1", "evt_01JD8Z3NDEKTSV4RRFFQ69G5FA", "message.received", "succeeded", 2, "HTTP 200", at, time.Time{},
	}
	waits := Delivery{
		"dlv_2", "evt_01JD8Z3NDEKTSV4RRFFQ69G5FB", "message.read", "pending", 1, "HTTP 503", at, at.Add(time.Minute),
	}
	attempts := []Attempt{
		{Number: 2, At: at, Signed: at, DurationMs: 42, Status: 200, Good: true, Answer: `{"ok":true}`},
		{
			Number: 1, At: at, Signed: at, DurationMs: 15000,
			Why: Why{
				"The endpoint did not respond in time.",
				"Answer first.",
			},
		},
	}
	replay := ReplayView{
		Webhook: "whk_1", URL: hook.URL, ID: "rpl_1", Status: "running", Since: at, Matched: 120, Delivered: 70,
		Failed:  2,
		Created: at, Stop: true,
	}
	ended := replay
	ended.Status, ended.Ended = "completed", at
	return []sample{
		{"webhooks-none", Webhooks(f, WebhooksView{Change: true})},
		{"webhooks", Webhooks(f, WebhooksView{Change: true, Plan: true, Webhooks: []Webhook{hook, ill}, More: "/webhooks?after=x"})},
		{"webhook-form", WebhookForm(f, WebhookFormView{Events: events})},
		{
			"webhook-form-refused",
			WebhookForm(f, WebhookFormView{
				ID: "whk_1", URL: Field{"http://x", "The address needs https."}, Events: events,
				EventsError: "Choose one.",
				Problem:     "The webhook was not changed.",
			}),
		},
		{
			"webhook-secret",
			WebhookSecret(f, WebhookSecretView{
				ID: "whk_1", URL: hook.URL, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=", Made: true,
				Old: at,
			}),
		},
		{
			"webhook-reveal",
			WebhookReveal(f, WebhookRevealView{ID: "whk_1", Password: Field{"", "This password is not correct."}}),
		},
		{"webhook-active", WebhookPage(f, active)},
		{"webhook-failed", WebhookPage(f, failed)},
		{"webhook-pending", WebhookPage(f, pending)},
		{
			"deliveries",
			Deliveries(f, DeliveriesView{
				ID: "whk_1", URL: hook.URL, Status: "pending", Types: []string{"message.*"},
				Deliveries: []Delivery{
					done,
					waits,
				},
				More: "/webhooks/whk_1/deliveries?after=x",
			}),
		},
		{
			"delivery",
			DeliveryPage(f, DeliveryView{
				Webhook: "whk_1", URL: hook.URL, Delivery: waits, Device: Choice{"dev_1", "Support"},
				Body:    "{\n  \"eventId\": \"evt_1\"\n}",
				Headers: []Header{{"webhook-id", "evt_1"}}, Attempts: attempts, Retry: true,
			}),
		},
		{
			"webhook-form-details",
			WebhookForm(f, WebhookFormView{
				ID: "whk_1", Events: events,
				Devices: []DeviceChoice{
					{"dev_1", "Support", true},
					{"dev_2", "Sales", false},
				},
				Headers:  Field{"Host: x", "A header that the delivery itself sets cannot be replaced."},
				InFlight: Field{"65", "From 1 to 64."}, V1a: true,
			}),
		},
		{"replays-none", Replays(f, ReplaysView{ID: "whk_1", URL: hook.URL, Replay: true})},
		{
			"replays",
			Replays(f, ReplaysView{
				ID: "whk_1", URL: hook.URL, Replay: true, Replays: []ReplayView{replay, ended},
				More: "/webhooks/whk_1/replays?after=x",
			}),
		},
		{
			"replay-form",
			ReplayForm(f, ReplayFormView{
				ID: "whk_1", URL: hook.URL, Since: Field{"2026-11-21T09:00", ""},
				Types: events,
			}),
		},
		{"replay-running", ReplayPage(f, replay)},
		{"replay-ended", ReplayPage(f, ended)},
	}
}
