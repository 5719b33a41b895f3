package whatsapp

import (
	"errors"
	"testing"
	"time"

	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/vendorsim"
)

func TestPairingCodeEndsWithAReason(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, number, reason string
		expired              bool
	}{
		{"of a number that is not on the network", vendorsim.NumberUnknown, "number-unknown", false},
		{"of an invalid number", "+0", "number-unknown", false},
		{"that nobody enters", ownNumber, "timeout", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.driver.pace.pairingCode = 50 * time.Millisecond
			var failed *network.LinkError
			err := w.driver.Link(t.Context(), &networktest.Recorder{}, tt.number)
			if !errors.As(err, &failed) || failed.Reason != tt.reason || failed.Expired != tt.expired {
				t.Errorf("link = %#v, want %s, expired %v", err, tt.reason, tt.expired)
			}
		})
	}
}
