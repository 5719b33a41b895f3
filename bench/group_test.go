package bench

import (
	"fmt"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
)

const (
	groupMembers = 256
	textsToGroup = 20 // in a sample
)

// group measures texts to a group of 256, beside a whatsmeow client that sends them to another group of the same people.
// The first text to each group, for which the sessions with all members are made, is not part of the figures.
func group(t *testing.T) (list []figure) {
	for _, e := range engines(t) {
		t.Run(e.name, func(t *testing.T) { list = append(list, toGroup(t, e)) })
	}
	return list
}

func toGroup(t *testing.T, e engine) figure {
	k := testkit.StartAsServed(t, e.url(t))
	c := k.Workspace("enterprise")
	d := c.Link(fmt.Sprintf(ourNumber, 0))
	clients := bareClientsOf(t, k, 1)
	theirs, ours := newGroup(t, k, fmt.Sprintf(bareNumber, 0)), "group:"+newGroup(t, k, fmt.Sprintf(ourNumber, 0))
	send := func(n int) {
		for range n {
			c.Call("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": ours, "body": ordinary}, 202, nil)
		}
		awaitNewestSent(t, c, d.ID)
	}
	sendBare := func(n int) {
		for range n {
			if err := clients.SendToGroup(t.Context(), 0, theirs, ordinary); err != nil {
				t.Fatal(err)
			}
		}
	}
	testkit.Eventually(t, "the device to know its group", func() (bool, any) {
		var groups struct{ Data []postern.Group }
		c.Call("GET", "/v1/devices/"+string(d.ID)+"/groups", nil, 200, &groups)
		return len(groups.Data) == 1, groups
	})
	send(1)
	sendBare(1)
	var mine, bare pieces
	for range rounds {
		mine.add(t, textsToGroup, func() { send(textsToGroup) })
		bare.add(t, textsToGroup, func() { sendBare(textsToGroup) })
	}
	return figure{
		name: fmt.Sprintf("texts to a group of %d%s", groupMembers, e.on()), unit: "/s", floor: 0.8,
		ours: mine.rates, bare: bare.rates,
		extra: fmt.Sprintf("accepted to confirmed by the vendor; bare: whatsmeow on its sqlstore, the same fsync; "+
			"processor time with the vendor %.1f ms, bare %.1f", median(mine.costs), median(bare.costs)),
	}
}

// newGroup creates a group of an account and others, and returns its id.
func newGroup(t *testing.T, k *testkit.Kit, account string) string {
	t.Helper()
	members := []string{account}
	for n := range groupMembers - 2 {
		members = append(members, fmt.Sprintf("+1556000%04d", n))
	}
	g, err := k.Vendor.CreateGroup("All", append(members, "+15560009999")...)
	if err != nil {
		t.Fatal(err)
	}
	return g.ID
}
