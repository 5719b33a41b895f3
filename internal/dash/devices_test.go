package dash

import (
	"strings"
	"testing"

	"postern/internal/gateway"
	"postern/internal/postern"
)

func TestEveryChangeOfADeviceHasASentence(t *testing.T) {
	t.Parallel()
	for _, e := range postern.EventTypes() {
		if strings.HasPrefix(string(e), "device.") && healthWords(gateway.Health{Type: e}) == "" {
			t.Errorf("the history of a device says nothing for %s", e)
		}
	}
	opened := healthWords(gateway.Health{Type: postern.DeviceLinking, Status: postern.Linking})
	if healthWords(gateway.Health{Type: postern.DeviceLinking, Status: postern.Unlinked}) == opened {
		t.Error("a link attempt that has ended is described like one that was opened")
	}
}
