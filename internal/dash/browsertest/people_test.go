package browsertest

import (
	"strings"
	"testing"

	"postern/internal/access"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/testkit"

	"github.com/chromedp/chromedp"
)

const guest = "bob@example.com"

func TestInvitedViewerJoinsAndIsRefusedTheKeys(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	ada, bob := open(t, k.URL()), open(t, k.URL())
	ada.setUp(k)
	ada.goTo("/people")
	ada.sees("Invite a member")
	ada.fill("#email", guest)
	ada.press(`form[action="/people/invitations"] button`)
	ada.sees("You cannot see the link again")
	ada.picture("invitation-shown")
	ada.usable()
	link := ada.joinLink()
	ada.goTo("/people")
	ada.sees(guest)
	ada.picture("people")
	ada.usable()
	ada.do(chromedp.Navigate(link))
	ada.sees("You are signed in as " + email)
	ada.picture("join-other")
	ada.usable()

	bob.do(chromedp.Navigate(link))
	bob.sees("Join Acme")
	bob.picture("join")
	bob.usable()
	bob.fill("#password", password)
	bob.press("main form button:not([type])")
	bob.sees("You are now a member of this workspace")
	bob.goTo("/keys")
	bob.sees("Not allowed")
	bob.usable()
	bob.do(chromedp.Navigate(link))
	bob.sees("used already")
	bob.picture("join-over")

	ada.goTo("/people")
	ada.do(click(`button[aria-label="Change role of ` + guest + `"]`))
	ada.picture("people-role")
	ada.usable()
	ada.do(click(`dialog[open] input[value="developer"]`))
	ada.press(`dialog[open] button.btn-primary`)
	ada.sees("The role was changed")
	bob.goTo("/keys")
	bob.sees("API keys")
	ada.press(`a[href="/people/audit"]`)
	ada.sees("Changed the role to developer")
	ada.picture("audit")
	ada.goTo("/people")
	ada.do(click(`button[aria-label="Remove ` + guest + `"]`))
	ada.press(`dialog[open] button.btn-error`)
	bob.goTo("/devices")
	bob.sees("You are no longer a member of any workspace")
}

// joinLink is the link that the page shows.
func (b *browser) joinLink() string {
	b.t.Helper()
	for word := range strings.FieldsSeq(b.text()) {
		if strings.HasPrefix(word, b.url+"/join/") {
			return word
		}
	}
	b.t.Fatalf("no link is shown: %.800s", b.text())
	return ""
}

// Who has an account joins a second workspace with it, by signing in where the link
// leads, and goes from one workspace to the other.
func TestInvitedWhoHasAnAccountSignsInAndSwitches(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	ada, bob := open(t, k.URL()), open(t, k.URL())
	ada.setUp(k)
	ada.goTo("/devices/new")
	ada.fill("#name", "Of Acme")
	ada.press("main form button:not([type])")
	ada.goTo("/account")
	ada.press(`button[name="end"][value="all"]`)

	beta := k.NamedWorkspace("Beta", "growth")
	_, token, err := k.People().Invitations.Create(t.Context(), access.Operator(), beta.Workspace, people.NewInvitation{
		Email: guest, Role: postern.Owner,
	})
	if err != nil {
		t.Fatal(err)
	}
	bob.goTo("/join/" + token)
	bob.fill("#password", password)
	bob.press("main form button:not([type])")
	bob.goTo("/people")
	bob.fill("#email", email)
	bob.press(`form[action="/people/invitations"] button`)
	link := bob.joinLink()

	ada.do(chromedp.Navigate(link))
	ada.sees("Join Beta")
	ada.sees("An account with this email address already exists.")
	ada.looks("join-account")
	ada.press(`main a.btn-primary`)
	ada.fill("#email", email, "#password", password)
	ada.press("main form button:not([type])")
	if got := ada.url + ada.path(); got != link {
		t.Errorf("signed in, the browser is at %s, want %s", got, link)
	}
	ada.sees("Join Beta")
	ada.looks("join-again")
	ada.press(`main form[action^="/join/"] button`)
	ada.sees("You are now a member of this workspace")
	ada.in("Beta")
	ada.goTo("/devices")
	ada.sees("No devices yet")
	ada.goTo("/people") // a viewer there, and an owner at home
	ada.sees("Not allowed")

	ada.switchTo("Acme")
	ada.goTo("/devices")
	ada.sees("Of Acme")
	ada.goTo("/people")
	ada.sees("Invite a member")
	ada.switchTo("Beta")
	ada.goTo("/keys")
	ada.sees("Not allowed")
	bob.goTo("/people")
	bob.sees(email)
	bob.looks("people-joined")
	ada.do(chromedp.Navigate(link))
	ada.sees("used already")
}

// in fails unless the page is that of a workspace.
func (b *browser) in(workspace string) {
	b.t.Helper()
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.querySelector("header summary bdi").textContent`))
	if b.must(err); got != workspace {
		b.t.Errorf("the page is that of %q, want %q", got, workspace)
	}
}

// switchTo goes to another workspace by the menu.
func (b *browser) switchTo(workspace string) {
	b.t.Helper()
	b.goTo("/")
	b.do(click("header details.drop summary"))
	b.picture("workspace-menu")
	b.press(`header div.start-0 form[action="/workspace"] button`)
	b.in(workspace)
}
