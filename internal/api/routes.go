package api

import (
	"net/http"

	"postern/internal/api/spec"
)

// routes registers every operation of the API except the one that serves its
// document. Each has a row in the tables of scopes and of notes (package spec).
func (a *API) routes() {
	const device, link = "/v1/devices/{id}", "/v1/devices/{id}/link"
	const message, file = "/v1/messages/{id}", "/v1/media/{id}"
	const group, chat = device + "/groups/{chatId}", device + "/chats/{chatId}"
	const channel = device + "/channels/{chatId}"
	const webhook, box = "/v1/webhooks/{id}", "/v1/sandbox/devices/{id}"

	g, taken := a.gateway, status(http.StatusAccepted)
	devices, links, groups, messages := devices{g}, links{g, a.streams, a.baseURL, a.code}, groups{g}, messages{g}
	contacts, chats, labels := contacts{g, a.streams}, chats{g}, labels{g}
	webhooks, replays, deliveries, events := webhooks{g}, replays{g}, deliveries{g}, events{g, a.streams}
	usage, sandbox := usage{g}, sandbox{g}
	files := files{g, a.throttle, a.uploads, a.problems, a.baseURL}

	add(a, "GET /v1/devices", "listDevices", "List devices", devices.list, compressed)
	add(a, "POST /v1/devices", "createDevice", "Create a device", devices.create, creates)
	add(a, "GET "+device, "getDevice", "Get a device", devices.get)
	add(a, "PATCH "+device, "updateDevice", "Change a device", devices.update)
	add(a, "DELETE "+device, "deleteDevice", "Unlink and delete a device", devices.delete)
	add(a, "POST "+device+"/pause", "pauseDevice", "Disconnect a device and keep its link", devices.pause)
	add(a, "POST "+device+"/resume", "resumeDevice", "Reconnect a paused device", devices.resume)
	add(a, "POST "+device+"/unlink", "unlinkDevice", "Unlink a device and keep it", devices.unlink)

	add(a, "POST "+link, "openLink", "Open a link attempt", links.open, creates)
	add(a, "GET "+link, "getLink", "Get the newest link attempt", links.get)
	add(a, "DELETE "+link, "cancelLink", "Cancel the open link attempt", links.cancel)
	add(a, "POST "+link+"/page", "openLinkPage", "Create a page that shows the open link attempt", links.openPage,
		creates)
	add(a, "POST "+link+"/passkey", "answerPasskey", "Answer the network's request for a passkey", links.answerPasskey,
		status(http.StatusAccepted))
	add(a, "POST "+link+"/confirm", "confirmLink", "Confirm that the phone shows the same code", links.confirm,
		status(http.StatusAccepted))
	add(a, "GET "+link+"/qr.svg", "getLinkSVG", "Get the code to scan as SVG", links.svg, gives(spec.SVG))
	add(a, "GET "+link+"/qr.png", "getLinkPNG", "Get the code to scan as PNG", links.png, gives(spec.PNG))
	add(a, "GET "+link+"/stream", "streamLink", "Stream the codes of a link attempt", links.stream, gives(spec.Stream))

	add(a, "GET /v1/contacts", "listContacts", "List contacts", contacts.list, compressed)
	add(a, "GET /v1/contacts/{id}", "getContact", "Get a contact", contacts.get)
	add(a, "DELETE /v1/contacts/{id}", "eraseContact", "Erase a person", contacts.erase)
	add(a, "POST "+device+"/contacts/check", "checkNumbers", "Find out which numbers are on the network", contacts.check)
	add(a, "GET "+device+"/contacts/{contactId}/picture", "getContactPicture", "Get the picture of a contact", contacts.picture)
	add(a, "GET "+device+"/blocked", "listBlocked", "List whom an account has blocked", contacts.blocked, compressed)
	add(a, "PUT "+device+"/blocked/{chatId}", "blockContact", "Block a person", contacts.block)
	add(a, "DELETE "+device+"/blocked/{chatId}", "unblockContact", "End the block of a person", contacts.unblock)
	add(a, "POST "+chat+"/typing", "showTyping", "Show that the account is typing", contacts.typing)
	add(a, "GET "+device+"/presence/stream", "streamPresence", "Stream who is typing and who is online", contacts.presence,
		gives(spec.Stream))
	add(a, "POST "+chat+"/history", "askHistory", "Ask the phone for older messages of a chat", messages.askHistory, taken)
	add(a, "POST "+device+"/calls/{callId}/reject", "rejectCall", "Reject a call", contacts.reject)

	add(a, "GET /v1/chats", "listChats", "List chats", chats.list, compressed)
	add(a, "GET "+chat, "getChat", "Get a chat", chats.get)
	add(a, "POST "+chat+"/read", "markChatRead", "Mark a chat as read", chats.read, taken)
	add(a, "POST "+chat+"/archive", "archiveChat", "Archive a chat, or bring it back", chats.archive)
	add(a, "POST "+chat+"/mute", "muteChat", "Mute a chat, or end that", chats.mute)

	add(a, "PUT "+chat+"/labels/{labelId}", "labelChat", "Put a label on a chat", labels.put)
	add(a, "DELETE "+chat+"/labels/{labelId}", "unlabelChat", "Take a label off a chat", labels.take)
	add(a, "GET "+device+"/labels", "listLabels", "List the labels of a device", labels.list, compressed)
	add(a, "POST "+device+"/labels", "createLabel", "Create a label", labels.create, creates)
	add(a, "PATCH "+device+"/labels/{labelId}", "updateLabel", "Rename a label or change its color", labels.update)
	add(a, "DELETE "+device+"/labels/{labelId}", "deleteLabel", "Delete a label", labels.delete)

	add(a, "GET "+device+"/profile", "getProfile", "Get the profile of an account", devices.profile)
	add(a, "PUT "+device+"/profile", "setProfile", "Change the profile of an account", devices.setProfile)
	add(a, "GET "+device+"/groups", "listGroups", "List the groups of a device", groups.list, compressed)
	add(a, "POST "+device+"/groups", "createGroup", "Create a group", groups.create, creates)
	add(a, "POST "+device+"/groups/join", "joinGroup", "Join a group by its invitation", groups.join, creates,
		status(http.StatusOK))
	add(a, "GET "+group, "getGroup", "Get a group and its members", groups.get)
	add(a, "PATCH "+group, "updateGroup", "Change a group", groups.update)
	add(a, "POST "+group+"/participants", "changeParticipants", "Change who is in a group", groups.participants)
	add(a, "GET "+group+"/picture", "getGroupPicture", "Get the picture of a group", groups.picture)
	add(a, "PUT "+group+"/picture", "setGroupPicture", "Set the picture of a group", groups.setPicture)
	add(a, "DELETE "+group+"/picture", "removeGroupPicture", "Remove the picture of a group", groups.removePicture)
	add(a, "GET "+group+"/invite", "getInvite", "Get the invitation to a group", groups.invite)
	add(a, "POST "+group+"/invite/reset", "resetInvite", "Replace the invitation to a group", groups.resetInvite)
	add(a, "GET "+group+"/requests", "listJoinRequests", "List who wants to join a group", groups.requests)
	add(a, "POST "+group+"/requests", "answerJoinRequests", "Answer those who want to join a group", groups.answer)
	add(a, "POST "+group+"/leave", "leaveGroup", "Leave a group", groups.leave)
	add(a, "GET "+group+"/subgroups", "listSubgroups", "List the groups of a community", groups.subgroups)
	add(a, "PUT "+group+"/subgroups/{subgroupId}", "linkGroup", "Make a group one of a community", groups.link)
	add(a, "DELETE "+group+"/subgroups/{subgroupId}", "unlinkGroup", "Take a group out of a community", groups.unlink)

	add(a, "GET "+device+"/channels", "listChannels", "List the channels that a device follows", chats.channels, compressed)
	add(a, "POST "+device+"/channels/follow", "followByInvite", "Follow a channel by its address", chats.followByInvite,
		creates, status(http.StatusOK))
	add(a, "PUT "+channel, "followChannel", "Follow a channel", chats.follow)
	add(a, "DELETE "+channel, "unfollowChannel", "Stop following a channel", chats.unfollow)

	add(a, "POST /v1/messages", "sendMessage", "Send a message", messages.send, creates, status(http.StatusAccepted))
	add(a, "GET /v1/messages", "listMessages", "List messages", messages.list, compressed)
	add(a, "GET /v1/messages/{id}", "getMessage", "Get a message", messages.get, compressed)

	add(a, "GET "+message+"/timeline", "getMessageTimeline", "List what happened to a message", messages.timeline,
		compressed)
	add(a, "GET "+message+"/receipts", "getMessageReceipts", "List who received a message", messages.receipts,
		compressed)
	add(a, "PUT "+message+"/reaction", "reactToMessage", "React to a message", messages.react, taken)
	add(a, "DELETE "+message+"/reaction", "removeReaction", "Take a reaction back", messages.removeReaction, taken)
	add(a, "PUT "+message+"/pin", "pinMessage", "Pin a message in its chat", messages.pin, taken)
	add(a, "DELETE "+message+"/pin", "unpinMessage", "Unpin a message", messages.unpin, taken)
	add(a, "PUT "+message+"/star", "starMessage", "Star a message", messages.star, taken)
	add(a, "DELETE "+message+"/star", "unstarMessage", "Remove the star of a message", messages.unstar, taken)
	add(a, "PATCH "+message, "editMessage", "Edit a message", messages.edit, taken)
	add(a, "DELETE "+message, "deleteMessage", "Delete a message for everyone", messages.delete, taken)
	add(a, "POST "+message+"/cancel", "cancelMessage", "Cancel a message that has not been sent", messages.cancel)
	add(a, "POST "+message+"/votes", "voteInPoll", "Vote in a poll", messages.vote, taken)
	add(a, "POST "+message+"/read", "markMessageRead", "Mark a message as read", messages.markRead, taken)
	add(a, "POST "+message+"/played", "markMessagePlayed", "Mark a message as played", messages.markPlayed, taken)

	add(a, "POST /v1/media", "uploadMedia", "Upload a file", files.upload, creates, takesFile)
	add(a, "GET "+file, "getMedia", "Get a file", files.get)
	add(a, "GET "+file+"/content", "getMediaContent", "Download a file", files.content, givesFile)
	add(a, "DELETE "+file, "deleteMedia", "Delete a file", files.delete)
	a.mux.HandleFunc("GET "+file+"/file", files.serveLink) // the url of getMedia, which needs no key

	add(a, "GET /v1/webhooks", "listWebhooks", "List webhook endpoints", webhooks.list, compressed)
	add(a, "POST /v1/webhooks", "createWebhook", "Create a webhook endpoint", webhooks.create, creates)
	add(a, "GET "+webhook, "getWebhook", "Get a webhook endpoint", webhooks.get)
	add(a, "DELETE "+webhook, "deleteWebhook", "Delete a webhook endpoint", webhooks.delete)
	add(a, "PATCH "+webhook, "updateWebhook", "Change a webhook endpoint", webhooks.update)
	add(a, "POST "+webhook+"/verify", "verifyWebhook", "Verify a webhook endpoint again", webhooks.verify)
	add(a, "POST "+webhook+"/pause", "pauseWebhook", "Pause a webhook endpoint", webhooks.pause)
	add(a, "POST "+webhook+"/resume", "resumeWebhook", "Resume a webhook endpoint", webhooks.resume)
	add(a, "POST "+webhook+"/rotate-secret", "rotateSecret", "Rotate the secret of a webhook endpoint",
		webhooks.rotateSecret, creates, status(http.StatusOK))
	add(a, "POST "+webhook+"/test", "testWebhook", "Send a test event to a webhook endpoint", webhooks.test, creates,
		status(http.StatusAccepted))
	add(a, "POST "+webhook+"/replay", "createReplay", "Replay part of the event log", replays.create, creates,
		status(http.StatusAccepted))
	add(a, "GET /v1/replays/{id}", "getReplay", "Get a replay", replays.get)
	add(a, "DELETE /v1/replays/{id}", "stopReplay", "Stop a replay", replays.stop)
	add(a, "GET "+webhook+"/deliveries", "listDeliveries", "List the deliveries of an endpoint", deliveries.list, compressed)
	add(a, "GET /v1/webhooks/{id}/stats", "getWebhookStats", "Get the delivery attempts of an endpoint by hour",
		deliveries.stats, compressed)
	add(a, "GET /v1/deliveries/{id}", "getDelivery", "Get a delivery and its attempts", deliveries.get)
	add(a, "POST /v1/deliveries/{id}/retry", "retryDelivery", "Retry a delivery", deliveries.retry, creates,
		status(http.StatusAccepted))

	add(a, "GET /v1/events", "listEvents", "List events, oldest first", events.list, compressed)
	add(a, "GET /v1/events/stream", "streamEvents", "Stream events", events.stream, gives(spec.Stream))
	add(a, "GET /v1/usage", "getUsage", "Get usage", usage.get)
	add(a, "GET /v1/me", "getMe", "Get the key, its workspace and its plan", usage.me)

	add(a, "POST "+box+"/scan", "scanInSandbox", "Scan the code with a simulated phone", sandbox.scan)
	add(a, "POST "+box+"/passkey", "getPasskeyInSandbox", "Get the passkey of a simulated phone", sandbox.passkey)
	add(a, "POST "+box+"/inbound", "receiveInSandbox", "Simulate an incoming message", sandbox.inbound)
	add(a, "POST "+box+"/groups", "createGroupInSandbox", "Create a group of simulated phones", sandbox.createGroup)
	add(a, "POST "+box+"/channels", "createChannelInSandbox", "Create a channel of a simulated phone",
		sandbox.createChannel)
	add(a, "PATCH "+box+"/groups/{chatId}", "changeGroupInSandbox", "Let a simulated phone change a group",
		sandbox.changeGroup)
	add(a, "POST "+box+"/history", "rememberInSandbox", "Give a simulated phone older messages", sandbox.remember)
	add(a, "POST "+box+"/chats", "setChatInSandbox", "Archive, mute or label a chat on the simulated phone", sandbox.setChat)
	add(a, "POST "+box+"/contacts", "setContactInSandbox", "Save a contact on the simulated phone", sandbox.setContact)
	add(a, "POST "+box+"/calls", "callInSandbox", "Simulate an incoming call", sandbox.call)
	add(a, "POST "+box+"/presence", "appearInSandbox", "Let a simulated contact type or come online", sandbox.appear)
	add(a, "POST "+box+"/receipts", "confirmInSandbox", "Simulate a receipt", sandbox.receipt)
	add(a, "POST "+box+"/faults", "breakInSandbox", "Simulate a network fault", sandbox.fault)
	add(a, "GET "+box+"/phone", "showSandboxPhone", "List the messages on the simulated phone", sandbox.phone, compressed)
}
