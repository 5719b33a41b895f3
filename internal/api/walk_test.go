package api_test

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store/storetest"
)

// statuses are what each actor with a good key is answered who asks for what the table of
// actors builds.
type statuses struct {
	free      int // of a workspace on the Free plan
	scopeless int // with all scopes but one that is needed
	outside   int // limited to another device of the workspace
	stranger  int // of another workspace
}

// walk has a row for each operation: a route without one fails the test.
func walk() map[string]statuses {
	owned := statuses{403, 403, 403, 403}
	own := statuses{403, 403, 200, 200} // each sees what is its own
	return map[string]statuses{
		"listDevices": own, "createDevice": {403, 403, 403, 201}, "getDevice": owned, "updateDevice": owned, "pauseDevice": owned, "resumeDevice": owned, "deleteDevice": owned, "unlinkDevice": owned,
		"getProfile": owned, "setProfile": owned,
		"openLink": owned, "getLink": owned, "openLinkPage": owned, "answerPasskey": owned, "confirmLink": owned, "cancelLink": owned, "getLinkSVG": owned, "getLinkPNG": owned, "streamLink": owned,
		"getContactPicture": owned, "listBlocked": owned, "blockContact": owned, "unblockContact": owned,
		"checkNumbers": owned, "showTyping": owned, "streamPresence": owned, "rejectCall": owned,
		"listChats": owned, "getChat": owned, "markChatRead": owned, "archiveChat": owned, "muteChat": owned,
		"askHistory": owned, "rememberInSandbox": owned,
		"listContacts": owned, "getContact": owned, "eraseContact": owned,
		"listSubgroups": owned, "linkGroup": owned, "unlinkGroup": owned,
		"labelChat": owned, "unlabelChat": owned, "listLabels": owned, "createLabel": owned, "updateLabel": owned, "deleteLabel": owned,
		"listChannels": owned, "followByInvite": owned, "followChannel": owned, "unfollowChannel": owned, "createChannelInSandbox": owned,
		"listGroups": owned, "createGroup": owned, "joinGroup": owned, "getGroup": owned, "updateGroup": owned, "changeParticipants": owned, "getGroupPicture": owned, "setGroupPicture": owned, "removeGroupPicture": owned, "getInvite": owned, "resetInvite": owned, "listJoinRequests": owned, "answerJoinRequests": owned, "leaveGroup": owned,
		"sendMessage": owned, "listMessages": owned, "getMessage": owned, "getMessageTimeline": owned, "getMessageReceipts": owned,
		"reactToMessage": owned, "removeReaction": owned, "pinMessage": owned, "unpinMessage": owned, "starMessage": owned, "unstarMessage": owned, "editMessage": owned, "deleteMessage": owned, "cancelMessage": owned, "voteInPoll": owned, "markMessageRead": owned, "markMessagePlayed": owned,
		"uploadMedia": {403, 403, 201, 201}, "getMedia": owned, "getMediaContent": owned, "deleteMedia": owned,
		"listWebhooks": own, "createWebhook": owned, "getWebhook": owned, "deleteWebhook": owned, "listDeliveries": owned,
		"updateWebhook": owned, "verifyWebhook": owned, "pauseWebhook": owned, "resumeWebhook": owned, "rotateSecret": owned, "testWebhook": owned,
		"createReplay": owned, "getReplay": owned, "stopReplay": owned, "getDelivery": owned, "getWebhookStats": owned, "retryDelivery": owned,
		"listEvents": owned, "streamEvents": owned, "getUsage": own, "getMe": {403, 200, 200, 200},
		"scanInSandbox": owned, "getPasskeyInSandbox": owned, "receiveInSandbox": owned, "callInSandbox": owned, "appearInSandbox": owned, "createGroupInSandbox": owned, "changeGroupInSandbox": owned, "setContactInSandbox": owned, "setChatInSandbox": owned, "confirmInSandbox": owned, "breakInSandbox": owned, "showSandboxPhone": owned,
	}
}

