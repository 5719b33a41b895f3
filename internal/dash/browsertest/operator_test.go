package browsertest

import (
	"testing"

	"postern/internal/testkit"

	"github.com/chromedp/chromedp"
)

// An operator looks at the server, makes a workspace for somebody, and changes what
// it may use.
func TestOperator(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k.SetUpURL())
	tenant := k.NamedWorkspace("Corner shop", "growth")
	tenant.Link("+15551230001")
	tenant.Link("+15551230002")
	b.press(`.top-20 a[href="/operator"]`)
	b.sees("Messages to send")
	b.sees("SQLite")
	b.sees("Goroutines")
	b.picture("operator")
	b.press(`nav[aria-label="Operator"] a[href="/operator/workspaces"]`)
	b.fill("#q", "shop")
	b.press(`form[action="/operator/workspaces"] button`)
	b.sees("Corner shop")
	b.picture("operator-workspaces")
	b.usable()
	b.press(`main table a`)
	b.sees("Plan overrides")
	b.picture("operator-workspace")
	b.usable()
	b.do(chromedp.Click(chromedp.CSS(`input[name="plan"][value="starter"]`)))
	b.press(`form[action$="/plan"] button`)
	b.sees("1 device will be paused")
	b.picture("operator-confirm")
	b.usable()
	b.press(`main form .btn-error`)
	b.sees("The plan is now Starter")
	b.sees("The plan allows fewer linked devices")
	b.fill("#devices", "ten")
	b.press(`form[action$="/limits"] button`)
	b.sees("Enter a whole number")
	b.focuses("devices")
	b.picture("operator-refused")
	b.usable()
	b.goTo("/operator/workspaces/new")
	b.picture("operator-new")
	b.fill("#name", "Bakery", "#owner", "eve@example.com")
	b.press(`main form .btn-primary`)
	b.sees("The link works once, expires in 72 hours")
	b.picture("operator-link")
	b.usable()
	b.goTo("/operator/people")
	b.sees("You")
	b.picture("operator-people")
	b.usable()
	b.press(`main table a`)
	b.sees("Create a password link")
	b.picture("operator-password")
	b.usable()
	b.fill("#password", password)
	b.press(`main form .btn-primary`)
	b.sees("Password link created")
	b.usable()
}
