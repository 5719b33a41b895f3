package testkit_test

import (
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
)

// TestADeviceIsLinkedAgainRightAfterAnUnlink although the network has not
// heard of the unlink yet.
func TestADeviceIsLinkedAgainRightAfterAnUnlink(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := c.Link(phone)
	for range 3 {
		c.Call("POST", path(d, "/unlink"), nil, 200, nil)
		c.Call("POST", path(d, "/link"), nil, 201, nil)
		c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/scan", nil, 200, nil)
		c.Await(d.ID, postern.Connected)
		for _, a := range k.Vendor.Accounts() {
			if a.Number == phone && a.Companions != 1 {
				t.Errorf("the phone shows %d linked devices, want 1", a.Companions)
			}
		}
	}
	m := send(c, d, reader, "again")
	c.AwaitMessage(m.ID, postern.Read)
	c.Call("POST", path(d, "/unlink"), nil, 200, nil)
	c.Call("POST", path(d, "/link"), nil, 201, nil)
	c.Call("DELETE", path(d, "/link"), nil, 204, nil)
	awaitNotLinked(t, k, phone) // the goodbye goes on after the attempt was canceled
}
