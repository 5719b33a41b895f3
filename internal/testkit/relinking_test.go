package testkit_test

import (
	"bytes"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
)

// TestSandboxOfADeviceThatIsLinkedAgain has no phone until the new attempt has succeeded,
// although the device still has its old number.
func TestSandboxOfADeviceThatIsLinkedAgain(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := c.Link(phone)
	c.Call("POST", path(d, "/unlink"), nil, 200, nil)
	awaitNotLinked(t, k, phone)
	c.Call("POST", path(d, "/link"), nil, 201, nil)
	sandbox := "/v1/sandbox/devices/" + string(d.ID)
	for at, in := range map[string]map[string]any{
		"/inbound": {"from": "+15551234567", "body": "x"}, "/faults": {"kind": "drop"},
	} {
		a := c.Do("POST", sandbox+at, in)
		if a.Status != 409 || !bytes.Contains(a.Body, []byte(postern.NotLinked)) {
			t.Errorf("%s is answered %d %s", at, a.Status, a.Body)
		}
	}
}
