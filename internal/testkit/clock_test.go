package testkit_test

import (
	"testing"

	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/testkit"
)

// A message ends by the clock by which it was given its time: that of the
// database, which may show another date than this machine's.
func TestMessagesExpireByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	dbtest.SetClockAhead(t, url, "-40 days")
	k := testkit.StartOn(t, url)
	c := k.Workspace("growth")
	d := c.Link(phone)
	m := queue(c, d, "in good time")
	c.AwaitMessage(m.ID, postern.Read)
}
