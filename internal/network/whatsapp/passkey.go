package whatsapp

import (
	"context"
	"time"

	"postern/internal/network"
)

// askPasskey tells the host that the vendor asks for the owner's passkey.
//
// The answer would be a WebAuthn assertion for the vendor's own domain. Browsers
// make one only for pages of that domain, so no page of ours can ask for it, and
// whatsmeow's SendPasskeyResponse is not used: the attempt shows its state and
// ends when its time is over.
func (a *attempt) askPasskey(ctx context.Context) {
	a.asked.Do(func() {
		if !a.stores(ctx, network.PasskeyWanted{}) {
			a.fail("store-unavailable", false)
			return
		}
		close(a.passkey)
	})
}

// awaitPasskey leaves the attempt open until its time is over.
func (a *attempt) awaitPasskey(ctx context.Context) {
	timer := time.NewTimer(a.pace.passkey)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
		a.fail("passkey-required", false)
	}
}
