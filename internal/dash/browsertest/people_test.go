package browsertest

import (
	"strings"
	"testing"

	"postern/internal/testkit"

	"github.com/chromedp/chromedp"
)

const guest = "bob@example.com"

func TestInvitedViewerJoinsAndIsRefusedTheKeys(t *testing.T) {
	k := testkit.Start(t)
	ada, bob := open(t, k.URL()), open(t, k.URL())
	ada.setUp(k.SetUpURL())
	ada.goTo("/people")
	ada.sees("Invite somebody")
	ada.fill("#email", guest)
	ada.press(`form[action="/people/invitations"] button`)
	ada.sees("It is shown this once")
	ada.picture("invitation-shown")
	ada.usable()
	link := ""
	for word := range strings.FieldsSeq(ada.text()) {
		if strings.HasPrefix(word, k.URL()+"/join/") {
			link = word
		}
	}
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
	bob.sees("you belong to this workspace now")
	bob.goTo("/keys")
	bob.sees("Not allowed")
	bob.usable()
	bob.do(chromedp.Navigate(link))
	bob.sees("used already")
	bob.picture("join-over")

	ada.goTo("/people")
	ada.do(chromedp.Click(chromedp.CSS(`button[aria-label="Change role of ` + guest + `"]`)))
	ada.picture("people-role")
	ada.usable()
	ada.do(chromedp.Click(chromedp.CSS(`dialog[open] input[value="developer"]`)))
	ada.press(`dialog[open] button.btn-primary`)
	ada.sees("The role is changed")
	bob.goTo("/keys")
	bob.sees("API keys")
	ada.press(`a[href="/people/audit"]`)
	ada.sees("Changed the role to developer")
	ada.picture("audit")
	ada.usable()
	ada.goTo("/people")
	ada.do(chromedp.Click(chromedp.CSS(`button[aria-label="Remove ` + guest + `"]`)))
	ada.press(`dialog[open] button.btn-error`)
	bob.goTo("/devices")
	bob.sees("You belong to no workspace")
}
