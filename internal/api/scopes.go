package api

import (
	"fmt"

	"postern/internal/api/spec"
	"postern/internal/postern"
)

// scopes is the table of the scopes that each operation needs.
func scopes() map[string][]postern.Scope {
	return map[string][]postern.Scope{
		"listDevices":          {postern.DevicesRead},
		"createDevice":         {postern.DevicesWrite},
		"getDevice":            {postern.DevicesRead},
		"updateDevice":         {postern.DevicesWrite},
		"deleteDevice":         {postern.DevicesWrite},
		"pauseDevice":          {postern.DevicesWrite},
		"resumeDevice":         {postern.DevicesWrite},
		"unlinkDevice":         {postern.DevicesWrite},
		"getProfile":           {postern.DevicesRead, postern.MessagesRead},
		"setProfile":           {postern.DevicesWrite, postern.MessagesRead},
		"openLink":             {postern.DevicesWrite},
		"getLink":              {postern.DevicesRead}, // the code needs more: gateway.Links.Get
		"openLinkPage":         {postern.DevicesWrite},
		"answerPasskey":        {postern.DevicesWrite},
		"confirmLink":          {postern.DevicesWrite},
		"cancelLink":           {postern.DevicesWrite},
		"getLinkSVG":           {postern.DevicesWrite},
		"getLinkPNG":           {postern.DevicesWrite},
		"streamLink":           {postern.DevicesRead}, // its codes need more, too
		"listContacts":         {postern.ContactsRead},
		"getContact":           {postern.ContactsRead},
		"eraseContact":         {postern.ContactsWrite},
		"checkNumbers":         {postern.ContactsWrite},
		"getContactPicture":    {postern.ContactsRead, postern.MessagesRead},
		"listBlocked":          {postern.ContactsRead},
		"blockContact":         {postern.ContactsWrite},
		"unblockContact":       {postern.ContactsWrite},
		"showTyping":           {postern.MessagesWrite},
		"streamPresence":       {postern.MessagesRead, postern.MessagesWrite}, // it shows the account as online
		"askHistory":           {postern.MessagesWrite},
		"rejectCall":           {postern.MessagesWrite},
		"listChats":            {postern.MessagesRead},
		"getChat":              {postern.MessagesRead},
		"markChatRead":         {postern.MessagesWrite},
		"archiveChat":          {postern.MessagesWrite},
		"muteChat":             {postern.MessagesWrite},
		"listSubgroups":        {postern.ContactsRead},
		"linkGroup":            {postern.ContactsWrite},
		"unlinkGroup":          {postern.ContactsWrite},
		"labelChat":            {postern.MessagesWrite},
		"unlabelChat":          {postern.MessagesWrite},
		"listLabels":           {postern.MessagesRead},
		"createLabel":          {postern.MessagesWrite},
		"updateLabel":          {postern.MessagesWrite},
		"deleteLabel":          {postern.MessagesWrite},
		"listChannels":         {postern.ContactsRead},
		"followByInvite":       {postern.ContactsWrite},
		"followChannel":        {postern.ContactsWrite},
		"unfollowChannel":      {postern.ContactsWrite},
		"listGroups":           {postern.ContactsRead},
		"createGroup":          {postern.ContactsWrite},
		"joinGroup":            {postern.ContactsWrite},
		"getGroup":             {postern.ContactsRead},
		"updateGroup":          {postern.ContactsWrite},
		"changeParticipants":   {postern.ContactsWrite},
		"getGroupPicture":      {postern.ContactsRead, postern.MessagesRead},
		"setGroupPicture":      {postern.ContactsWrite, postern.MessagesRead},
		"removeGroupPicture":   {postern.ContactsWrite},
		"getInvite":            {postern.ContactsRead},
		"resetInvite":          {postern.ContactsWrite},
		"listJoinRequests":     {postern.ContactsRead},
		"answerJoinRequests":   {postern.ContactsWrite},
		"leaveGroup":           {postern.ContactsWrite},
		"sendMessage":          {postern.MessagesWrite},
		"listMessages":         {postern.MessagesRead},
		"getMessage":           {postern.MessagesRead},
		"getMessageTimeline":   {postern.MessagesRead},
		"getMessageReceipts":   {postern.MessagesRead},
		"reactToMessage":       {postern.MessagesWrite},
		"removeReaction":       {postern.MessagesWrite},
		"pinMessage":           {postern.MessagesWrite},
		"unpinMessage":         {postern.MessagesWrite},
		"starMessage":          {postern.MessagesWrite},
		"unstarMessage":        {postern.MessagesWrite},
		"editMessage":          {postern.MessagesWrite},
		"deleteMessage":        {postern.MessagesWrite},
		"cancelMessage":        {postern.MessagesWrite},
		"voteInPoll":           {postern.MessagesWrite},
		"markMessageRead":      {postern.MessagesWrite},
		"markMessagePlayed":    {postern.MessagesWrite},
		"uploadMedia":          {postern.MessagesWrite},
		"getMedia":             {postern.MessagesRead},
		"getMediaContent":      {postern.MessagesRead},
		"deleteMedia":          {postern.MessagesWrite},
		"listWebhooks":         {postern.WebhooksRead},
		"createWebhook":        {postern.WebhooksWrite, postern.MessagesRead, postern.EventsRead}, // it outlives the key
		"getWebhook":           {postern.WebhooksRead},
		"deleteWebhook":        {postern.WebhooksWrite},
		"updateWebhook":        {postern.WebhooksWrite}, // a new URL needs more: gateway.Webhooks.Change
		"verifyWebhook":        {postern.WebhooksWrite},
		"pauseWebhook":         {postern.WebhooksWrite},
		"resumeWebhook":        {postern.WebhooksWrite},
		"rotateSecret":         {postern.WebhooksWrite},
		"testWebhook":          {postern.WebhooksWrite},
		"createReplay":         {postern.WebhooksWrite, postern.MessagesRead, postern.EventsRead},
		"getReplay":            {postern.WebhooksRead},
		"stopReplay":           {postern.WebhooksWrite},
		"listDeliveries":       {postern.WebhooksRead},
		"getWebhookStats":      {postern.WebhooksRead},
		"getDelivery":          {postern.WebhooksRead}, // its body needs more: gateway.Deliveries.Get
		"retryDelivery":        {postern.WebhooksWrite},
		"listEvents":           {postern.EventsRead},
		"streamEvents":         {postern.EventsRead},
		"getMe":                {}, // every key may read what it is
		"getUsage":             {postern.UsageRead},
		"scanInSandbox":        {postern.SandboxWrite},
		"getPasskeyInSandbox":  {postern.SandboxWrite},
		"receiveInSandbox":     {postern.SandboxWrite},
		"callInSandbox":        {postern.SandboxWrite},
		"appearInSandbox":      {postern.SandboxWrite},
		"rememberInSandbox":    {postern.SandboxWrite},
		"createGroupInSandbox": {postern.SandboxWrite},

		"createChannelInSandbox": {postern.SandboxWrite},

		"changeGroupInSandbox": {postern.SandboxWrite},
		"setChatInSandbox":     {postern.SandboxWrite},
		"setContactInSandbox":  {postern.SandboxWrite},
		"confirmInSandbox":     {postern.SandboxWrite},
		"breakInSandbox":       {postern.SandboxWrite},
		"showSandboxPhone":     {postern.SandboxWrite},
	}
}

// checkScopes compares the table with the operations. Each must have a row, and
// each row an operation.
func (a *API) checkScopes() error {
	served := map[string]bool{}
	for path, item := range a.huma.OpenAPI().Paths {
		for method, op := range spec.Operations(item) {
			served[op.OperationID] = true
			if a.scopes[op.OperationID] == nil {
				return fmt.Errorf("%s %s (%s) has no row in the table of scopes", method, path, op.OperationID)
			}
		}
	}
	for id := range a.scopes {
		if !served[id] {
			return fmt.Errorf("the table of scopes has a row for %s, which is not served", id)
		}
	}
	return nil
}
