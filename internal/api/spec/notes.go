package spec

import "postern/internal/postern"

// note says of an operation what cannot be read off its types.
type note struct {
	text    string           // beyond the summary
	refuses []postern.Reason // beyond what follows from its form; see [reasonsOf]
}

// askNetwork returns why operations are refused that ask the network about a group, and other reasons.
func askNetwork(more ...postern.Reason) []postern.Reason {
	return append([]postern.Reason{
		postern.DeviceNotConnected, postern.NetworkTimeout, postern.RateLimited,
	}, more...)
}

// notes has a row for each operation.
func notes() map[string]note { //nolint:funlen // a table, not a program
	const (
		action     = "The action is durable when the response arrives, costs no quota, and is sent in the order of its chat; the message changes when the network has taken it, and an event reports that. An action that could not be sent has no event: the timeline of its message shows it as `failed` or `expired`, with a code and the reason."
		streamNote = " Comment lines serve as heartbeats. The stream ends within a second after its key expires or is revoked."
		live       = "It needs a connected device, and waits up to 20 seconds for the network."
		patch      = "A JSON merge patch (RFC 7396): fields that are left out stay unchanged; null resets a field."
	)
	return map[string]note{
		"listDevices":  {text: "Returns the devices that the key may see, newest first."},
		"createDevice": {text: "Creates a device. It does not count towards the plan's device limit until a link attempt is opened for it, but a plan also limits how many devices exist, linked or not. A key that is limited to certain devices cannot create one.", refuses: []postern.Reason{postern.ResourceNotAllowed, postern.ResourceLimit}},
		"getDevice":    {text: "Returns a device and the state of its session."},
		"updateDevice": {text: patch},
		"deleteDevice": {text: "Unlinks the device, waiting up to 10 seconds for the network to confirm. The device disappears at once. Its messages are then deleted in the background, even when the network cannot be reached. Its keys are kept until the network has confirmed, because the link cannot be removed without them."},
		"pauseDevice":  {text: "Disconnects the device. It stays linked and still counts towards the plan's device limit.", refuses: []postern.Reason{postern.NotLinked}},
		"resumeDevice": {text: "Reconnects the device. A device that was paused because of the plan's limit can be resumed once fewer devices are in use.", refuses: []postern.Reason{postern.NotLinked, postern.DeviceLimit}},
		"unlinkDevice": {text: "Removes the link to the account. The device keeps its id, history, keys and webhooks, and can be linked again.", refuses: []postern.Reason{postern.NotLinked}},
		"getProfile":   {text: "Returns what other people see of the account: its name, its \"about\" text and its picture, which is a file of the device. Only a picture that has changed is fetched again. Needs `messages:read` besides, as all files do. " + live, refuses: askNetwork(postern.NetworkRefused)},
		"setProfile":   {text: "Changes what other people see of the account; what is left out stays, and null removes the picture. Of a JPEG, PNG, GIF or WebP, the square in the middle is sent as a JPEG of at most 640 pixels. Needs `messages:read` besides, as all files do. " + live + " Several changes are made one after the other: if one is refused, those before it stay.", refuses: askNetwork(postern.NetworkRefused)},

		"openLink":      {text: "Opens a link attempt. It counts towards the plan's device limit until it ends without a link. The response waits up to 5 seconds for the first code to show. Without one, or for the next code, get the attempt again, or follow its stream.", refuses: []postern.Reason{postern.DeviceLimit, postern.LinkAlreadyOpen, postern.DeviceAlreadyLinked, postern.NumberAlreadyLinked}},
		"getLink":       {text: "Returns the newest link attempt, with the code to show at the moment. Codes change every 20 to 60 seconds; qrExpiresAt says when. Only keys with the scope `devices:write` see qr, qrExpiresAt, pairingCode, passkey and confirmationCode, because anyone who sees a code can link their own phone."},
		"openLinkPage":  {text: "Creates a web page for the person who holds the phone. It belongs to the first browser in which the button on the page is pressed. The page and the attempt last 15 minutes. An attempt has at most one page; a new page replaces the previous one.", refuses: []postern.Reason{postern.NoOpenLink}},
		"answerPasskey": {text: "An attempt becomes `passkey_required` when the network asks for the passkey of the account, and stays open for 10 minutes after that. Browsers use the passkey only on the network's own pages: the link page leads its owner there and back, and sends the credential itself. A program that has another way sends the credential here. The network then checks it, and the attempt becomes `confirm`, `linked`, or `failed` with the reason `passkey-refused`.", refuses: []postern.Reason{postern.NoOpenLink, postern.NoPasskeyWanted}},
		"confirmLink":   {text: "An attempt becomes `confirm` with a `confirmationCode` if more than five minutes went by before the network got the passkey. The phone shows a code, too. Confirm only after its owner has compared the two; if they differ, cancel the attempt.", refuses: []postern.Reason{postern.NoOpenLink, postern.NothingToConfirm}},
		"cancelLink":    {text: "Ends the open attempt. It no longer counts towards the plan's device limit.", refuses: []postern.Reason{postern.NoOpenLink}},
		"getLinkSVG":    {text: "Returns the code of the open attempt as an SVG image. The response is 404 while there is no code to show, with Retry-After if the first one is on its way."},
		"getLinkPNG":    {text: "Returns the code of the open attempt as a PNG image. The response is 404 while there is no code to show, with Retry-After if the first one is on its way."},
		"streamLink":    {text: "Server-sent events: \"code\" with the link attempt each time its code changes (only to keys with the scope `devices:write`), \"passkey\" when the network asks for a passkey, \"confirm\" when there is a code to compare, and \"ended\" with the final attempt. Then the stream ends." + streamNote},

		"listContacts":       {text: "Returns the people whom the devices know that the key may use: those who wrote, those who were written to, and those in address books. Contacts are the same for all devices of a workspace.", refuses: []postern.Reason{postern.NotFound, postern.ResourceNotAllowed}},
		"getContact":         {text: "Returns a contact. When two contacts turn out to be the same person, they are merged, `contact.identified` reports it, and both ids return the merged contact."},
		"eraseContact":       {text: "Removes a person from the workspace: the contact, all messages of and to the person with their files, and what the person wrote in groups. All of it is hidden at once, and removed within 24 hours; messages that wait to be sent are canceled. Events keep only ids. An endpoint that still waits for a message gets it first. If the person writes again, that makes a new contact. Repeating the request has no effect. A key that is limited to certain devices cannot erase a contact that other devices know, too."},
		"checkNumbers":       {text: "Asks the network which numbers it knows. " + live + " Answers are kept for a day. What has to be asked counts towards the device's pace for new chats, because accounts that look up many strangers are restricted: beyond it, the response is 429 with Retry-After.", refuses: []postern.Reason{postern.DeviceNotConnected, postern.NetworkTimeout, postern.NetworkRefused}},
		"showTyping":         {text: "Shows in a chat that the account is typing or recording. The apps stop showing it after some seconds: repeat the request while it lasts. Nobody confirms it. It needs a connected device.", refuses: []postern.Reason{postern.DeviceNotConnected, postern.NetworkTimeout}},
		"askHistory":         {text: "Asks the account's phone for the messages before the oldest one of a chat. " + live + " The phone may answer much later, or never. What it sends is stored with `history: true`, without events, whatever `receive.history` says. It is answered with 404 if no message of the chat is stored.", refuses: []postern.Reason{postern.NotFound, postern.DeviceNotConnected, postern.NetworkTimeout, postern.RateLimited}},
		"rejectCall":         {text: "Rejects a call that rings, as on the phone. The response is 404 once the call has ended. It needs a connected device.", refuses: []postern.Reason{postern.DeviceNotConnected, postern.NetworkTimeout}},
		"listChats":          {text: "Returns the chats of a device, or of all devices that the key may see, with the newest message of each. The chat with the newest message comes first.", refuses: []postern.Reason{postern.NotFound, postern.ResourceNotAllowed}},
		"getChat":            {text: "Returns a chat with its newest message. The response is 404 for a chat without messages in which nothing was set."},
		"markChatRead":       {text: "Marks all messages of the chat as read, and tells their senders: at most the newest 1,000. The receipts are durable when the response arrives, cost no quota, and are sent in the order of the chat. If nothing is unread, nothing is sent. It needs a connected device.", refuses: []postern.Reason{postern.DeviceNotConnected}},
		"archiveChat":        {text: "Archives a chat of the account, here and on its phone, or brings it back. " + live, refuses: []postern.Reason{postern.DeviceNotConnected, postern.NetworkTimeout, postern.NetworkRefused}},
		"muteChat":           {text: "Mutes a chat on the account's phone, until a time or for ever. Postern reports new messages as usual. " + live, refuses: []postern.Reason{postern.DeviceNotConnected, postern.NetworkTimeout, postern.NetworkRefused}},
		"listChannels":       {text: "Asks the network which channels the account follows, those that it administers included. " + live, refuses: askNetwork(postern.NetworkRefused)},
		"followByInvite":     {text: "Follows the channel with an address on the web. " + live, refuses: askNetwork(postern.InviteNotValid, postern.NetworkRefused)},
		"followChannel":      {text: "Follows a channel, and returns it. Posts are received if `receive.channels` is on. It may be repeated. " + live, refuses: askNetwork(postern.NetworkRefused)},
		"unfollowChannel":    {text: "Ends that the account follows a channel. What was received stays in lists. The owner of a channel cannot leave it. " + live, refuses: askNetwork(postern.NetworkRefused)},
		"listGroups":         {text: "Returns the groups that the account is in, without their members. The list is kept up to date by what the network reports, so it needs no connection. It is empty for a device that does not receive groups."},
		"createGroup":        {text: "Creates a group. " + live + " People who do not let others add them are among the outcomes as `not-allowed`: send them the invitation. A retry with the same Idempotency-Key waits for the outcome of the first request.", refuses: askNetwork(postern.NetworkRefused)},
		"joinGroup":          {text: "Joins a group by its invitation. " + live + " In a group whose administrators approve new members, the status is `requested`, and `group.joined` follows when one of them has approved.", refuses: askNetwork(postern.InviteNotValid, postern.NetworkRefused)},
		"getGroup":           {text: "Asks the network for a group, with its members. " + live, refuses: askNetwork(postern.GroupNotAllowed)},
		"updateGroup":        {text: "Changes a group; what is left out stays. " + live + " Several changes are made one after the other: if one is refused, those before it stay.", refuses: askNetwork(postern.GroupNotAllowed, postern.NetworkRefused)},
		"changeParticipants": {text: "Adds, removes, promotes and demotes people, in this order, and returns one outcome for each. " + live, refuses: askNetwork(postern.GroupNotAllowed, postern.NetworkRefused)},
		"getGroupPicture":    {text: "Returns the picture of a group as a file of the device. The network is asked whether it is still the same picture; only another one is fetched. Needs `messages:read` besides, as all files do. " + live, refuses: askNetwork(postern.GroupNotAllowed, postern.ResourceLimit, postern.PayloadTooLarge)},
		"setGroupPicture":    {text: "Sets the picture of a group. The square in the middle of a JPEG, PNG, GIF or WebP is sent as a JPEG of at most 640 pixels. Needs `messages:read` besides, as all files do. " + live, refuses: askNetwork(postern.GroupNotAllowed, postern.NetworkRefused, postern.ResourceLimit, postern.PayloadTooLarge)},
		"removeGroupPicture": {text: "Removes the picture of a group. " + live, refuses: askNetwork(postern.GroupNotAllowed, postern.NetworkRefused)},
		"getInvite":          {text: "Returns the address by which anybody can join the group. Only administrators get it. " + live, refuses: askNetwork(postern.GroupNotAllowed)},
		"resetInvite":        {text: "Replaces the invitation, so that the address before it no longer works. " + live, refuses: askNetwork(postern.GroupNotAllowed, postern.NetworkRefused)},
		"listJoinRequests":   {text: "Returns who wants to join a group whose administrators approve new members. " + live, refuses: askNetwork(postern.GroupNotAllowed)},
		"answerJoinRequests": {text: "Approves or rejects those who want to join, and returns one outcome for each. " + live, refuses: askNetwork(postern.GroupNotAllowed, postern.NetworkRefused)},
		"leaveGroup":         {text: "Leaves a group. Its messages stay in lists. " + live, refuses: askNetwork(postern.GroupNotAllowed, postern.NetworkRefused)},

		"sendMessage":        {text: "Accepts a message. When the response arrives, the message is stored on disk and counts towards the monthly quota. Events report its progress. A file in `media.data`, or at `media.url`, needs room among the stored files of the plan: the response is 403 `resource-limit` if there is none, and a file at a URL that turns out to be too large ends the message with `MEDIA_FAILED`.", refuses: []postern.Reason{postern.NotFound, postern.ResourceNotAllowed, postern.QuotaExhausted, postern.DeviceNotConnected, postern.NewChatsBlocked, postern.ResourceLimit}},
		"listMessages":       {text: "Returns messages in both directions, newest first.", refuses: []postern.Reason{postern.NotFound, postern.ResourceNotAllowed}},
		"getMessage":         {text: "Returns a message and its delivery status."},
		"getMessageTimeline": {text: "Returns what happened to a message, oldest first: its way, each attempt to send it, the actions on it with their outcomes, and each attempt to post an event about it, which only keys with the scope `webhooks:read` see. It shows the first 200 attempts and actions, and the posts of the first 100 deliveries. Posts disappear when the retention removes the event."},

		"getMessageReceipts": {text: "Returns who received a message that was sent, and when they read or played it. In a group there is one entry for each member that has confirmed the message: it becomes `delivered`, `read` and `played` when all members who got it have confirmed that."},

		"reactToMessage":    {text: "Reacts with an emoji, in place of an earlier reaction of the account. " + action, refuses: []postern.Reason{postern.ActionNotPossible, postern.DeviceNotConnected}},
		"removeReaction":    {text: "Takes the reaction of the account back. " + action, refuses: []postern.Reason{postern.ActionNotPossible, postern.DeviceNotConnected}},
		"pinMessage":        {text: "Pins a message in its chat for everyone, in place of an earlier pin of the message. The apps show at most three pinned messages in a chat, and unpin a message by themselves at the end of its duration. " + action, refuses: []postern.Reason{postern.ActionNotPossible, postern.DeviceNotConnected}},
		"unpinMessage":      {text: "Unpins a message for everyone, no matter who pinned it. " + action, refuses: []postern.Reason{postern.ActionNotPossible, postern.DeviceNotConnected}},
		"starMessage":       {text: "Stars a message for the account itself: its phone and other linked clients list the message under starred messages, and nobody else sees the star. Received messages can be starred too. As long as the account's phone has not shared the key with which stars are encrypted, the action is tried again; after five attempts it has failed, as the message's timeline shows. " + action, refuses: []postern.Reason{postern.ActionNotPossible, postern.DeviceNotConnected}},
		"unstarMessage":     {text: "Removes the star of a message, no matter where it was set. " + action, refuses: []postern.Reason{postern.ActionNotPossible, postern.DeviceNotConnected}},
		"editMessage":       {text: "Changes the text of a message that the account sent, or the caption of an image, video or document that has one, within 15 minutes. A scheduled message changes at once, and may get another time. " + action, refuses: []postern.Reason{postern.ActionNotPossible, postern.DeviceNotConnected}},
		"deleteMessage":     {text: "Deletes a message on the phones of all recipients: one that the account sent, or any of a group of which it is an administrator. The message stays in lists, with `deletedAt`. " + action, refuses: []postern.Reason{postern.ActionNotPossible, postern.GroupNotAllowed, postern.DeviceNotConnected}},
		"cancelMessage":     {text: "Cancels a scheduled or queued message of which nothing was sent. Its unit goes back to the quota of the month in which it was accepted.", refuses: []postern.Reason{postern.MessageNotCancelable}},
		"voteInPoll":        {text: "Votes for options of a poll, in place of an earlier vote of the account; an empty list takes the vote back. " + action, refuses: []postern.Reason{postern.ActionNotPossible, postern.DeviceNotConnected}},
		"markMessagePlayed": {text: "Tells the sender of a received voice message, audio file or video that it was played. " + action, refuses: []postern.Reason{postern.ActionNotPossible, postern.DeviceNotConnected}},
		"markMessageRead":   {text: "Tells the sender of a received message that it was read. The messages before it no longer count as unread. " + action, refuses: []postern.Reason{postern.ActionNotPossible, postern.DeviceNotConnected}},

		"uploadMedia":     {text: "Keeps a file of at most 100 MiB, to be sent in messages. Its type is found in its bytes. It is kept for 30 days, or for 30 days after the last message with it has expired. The same bytes are stored once. A request whose body stops arriving for 30 seconds, or that takes longer than an hour, is refused. A workspace can have 8 uploads in progress. A plan limits the bytes of all stored files of a workspace, sent and received; beyond it the response is 403 `resource-limit`, also for a content that is already stored. Files that are deleted or expire make room.", refuses: []postern.Reason{postern.ResourceLimit}},
		"getMedia":        {text: "Returns a file. url is a link to its bytes for everyone who knows it; each response has a new one. If fetching a received file has failed and may succeed now, this request tries it again, and the file is `pending`. A received file also fails while the workspace has no room for it."},
		"getMediaContent": {text: "Returns the bytes of a file with the type that was found in them, to be saved and not shown: as `Content-Disposition: attachment`. Supports one `Range` per request, and `If-None-Match` with the `ETag`. The response is 404 while the file is not ready, with Retry-After if it is being fetched.", refuses: []postern.Reason{postern.RangeNotSatisfiable}},
		"deleteMedia":     {text: "Deletes a file. Messages show it as `expired`. Messages with it that have not been sent fail. Its bytes no longer count towards the plan's limit of stored files, unless another file has the same ones."},

		"listWebhooks":    {text: "Returns the endpoints that the key may see, newest first."},
		"createWebhook":   {text: "Creates an endpoint. Its verification begins at once: a signed request with a challenge is posted to the URL, and the endpoint becomes active when it responds with the challenge (see the webhook `webhook.verification`). If `handshake` is `signed`, the response must also contain a signature of the challenge; otherwise any receiver at the URL can pass the verification by sending the challenge back. Only this response contains the signing secret. If the key is limited to certain devices, the endpoint receives only their events.", refuses: []postern.Reason{postern.NotFound, postern.ResourceNotAllowed, postern.EndpointLimit}},
		"getWebhook":      {text: "Returns an endpoint and its state, without its secret."},
		"deleteWebhook":   {text: "Deletes the endpoint and its deliveries. Nothing more is posted to it."},
		"updateWebhook":   {text: patch + " A new url is shown as pendingUrl until it is verified. Until then, the old URL stays in use. Changing the URL also requires the scopes `messages:read` and `events:read`. Custom headers that are not named keep their values, and null removes one. If the url has another host or port, the values of all custom headers that remain must be given again.", refuses: []postern.Reason{postern.MissingScope}},
		"verifyWebhook":   {text: "Starts a new verification: a new challenge is sent. An active endpoint receives no events until it is verified again.", refuses: []postern.Reason{postern.EndpointIsPaused}},
		"pauseWebhook":    {text: "Stops all deliveries until the endpoint is resumed.", refuses: []postern.Reason{postern.EndpointNotActive}},
		"resumeWebhook":   {text: "Verifies the endpoint, and then delivers the events recorded since the pause, up to 72 hours back."},
		"rotateSecret":    {text: "Only this response contains the new secret. Deliveries are signed with it from the next one on, and with the old secret too until the overlap ends."},
		"testWebhook":     {text: "Sends a webhook.test event to this endpoint alone. It is signed and retried like any event. It appears in the list of deliveries, but not in the event log.", refuses: []postern.Reason{postern.EndpointNotActive}},
		"createReplay":    {text: "Delivers events from the event log again, including those that the endpoint missed while it was not active. The replay runs in the background and gives way to new events. Deliveries that are already pending are left as they are, and counted in alreadyPending. Every event keeps its eventId and its exact bytes.", refuses: []postern.Reason{postern.EndpointNotActive, postern.ReplayLimit}},
		"getReplay":       {text: "Returns a replay and its progress."},
		"stopReplay":      {text: "Stops queueing events. Events that are already queued (about a hundred) are still delivered."},
		"getWebhookStats": {text: "Returns the results of the delivery attempts of each hour, oldest first: by default for the last 24 hours, at most for 31 days. Hours without attempts are left out, and attempts to verify the endpoint are not counted."},
		"getDelivery":     {text: "Returns a delivery with every attempt, newest first. event is the body that is posted; only keys with the scopes `messages:read` and `events:read` see it."},
		"retryDelivery":   {text: "Starts a new round of attempts with the same eventId and bytes. A pending delivery is tried at once. A webhook.verification is not retried: verify the endpoint instead.", refuses: []postern.Reason{postern.EndpointNotActive, postern.EventRemoved, postern.NotRetriable}},
		"listDeliveries":  {text: "Returns what was or will be posted to the endpoint, newest first, with the outcome of the last attempt. Each attempt to verify the endpoint is in the list, too: as a delivery of its own, of the type webhook.verification."},

		"listEvents":   {text: "Returns the event log, oldest first, so that a consumer that was offline can catch up. An event that is recorded later never appears before one that was already returned. Without after and cursor, the list starts at the oldest event that is kept.", refuses: []postern.Reason{postern.NotFound, postern.ResourceNotAllowed, postern.EventsExpired}},
		"streamEvents": {text: "Server-sent events: each has the event's id, its type as name, and the event as data." + streamNote, refuses: []postern.Reason{postern.NotFound, postern.ResourceNotAllowed, postern.EventsExpired}},
		"getMe":        {text: "Returns the API key you are using, its workspace, and the plan with its limits. Programs can use it to check their key when they start."},
		"getUsage":     {text: "Returns how many messages were sent this month, how many devices are linked and how many bytes of files are stored, with the limits of the plan. A key that is limited to certain devices sees the usage of those devices."},

		"scanInSandbox":          {text: "Scans the code of the open link attempt, and waits briefly until the device is connected. If the network asks for the passkey of the phone, it waits until the attempt is `passkey_required`.", refuses: []postern.Reason{postern.SandboxOff, postern.NoOpenLink}},
		"getPasskeyInSandbox":    {text: "Returns what the browser of a simulated phone's owner would send: the answer of the phone's passkey to the request of the open link attempt. The number `+15005550007` asks for its passkey whenever it is linked.", refuses: []postern.Reason{postern.SandboxOff, postern.NoOpenLink, postern.NoPasskeyWanted}},
		"receiveInSandbox":       {text: "A contact sends a message to the device. It is processed like a real one: it is stored, and an event reports it.", refuses: []postern.Reason{postern.SandboxOff, postern.NotLinked, postern.ResourceLimit}},
		"changeGroupInSandbox":   {text: "A member of a group changes it, or who is in it, or deletes a message, or somebody joins. Events report it like a change on a real phone. Numbers that cannot be added or removed are left out.", refuses: []postern.Reason{postern.SandboxOff, postern.NotLinked}},
		"createChannelInSandbox": {text: "Creates a channel of a simulated phone. Its owner posts in it by `channel` in the request for an incoming message; the device receives that once it follows the channel, with `receive.channels` on. With `admin`, the device can post in it.", refuses: []postern.Reason{postern.SandboxOff, postern.NotLinked}},
		"createGroupInSandbox":   {text: "Creates a group of the device's account and other simulated phones. Its members write to it by `group` in the request for an incoming message.", refuses: []postern.Reason{postern.SandboxOff, postern.NotLinked}},
		"rememberInSandbox":      {text: "Adds texts to what the simulated phone had before the device was linked, and lets it send its history, as phones do after linking. They are stored if `receive.history` is on. The phone forgets them when the server stops.", refuses: []postern.Reason{postern.SandboxOff, postern.NotLinked}},
		"callInSandbox":          {text: "A contact calls the device's account. The call is reported like a real one; nobody answers it.", refuses: []postern.Reason{postern.SandboxOff, postern.NotLinked}},
		"setChatInSandbox":       {text: "The account archives or mutes a chat on its simulated phone. What is left out stays.", refuses: []postern.Reason{postern.SandboxOff, postern.NotLinked}},
		"setContactInSandbox":    {text: "The account saves a person in the address book of its simulated phone, or changes the name, or removes the person. If the devices know the person, the contact has the name shortly afterwards.", refuses: []postern.Reason{postern.SandboxOff, postern.NotLinked}},
		"confirmInSandbox":       {text: "A recipient confirms a message, or the account reads a received one on its phone. The receipt is processed like a real one.", refuses: []postern.Reason{postern.SandboxOff, postern.NotLinked}},
		"breakInSandbox":         {text: "Simulates a fault of the network. Its consequences are those of a real fault.", refuses: []postern.Reason{postern.SandboxOff, postern.NotLinked}},
		"showSandboxPhone":       {text: "Returns the messages that the simulated phone of the device's account displays.", refuses: []postern.Reason{postern.SandboxOff}},
	}
}