// pages has, for each operation with a cursor, what makes a list of two.
func pages() map[string]func(t *tenant) (target string) {
	two := func(build func(*tenant) string, target string) func(*tenant) string {
		return func(t *tenant) string {
			build(t)
			build(t)
			return target
		}
	}
	sent := func(t *tenant) string { _, id := message(t); return id }
	ofMember := func(path string) func(*tenant) string {
		return func(t *tenant) string { return "/v1/devices/" + member(t) + path }
	}
	return map[string]func(*tenant) string{
		"listDevices": two(connected, "/v1/devices"), "listWebhooks": two(webhook, "/v1/webhooks"),
		"listMessages": two(sent, "/v1/messages"), "listEvents": two(connected, "/v1/events"),
		"listChats": func(t *tenant) string {
			received(t, connected(t))
			received(t, connected(t))
			return "/v1/chats"
		},
		"listContacts": func(t *tenant) string {
			met(t)
			met(t)
			return "/v1/contacts"
		},
		"listGroups": func(t *tenant) string {
			id := grouped(t)
			d, err := t.db.Devices.ForEngine(t.t.Context(), postern.DeviceID(id))
			g := theGroup()
			g.ChatID = "group:120363041234567891"
			if err == nil {
				err = t.g.Sessions.NoteGroup(t.t.Context(), d, postern.GroupNotice{ChatID: g.ChatID, Seen: &g})
			}
			if err != nil {
				t.t.Fatal(err)
			}
			return "/v1/devices/" + id + "/groups"
		},
		"listLabels": ofMember("/labels"), "listChannels": ofMember("/channels"), "listBlocked": ofMember("/blocked"),
		"listSubgroups": ofMember(aGroup + "/subgroups"), "listJoinRequests": ofMember(aGroup + "/requests"),
		"getMessageTimeline": func(t *tenant) string { _, id := message(t); return "/v1/messages/" + id + "/timeline" },
		"getMessageReceipts": func(t *tenant) string { return "/v1/messages/" + confirmedInGroup(t) + "/receipts" },
		"listDeliveries": func(t *tenant) string {
			id := delivery(t)
			e, err := t.g.Webhooks.Get(t.t.Context(), t.caller(), postern.EndpointID(id))
			if err != nil {
				t.t.Fatal(err)
			}
			m := postern.Message{
				WorkspaceID: t.ws, DeviceID: e.DeviceIDs[0], Direction: postern.Inbound,
				Status: postern.Received, ChatID: "+15551234567", From: "+15551234567", Content: postern.Text("Hi"),
				NetworkID: "n2", Source: postern.FromContact,
			}
			if err := t.g.Sessions.Receive(t.t.Context(), m, "+15551234567", postern.MessageReceived, gateway.ArrivedFile{}); err != nil {
				t.t.Fatal(err)
			}
			return "/v1/webhooks/" + id + "/deliveries"
		},
	}
}

// confirmedInGroup sends a message to a group, which two members confirm.
func confirmedInGroup(t *tenant) (id string) {
	t.t.Helper()
	device := connected(t)
	a := t.do("POST", "/v1/messages", `{"deviceId":"`+device+`","to":"group:120363012345678901","body":"Hello"}`)
	a.want(http.StatusAccepted, "")
	for _, member := range []string{"lid:1234567890", "lid:1234567891"} {
		err := t.g.Sessions.Confirm(t.t.Context(), postern.Device{ID: postern.DeviceID(device), WorkspaceID: t.ws},
			gateway.Receipt{
				NetworkIDs: []string{a.member("networkId")}, Chats: []string{"group:120363012345678901"}, Member: member,
				Status: postern.Delivered, At: 1,
			})
		if err != nil {
			t.t.Fatal(err)
		}
	}
	return a.member("id")
}

// namesOneThing asks for the tenant's own things, with one of the owner's in
// the place of one of its own: each place in the path, the query and the body.
func (t *tenant) namesOneThing(method string, owners, own [2]string) {
	t.t.Helper()
	n := 0
	for part := range own {
		theirs, mine := anID.FindAllString(owners[part], -1), anID.FindAllStringIndex(own[part], -1)
		for i, place := range mine {
			n++
			asked := own
			asked[part] = own[part][:place[0]] + theirs[i] + own[part][place[1]:]
			a := t.do(method, asked[0], asked[1])
			a.what += " naming " + theirs[i][:4] + " of another"
			a.want(http.StatusForbidden, postern.ResourceNotAllowed)
		}
	}
	if n == 0 {
		t.t.Errorf("%s %s names nothing", method, own[0])
	}
}

func unchanged(t testing.TB, before, after []string) {
	t.Helper()
	old := map[string]bool{}
	for _, row := range before {
		old[row] = true
	}
	// The key cache writes when a key was used last, which is the owner's own doing.
	for _, row := range after {
		if !old[row] && !strings.HasPrefix(row, "api_key ") {
			t.Errorf("a row of the owner's is new or changed: %.200q", row)
		}
	}
	if len(after) < len(before) {
		t.Errorf("the owner had %d rows and has %d", len(before), len(after))
	}
}

