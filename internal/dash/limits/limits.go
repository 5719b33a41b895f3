// Package limits explains a plan: its limits, how near a workspace is to them, and what happens at each of them.
package limits

import (
	"time"

	"postern/internal/dash/numbers"
	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/postern"
)

// nearly is the percentage of a limit from which a meter warns.
const nearly = 90

// Meter shows how much of a limit is used.
func Meter(label string, u gateway.Used) page.Meter {
	return page.Meter{
		Label: label, Words: numbers.Of(u.Used) + " of " + numbers.Of(u.Limit), Note: nearness(u.Used, u.Limit),
		Used: u.Used, Limit: u.Limit,
	}
}

// StorageMeter counts KiB, so that a small part of the limit is seen.
func StorageMeter(u gateway.UsedBytes) page.Meter {
	used, limit := int(u.Used>>10), int(u.Limit>>10)
	return page.Meter{
		Label: "Stored files", Words: postern.BytesWords(u.Used) + " of " + postern.BytesWords(u.Limit),
		Note: nearness(used, limit), Used: used, Limit: limit,
	}
}

// nearness says whether a limit is reached, or nearly.
func nearness(used, limit int) string {
	switch {
	case used >= limit:
		return "Limit reached."
	case used*100 >= limit*nearly:
		return "Almost at the limit."
	}
	return ""
}

// Of returns the limits of a plan.
func Of(p postern.Plan, kept gateway.Retention) []page.Tile {
	list := []page.Tile{
		{Label: "Linked devices", Value: numbers.Of(p.Devices)},
		{Label: "Messages per month", Value: numbers.Of(p.Messages), Note: "UTC calendar months"},
		{Label: "REST API and webhooks", Value: "Not included"},
	}
	if p.API {
		list[2].Value = "Included"
		list = append(list,
			page.Tile{
				Label: "Requests per minute", Value: numbers.Of(p.RequestsPerMinute),
				Note: "per key and for the workspace",
			},
			page.Tile{Label: "Webhooks", Value: numbers.Of(p.Endpoints)},
			page.Tile{Label: "First delivery attempts per minute", Value: numbers.Of(p.FirstAttempts)})
	}
	list = append(list,
		page.Tile{Label: "Devices in total", Value: numbers.Of(p.Caps.Devices), Note: "linked or not"},
		page.Tile{Label: "API keys", Value: numbers.Of(p.Caps.Keys), Note: "that are neither expired nor revoked"},
		page.Tile{Label: "Members", Value: numbers.Of(p.Caps.Members)},
		page.Tile{Label: "Open invitations", Value: numbers.Of(p.Caps.Invitations)},
		page.Tile{
			Label: "Stored files", Value: postern.BytesWords(p.Caps.Bytes),
			Note: "sent and received; the same content counts once",
		},
		page.Tile{
			Label: "Dashboard requests per minute", Value: numbers.Of(p.PagesPerMinute()),
			Note: "per person and for the workspace",
		})
	return append(
		list, page.Tile{Label: "Message retention", Value: Days(kept.Messages)},
		page.Tile{Label: "Event retention", Value: Days(kept.Events)},
		page.Tile{Label: "Audit log retention", Value: Days(kept.Audit)},
	)
}

// Days formats whole days as days, and any other duration as it is.
func Days(t time.Duration) string {
	const day = 24 * time.Hour
	if t%day != 0 {
		return t.String()
	}
	return numbers.Many(int64(t/day), "day", "days")
}

// Outcomes describes what happens at each limit.
func Outcomes(p postern.Plan) []page.Tile {
	list := []page.Tile{
		{
			Label: "Devices in total, API keys, members, invitations",
			Value: "Creating one more is refused (403, resource-limit) until you remove one.",
		},
		{
			Label: "Stored files",
			Value: "Uploads are refused (403, resource-limit) until files are deleted or expire. Messages are still " +
				"received; the files for which there is no room fail, and can be fetched again later.",
		},
		{
			Label: "Messages",
			Value: "New messages are refused (403, quota-exhausted) until the month ends. Inbound messages, events, and " +
				"webhooks continue. Messages that were certainly never sent are not counted.",
		},
		{
			Label: "Devices",
			Value: "Linking another phone is refused (403, device-limit) until you unlink or delete a device. If a new " +
				"plan allows fewer devices, the most recently linked ones are paused. They stay linked.",
		},
	}
	if p.API {
		list = append(list,
			page.Tile{
				Label: "Requests", Value: "Further requests are refused (429, rate-limited). The response says when to try again.",
			},
			page.Tile{Label: "Webhooks", Value: "Adding a webhook is refused (403, endpoint-limit) until you delete one."},
			page.Tile{
				Label: "Deliveries",
				Value: "First attempts beyond the limit wait for the next minute. Nothing is lost.",
			})
	} else {
		list = append(list, page.Tile{
			Label: "REST API and webhooks",
			Value: "Requests are refused and webhooks are paused. On a plan with the API, webhooks catch up on events from " +
				"the last 72 hours.",
		})
	}
	return append(list, page.Tile{
		Label: "Retention",
		Value: "Older messages and events are deleted. Anything still to be sent or delivered is kept until it is.",
	})
}
