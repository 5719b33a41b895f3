package api_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"postern/internal/api"
	"postern/internal/postern"
)

// calls names the method of package gateway behind each operation.
func calls() map[string]string {
	return map[string]string{
		"listDevices": "Devices.List", "createDevice": "Devices.Create", "getDevice": "Devices.Get",
		"updateDevice": "Devices.Change", "deleteDevice": "Devices.Delete", "pauseDevice": "Devices.Pause",
		"resumeDevice": "Devices.Resume", "unlinkDevice": "Devices.Unlink",
		"getProfile": "Devices.Profile", "setProfile": "Devices.ChangeProfile",
		"openLink": "Links.Open", "getLink": "Links.Get", "openLinkPage": "LinkPages.Open",
		"answerPasskey": "Links.AnswerPasskey", "confirmLink": "Links.Confirm", "cancelLink": "Links.Cancel", "getLinkSVG": "Links.Code",
		"getLinkPNG": "Links.Code", "streamLink": "Links.Watch",
		"getContactPicture": "Contacts.Picture", "listBlocked": "Contacts.Blocked", "blockContact": "Contacts.SetBlocked", "unblockContact": "Contacts.SetBlocked",
		"checkNumbers": "Contacts.Check", "showTyping": "Contacts.Type", "streamPresence": "Contacts.Follow", "rejectCall": "Contacts.Reject",
		"listChats": "Chats.List", "getChat": "Chats.Get", "markChatRead": "Chats.MarkRead", "archiveChat": "Chats.Archive", "muteChat": "Chats.Mute",
		"askHistory": "Messages.AskHistory", "rememberInSandbox": "SandboxPhones.Remember",
		"listContacts": "Contacts.List", "getContact": "Contacts.Get", "eraseContact": "Contacts.Erase",
		"listSubgroups": "Groups.Subgroups", "linkGroup": "Groups.Link", "unlinkGroup": "Groups.Link",
		"labelChat": "Labels.Put", "unlabelChat": "Labels.Put", "listLabels": "Labels.List", "createLabel": "Labels.Create", "updateLabel": "Labels.Change", "deleteLabel": "Labels.Delete",
		"listChannels": "Channels.List", "followByInvite": "Channels.FollowInvite", "followChannel": "Channels.Follow",
		"unfollowChannel": "Channels.Unfollow", "createChannelInSandbox": "SandboxPhones.CreateChannel",
		"listGroups": "Groups.List", "createGroup": "Groups.Create", "joinGroup": "Groups.Join", "getGroup": "Groups.Get",
		"updateGroup": "Groups.Change", "changeParticipants": "Groups.ChangeParticipants", "getInvite": "Groups.Invite",
		"getGroupPicture": "Groups.Picture", "setGroupPicture": "Groups.SetPicture", "removeGroupPicture": "Groups.RemovePicture",
		"resetInvite": "Groups.ResetInvite", "listJoinRequests": "Groups.Requests",
		"answerJoinRequests": "Groups.AnswerRequests", "leaveGroup": "Groups.Leave",
		"sendMessage": "Messages.Send", "listMessages": "Messages.List", "getMessage": "Messages.Get", "getMessageTimeline": "Messages.Timeline",
		"getMessageReceipts": "Messages.Receipts",
		"reactToMessage":     "Actions.React", "removeReaction": "Actions.React", "pinMessage": "Actions.Pin", "unpinMessage": "Actions.Unpin", "starMessage": "Actions.Star", "unstarMessage": "Actions.Unstar", "editMessage": "Actions.Edit",
		"deleteMessage": "Actions.Delete", "cancelMessage": "Actions.Cancel", "voteInPoll": "Actions.Vote", "markMessageRead": "Actions.MarkRead", "markMessagePlayed": "Actions.MarkPlayed",
		"uploadMedia": "Media.Upload", "getMedia": "Media.Get", "getMediaContent": "Media.Open", "deleteMedia": "Media.Delete",
		"listWebhooks": "Webhooks.List", "createWebhook": "Webhooks.Create", "getWebhook": "Webhooks.Get",
		"deleteWebhook": "Webhooks.Delete", "updateWebhook": "Webhooks.Change", "verifyWebhook": "Webhooks.Verify",
		"pauseWebhook": "Webhooks.Pause", "resumeWebhook": "Webhooks.Resume", "rotateSecret": "Webhooks.RotateSecret",
		"testWebhook": "Webhooks.Test", "getWebhookStats": "Webhooks.Hours",
		"createReplay": "Replays.Create", "getReplay": "Replays.Get", "stopReplay": "Replays.Stop",
		"listDeliveries": "Deliveries.List", "getDelivery": "Deliveries.Get", "retryDelivery": "Deliveries.Retry",
		"listEvents": "Events.List", "streamEvents": "Events.Follow", "getUsage": "Statistics.Usage", "getMe": "Keys.Me",
		"scanInSandbox": "SandboxPhones.Scan", "getPasskeyInSandbox": "SandboxPhones.Passkey", "receiveInSandbox": "SandboxPhones.Inbound", "callInSandbox": "SandboxPhones.Call", "appearInSandbox": "SandboxPhones.Appear", "createGroupInSandbox": "SandboxPhones.CreateGroup", "changeGroupInSandbox": "SandboxPhones.ChangeGroup",
		"setChatInSandbox": "SandboxPhones.SetChat", "setContactInSandbox": "SandboxPhones.SetContact",
		"confirmInSandbox": "SandboxPhones.Receipt", "breakInSandbox": "SandboxPhones.Fault",
		"showSandboxPhone": "SandboxPhones.List",
	}
}

// The table of scopes asks for what the method behind each operation asks for.
func TestScopesAreThoseOfTheGateway(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../access/testdata/rights.txt")
	if err != nil {
		t.Fatal(err)
	}
	rights := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		method, scopes, _ := strings.Cut(strings.TrimSpace(line), ": ")
		rights[method] = strings.Fields(scopes)
	}
	methods := calls()
	for _, id := range api.Operations() {
		got, want := words(api.ScopesOf(id)), rights["gateway."+methods[id]]
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s needs %v, and gateway.%s needs %v", id, got, methods[id], want)
		}
		delete(methods, id)
	}
	for id := range methods {
		t.Errorf("%s is no operation", id)
	}
}

func words(scopes []postern.Scope) (list []string) {
	for _, s := range scopes {
		list = append(list, string(s))
	}
	slices.Sort(list)
	return list
}