var anEvent = regexp.MustCompile(`evt_[0-9A-Z]{26}`)

// TestWalkTheQueries puts another workspace's ids and cursors into every
// parameter that takes one, in the query and in the headers.
func TestWalkTheQueries(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	owner, stranger := s.tenant("enterprise"), s.tenant("enterprise")
	device := connected(owner)
	event := strings.Join(anEvent.FindAllString(owner.do("GET", "/v1/events?deviceId="+device, "").Body.String(), 1),
		"")
	cursors, lists := map[string]string{}, map[string]string{}
	for id, build := range pages() {
		cursors[id] = owner.do("GET", build(owner)+"?limit=1", "").member("nextCursor")
		lists[id] = build(stranger)
		if cursors[id] == "" {
			t.Fatalf("%s gives no cursor", id)
		}
	}
	before := storetest.RowsOf(t, s.dir, string(owner.ws))
	for _, methods := range described().Paths {
		for _, op := range methods {
			target := lists[op.OperationID]
			if target == "" {
				target = op.path
			}
			for _, p := range op.Parameters {
				switch p.Name {
				case "deviceId":
					stranger.do(op.method, target+"?deviceId="+device, "").want(http.StatusForbidden,
						postern.ResourceNotAllowed)
				case "after":
					stranger.do(op.method, target+"?after="+event, "").want(http.StatusForbidden,
						postern.ResourceNotAllowed)
				case "Last-Event-ID":
					stranger.do(op.method, target, "", "Last-Event-ID", event).want(http.StatusForbidden,
						postern.ResourceNotAllowed)
				case "cursor":
					if cursors[op.OperationID] == "" {
						t.Errorf("%s has a cursor, and no row in the table of pages", op.OperationID)
						continue
					}
					stranger.do(op.method, target+"?cursor="+cursors[op.OperationID], "").want(http.StatusBadRequest,
						postern.MalformedRequest)
				case "id", "limit", "type", "chatId", "contactId", "callId", "direction", "status", "q", "since", "until", "archived", "unread", "label", "labelId", "subgroupId", "filename",
					"Idempotency-Key":
				default:
					t.Errorf("%s has the parameter %s: does it take what may be another's?", op.OperationID, p.Name)
				}
			}
		}
	}
	unchanged(t, before, storetest.RowsOf(t, s.dir, string(owner.ws)))
}

// TestWalkTheMethods tries every method on every path: what is not described
// is 405, with and without a key.
func TestWalkTheMethods(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("starter")
	for route, methods := range described().Paths {
		allowed := []string{}
		for method := range maps.Keys(methods) {
			allowed = append(allowed, strings.ToUpper(method))
		}
		also := map[string]string{ // paths that are also those of a group or a channel
			"/v1/devices/{id}/groups/join":     "/v1/devices/{id}/groups/{chatId}",
			"/v1/devices/{id}/channels/follow": "/v1/devices/{id}/channels/{chatId}",
		}
		for method := range described().Paths[also[route]] {
			allowed = append(allowed, strings.ToUpper(method))
		}
		if slices.Contains(allowed, "GET") {
			allowed = append(allowed, "HEAD")
		}
		slices.Sort(allowed)
		target := strings.ReplaceAll(route, "{id}", "x")
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"} {
			if slices.Contains(allowed, method) {
				continue
			}
			for _, a := range []*answerT{s.do(method, target, ""), mine.do(method, target, "")} {
				a.want(http.StatusMethodNotAllowed, postern.MethodNotAllowed)
				if got := a.Header().Get("Allow"); got != strings.Join(allowed, ", ") {
					t.Errorf("%s %s: Allow %q, want %v", method, target, got, allowed)
				}
			}
		}
	}
}

// TestChangedRowsAreNoticed shows that the comparison of rows can fail.
func TestChangedRowsAreNoticed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine, other := s.tenant("enterprise"), s.tenant("enterprise")
	device := connected(mine)
	before := storetest.RowsOf(t, s.dir, string(mine.ws))
	connected(other)
	if after := storetest.RowsOf(t, s.dir, string(mine.ws)); !slices.Equal(before, after) {
		t.Errorf("what another makes changes the rows: %v", after)
	}
	mine.do("DELETE", "/v1/devices/"+device, "").want(http.StatusNoContent, "")
	if after := storetest.RowsOf(t, s.dir, string(mine.ws)); slices.Equal(before, after) || len(before) < 5 {
		t.Errorf("a device was deleted, and of %d rows none changed", len(before))
	}
}
