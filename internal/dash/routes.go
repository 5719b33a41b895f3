package dash

import (
	"net/http"

	"postern/internal/postern"
)

// routes names every page, and who may see it. A path that is not here is not served.
//
// Pages ask for the scopes that the API asks for (api/scopes.go), and for that of
// devices where their names are shown. Those without scopes ask for a role instead:
// see gateway.Keys, people.Members.
func (d *dash) routes() {
	const (
		devicesRead, devicesWrite   = postern.DevicesRead, postern.DevicesWrite
		messagesRead, messagesWrite = postern.MessagesRead, postern.MessagesWrite
		webhooksRead, webhooksWrite = postern.WebhooksRead, postern.WebhooksWrite
		eventsRead, usageRead       = postern.EventsRead, postern.UsageRead
		sandboxWrite                = postern.SandboxWrite
	)
	d.open("/", func(http.ResponseWriter, *http.Request) error { return errNoPage })
	d.open("GET /setup/{token}", d.signIns.showSetUp)
	d.open("POST /setup/{token}", d.signIns.setUp)
	d.open("GET /signin", d.signIns.show)
	d.open("POST /signin", d.signIns.signIn)
	d.open("GET /signin/second", d.signIns.showSecond)
	d.open("POST /signin/second", d.signIns.second)
	d.open("POST /signout", d.signIns.signOut)
	d.open("GET /join/{token}", d.invitations.show)
	d.open("POST /join/{token}", d.invitations.join)
	if d.mail != nil {
		d.open("GET /signin/forgotten", d.signIns.showForgotten)
		d.open("POST /signin/forgotten", d.signIns.forgotten)
	}
	if d.signOn != nil {
		d.open("GET /signin/oidc", d.signOns.beginSignIn)
		d.open("GET "+SignOnPath, d.signOns.end)
		d.open("GET /join/{token}/oidc", d.signOns.beginJoin)
		d.member("GET /account/again", d.signOns.beginAgain)
		d.sureFrom("/account/identities", "GET /account/identities/connect", d.signOns.beginConnect)
	}
	d.member("GET /account/identities", d.signOns.show)
	d.sureFrom("/account/identities", "POST /account/identities/disconnect", d.signOns.disconnect)
	d.member("GET /account", d.account.show)
	d.member("POST /account/password", d.account.changePassword)
	d.member("POST /account/sessions", d.account.endSessions)
	d.member("GET /account/second", d.factors.show)
	d.member("POST /account/second", d.factors.enterAgain)
	d.sure("POST /account/second/app", d.factors.beginApp)
	d.sure("GET /account/second/app", d.factors.showApp)
	d.sure("POST /account/second/app/confirm", d.factors.confirmApp)
	d.sure("POST /account/second/app/remove", d.factors.remove)
	d.sure("POST /account/second/passkeys", d.factors.addPasskey)
	d.sure("POST /account/second/passkeys/{id}/remove", d.factors.remove)
	d.sure("POST /account/second/recovery", d.factors.newRecoveryCodes)
	d.member("GET /{$}", d.overview.show, usageRead, devicesRead)
	d.member("GET /usage", d.overview.usage, usageRead)
	d.member("GET /events", d.events.list, eventsRead)
	d.member("GET /events/new", d.events.newer, eventsRead)
	d.ours("GET /messages", d.messages.list, messagesRead, devicesRead)
	d.ours("GET /messages.csv", d.exports.download, messagesRead)
	d.ours("GET /messages/new", d.messages.form, messagesWrite, devicesRead)
	d.ours("POST /messages", d.messages.send, messagesWrite, devicesRead)
	d.ours("GET /messages/{id}", d.messages.show, messagesRead, devicesRead)
	d.ours("GET /messages/chats", d.chats.list, messagesRead, devicesRead)
	d.ours("GET /messages/chats/{device}/{chat}", d.chats.show, messagesRead, devicesRead)
	d.ours("POST /messages/chats/{device}/{chat}", d.chats.reply, messagesWrite, messagesRead, devicesRead)
	d.member("GET /devices", d.devices.list, devicesRead)
	d.member("GET /devices/new", d.devices.form, devicesWrite)
	d.member("POST /devices", d.devices.create, devicesWrite)
	d.ours("GET /devices/{id}", d.devices.show, devicesRead)
	d.ours("POST /devices/{id}/link", d.devices.openLink, devicesWrite)
	d.ours("POST /devices/{id}/link/cancel", d.devices.cancelLink, devicesWrite)
	d.ours("POST /devices/{id}/link/page", d.devices.shareLink, devicesWrite)
	d.ours("POST /devices/{id}/pause", d.devices.pause, devicesWrite)
	d.ours("POST /devices/{id}/resume", d.devices.resume, devicesWrite)
	d.ours("POST /devices/{id}/unlink", d.devices.unlink, devicesWrite)
	d.ours("GET /devices/{id}/health", d.devices.showHealth, devicesRead, eventsRead)
	d.ours("GET /devices/{id}/delete", d.devices.askDelete, devicesWrite)
	d.ours("POST /devices/{id}/delete", d.devices.delete, devicesWrite)
	d.ours("GET /devices/{id}/phone", d.phones.show, sandboxWrite, messagesRead)
	d.ours("POST /devices/{id}/phone/scan", d.phones.scan, sandboxWrite)
	d.ours("POST /devices/{id}/phone/write", d.phones.receive, sandboxWrite, messagesRead)
	d.ours("POST /devices/{id}/phone/delivered/{message}", d.phones.deliver, sandboxWrite)
	d.ours("POST /devices/{id}/phone/read/{message}", d.phones.read, sandboxWrite)
	d.ours("POST /devices/{id}/phone/fault", d.phones.fault, sandboxWrite)
	d.ours("POST /devices/{id}/phone/offline", d.phones.offline, sandboxWrite)
	d.member("GET /webhooks", d.webhooks.list, webhooksRead)
	d.member("GET /webhooks/new", d.webhooks.form, webhooksWrite, messagesRead, eventsRead)
	d.member("POST /webhooks", d.webhooks.create, webhooksWrite, messagesRead, eventsRead)
	d.hook("GET /webhooks/{id}", d.webhooks.show, webhooksRead)
	d.hook("POST /webhooks/{id}", d.webhooks.change, webhooksWrite)
	d.hook("GET /webhooks/{id}/edit", d.webhooks.edit, webhooksWrite)
	d.hook("POST /webhooks/{id}/verify", d.webhooks.verify, webhooksWrite)
	d.hook("POST /webhooks/{id}/test", d.webhooks.test, webhooksWrite)
	d.hook("POST /webhooks/{id}/pause", d.webhooks.pause, webhooksWrite)
	d.hook("POST /webhooks/{id}/resume", d.webhooks.resume, webhooksWrite)
	d.hook("POST /webhooks/{id}/rotate", d.webhooks.rotateSecret, webhooksWrite)
	d.hook("GET /webhooks/{id}/secret", d.webhooks.askSecret, webhooksWrite)
	d.hook("POST /webhooks/{id}/secret", d.webhooks.revealSecret, webhooksWrite)
	d.hook("POST /webhooks/{id}/delete", d.webhooks.delete, webhooksWrite)
	d.hook("GET /webhooks/{id}/deliveries", d.deliveries.list, webhooksRead)
	d.hook("GET /webhooks/{id}/deliveries/{delivery}", d.deliveries.show, webhooksRead) // its body needs more
	d.hook("POST /webhooks/{id}/deliveries/{delivery}/retry", d.deliveries.retry, webhooksWrite)
	d.hook("GET /webhooks/{id}/replays", d.replays.list, webhooksRead)
	d.hook("GET /webhooks/{id}/replay", d.replays.form, webhooksWrite, messagesRead, eventsRead)
	d.hook("POST /webhooks/{id}/replay", d.replays.create, webhooksWrite, messagesRead, eventsRead)
	d.hook("GET /webhooks/{id}/replays/{replay}", d.replays.show, webhooksRead)
	d.hook("POST /webhooks/{id}/replays/{replay}/stop", d.replays.stop, webhooksWrite)
	d.member("GET /keys", d.keys.list)
	d.member("GET /keys/new", d.keys.form)
	d.member("POST /keys", d.keys.create)
	d.member("POST /keys/{id}/rotate", d.keys.rotate)
	d.member("POST /keys/{id}/revoke", d.keys.revoke)
	d.member("GET /people", d.members.show)
	d.member("GET /people/audit", d.members.audit)
	d.member("POST /people/invitations", d.invitations.create)
	d.member("POST /people/invitations/{id}/revoke", d.invitations.revoke)
	d.member("POST /people/{id}/role", d.members.changeRole)
	d.member("POST /people/{id}/remove", d.members.remove)
	d.signedIn("GET /workspaces", d.workspaces.choose) // these two lead away from a workspace that cannot be shown
	d.signedIn("POST /workspace", d.workspaces.switchTo)
	d.operatorPage("GET /operator", d.operator.show)
	d.operatorPage("GET /operator/workspaces", d.workspaces.list)
	d.operatorPage("GET /operator/workspaces/new", d.workspaces.form)
	d.operatorPage("POST /operator/workspaces", d.workspaces.create)
	d.operatorPage("GET /operator/workspaces/{id}", d.workspaces.show)
	d.operatorPage("POST /operator/workspaces/{id}/plan", d.workspaces.changePlan)
	d.operatorPage("POST /operator/workspaces/{id}/limits", d.workspaces.changeLimits)
	d.operatorPage("GET /operator/people", d.operator.users)
	d.operatorPage("GET /operator/people/{id}/password", d.operator.askPasswordLink)
	d.operatorPage("POST /operator/people/{id}/password", d.operator.createPasswordLink)
}
