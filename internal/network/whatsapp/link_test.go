package whatsapp

import (
	"context"
	"errors"
	"testing"

	"postern/internal/network"
	"postern/internal/network/networktest"
)

// A phone that has scanned the code of an attempt that fails, or is canceled, at the last moment lists no companion
// that only it could remove.
func TestFailedLinkLeavesNoCompanionOnThePhone(t *testing.T) {
	for name, canceled := range map[string]bool{"not stored": false, "canceled": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			rec := &networktest.Recorder{}
			rec.Rule(func(u network.Update) error {
				if _, paired := u.(network.Paired); !paired {
					return nil
				}
				if canceled {
					cancel()
				}
				return networktest.ErrRefused
			})
			done := make(chan error, 1)
			go func() { done <- w.driver.Link(ctx, rec, "") }()
			code := networktest.Wait(t, rec, 1, networktest.Any[network.Code])
			if err := w.vendor.Scan(t.Context(), code.Text, ownNumber); err != nil {
				t.Fatal(err)
			}
			var failed *network.LinkError
			if err := <-done; !errors.As(err, &failed) {
				t.Errorf("link = %v, want a *LinkError", err)
			}
			for _, a := range w.vendor.Accounts() {
				if a.Linked {
					t.Errorf("the phone of %s lists %d companions", a.Number, a.Companions)
				}
			}
		})
	}
}
