package browsertest

import (
	"regexp"
	"testing"

	"postern/internal/testkit"

	"github.com/chromedp/chromedp"
)

var linkInMail = regexp.MustCompile(`http://\S+/join/\S+`)

// Bob is invited by mail, joins by its link, forgets his password, and gets a new one
// by mail.
func TestInvitationAndNewPasswordByMail(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	m := k.BootWithMail()
	ada, bob := open(t, k.URL()), open(t, k.URL())
	ada.setUp(k)
	ada.goTo("/people")
	ada.sees("They get a link by email")
	ada.fill("#email", guest)
	ada.press(`form[action="/people/invitations"] button`)
	ada.sees("The invitation was sent to " + guest)
	ada.picture("people-mailed")
	ada.usable()

	bob.do(chromedp.Navigate(linkInMail.FindString(m.Next(t).Text)))
	bob.fill("#password", password)
	bob.press("main form button:not([type])")
	bob.sees("You are now a member of this workspace")
	bob = open(t, k.URL()) // on another machine
	bob.goTo("/signin")
	bob.picture("signin-mail")
	bob.usable()
	bob.byKeyboard()
	bob.press(`a[href="/signin/forgotten"]`)
	bob.picture("forgotten")
	bob.usable()
	bob.byKeyboard()
	bob.fill("#email", guest)
	bob.press("main form button:not([type])")
	bob.sees("Check your email")
	bob.picture("forgotten-sent")
	bob.usable()
	bob.byKeyboard()
	bob.do(chromedp.Navigate(linkInMail.FindString(m.Next(t).Text)))
	bob.sees("Choose a password")
	bob.fill("#password", "another four plain words")
	bob.press("main form button:not([type])")
	bob.sees("Overview")
}
