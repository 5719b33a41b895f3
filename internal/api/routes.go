package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// routes is every operation of the API but the document about them.
func (a *API) routes() {
	const device, link, webhook, box = "/v1/devices/{id}", "/v1/devices/{id}/link", "/v1/webhooks/{id}", "/v1/sandbox/devices/{id}"

	add(a, "GET /v1/devices", "listDevices", "List devices", a.listDevices)
	add(a, "POST /v1/devices", "createDevice", "Create a device", a.createDevice, creates)
	add(a, "GET "+device, "getDevice", "Get a device", a.getDevice)
	add(a, "PATCH "+device, "updateDevice", "Change a device", a.updateDevice)
	add(a, "DELETE "+device, "deleteDevice", "Unlink and delete a device", a.deleteDevice)
	add(a, "POST "+device+"/pause", "pauseDevice", "Disconnect a device and keep its link", a.pauseDevice)
	add(a, "POST "+device+"/resume", "resumeDevice", "Connect a paused device again", a.resumeDevice)
	add(a, "POST "+device+"/unlink", "unlinkDevice", "Unlink a device and keep it", a.unlinkDevice)

	add(a, "POST "+link, "openLink", "Open a link attempt", a.openLink, creates)
	add(a, "GET "+link, "getLink", "Get the newest link attempt", a.getLink)
	add(a, "DELETE "+link, "cancelLink", "Cancel the open link attempt", a.cancelLink)
	add(a, "POST "+link+"/page", "openLinkPage", "Make a page that shows the open link attempt", a.openLinkPage, creates)
	add(a, "POST "+link+"/passkey", "answerPasskey", "Answer the network's wish for a passkey", a.answerPasskey)
	add(a, "GET "+link+"/qr.svg", "getLinkSVG", "Get the code to scan as SVG", a.getLinkSVG, gives(svgType))
	add(a, "GET "+link+"/qr.png", "getLinkPNG", "Get the code to scan as PNG", a.getLinkPNG, gives(pngType))
	add(a, "GET "+link+"/stream", "streamLink", "Follow the codes of a link attempt", a.streamLink, gives(streamType))

	add(a, "POST /v1/messages", "sendMessage", "Send a message", a.sendMessage, creates, status(http.StatusAccepted))
	add(a, "GET /v1/messages", "listMessages", "List messages", a.listMessages)
	add(a, "GET /v1/messages/{id}", "getMessage", "Get a message", a.getMessage)

	add(a, "GET /v1/webhooks", "listWebhooks", "List webhook endpoints", a.listWebhooks)
	add(a, "POST /v1/webhooks", "createWebhook", "Create a webhook endpoint", a.createWebhook, creates)
	add(a, "GET "+webhook, "getWebhook", "Get a webhook endpoint", a.getWebhook)
	add(a, "DELETE "+webhook, "deleteWebhook", "Delete a webhook endpoint", a.deleteWebhook)
	add(a, "PATCH "+webhook, "updateWebhook", "Change a webhook endpoint", a.updateWebhook)
	add(a, "POST "+webhook+"/verify", "verifyWebhook", "Verify a webhook endpoint anew", a.verifyWebhook)
	add(a, "POST "+webhook+"/pause", "pauseWebhook", "Pause a webhook endpoint", a.pauseWebhook)
	add(a, "POST "+webhook+"/resume", "resumeWebhook", "Resume a webhook endpoint", a.resumeWebhook)
	add(a, "POST "+webhook+"/rotate-secret", "rotateSecret", "Give a webhook endpoint a new secret", a.rotateSecret, creates, status(http.StatusOK))
	add(a, "POST "+webhook+"/test", "testWebhook", "Send a test event to a webhook endpoint", a.testWebhook, creates, status(http.StatusAccepted))
	add(a, "POST "+webhook+"/replay", "createReplay", "Deliver a part of the log again", a.createReplay, creates, status(http.StatusAccepted))
	add(a, "GET /v1/replays/{id}", "getReplay", "Get a replay", a.getReplay)
	add(a, "DELETE /v1/replays/{id}", "stopReplay", "Stop a replay", a.stopReplay)
	add(a, "GET "+webhook+"/deliveries", "listDeliveries", "List an endpoint's deliveries", a.listDeliveries)
	add(a, "GET /v1/webhooks/{id}/stats", "getWebhookStats", "Count an endpoint's attempts, hour by hour", a.getWebhookStats)
	add(a, "GET /v1/deliveries/{id}", "getDelivery", "Get a delivery with every attempt", a.getDelivery)
	add(a, "POST /v1/deliveries/{id}/retry", "retryDelivery", "Deliver an event again", a.retryDelivery, creates, status(http.StatusAccepted))

	add(a, "GET /v1/events", "listEvents", "Read the log of events, oldest first", a.listEvents)
	add(a, "GET /v1/events/stream", "streamEvents", "Follow the log of events", a.streamEvents, gives(streamType))
	add(a, "GET /v1/usage", "getUsage", "Get what is used of the plan", a.getUsage)

	add(a, "POST "+box+"/scan", "scanInSandbox", "Scan the code with a simulated phone", a.scan)
	add(a, "POST "+box+"/inbound", "receiveInSandbox", "Let a contact write to the device", a.inbound)
	add(a, "POST "+box+"/receipts", "confirmInSandbox", "Let a recipient confirm a message", a.receipt)
	add(a, "POST "+box+"/faults", "breakInSandbox", "Let the simulated network misbehave", a.fault)
	add(a, "GET "+box+"/phone", "showSandboxPhone", "Show what the simulated phone shows", a.phone)
}

// add registers one operation. Its handler gets the request's caller and its
// decoded input, and answers or gives an error that becomes a problem.
func add[I, O any](a *API, route, id, summary string, handle func(context.Context, *request, *I) (*O, error), more ...func(*huma.Operation)) {
	method, path, _ := strings.Cut(route, " ")
	op := huma.Operation{
		Method: method, Path: path, OperationID: id, Summary: summary, Tags: []string{tagOf(path)},
		BodyReadTimeout: -1, SkipValidateBody: true, MaxBodyBytes: 2 * MaxBodyBytes, // guard reads and checks the body first
		Responses: map[string]*huma.Response{},
	}
	for _, change := range more {
		change(&op)
	}
	a.documentOperation(&op)
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		q := requestOf(ctx)
		out, err := handle(ctx, q, in)
		if err != nil {
			return nil, a.problems.Document(q.Request, err)
		}
		return out, nil
	})
}
