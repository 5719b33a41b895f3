package store

import (
	"testing"

	"postern/internal/postern"
)

// Verifying a paused endpoint is refused, so a refusal must not tell its owner to do that.
func TestRefusalNamesTheStepThatMakesAnEndpointActive(t *testing.T) {
	t.Parallel()
	for status, want := range map[postern.EndpointStatus]string{
		postern.EndpointPending:  "the endpoint is pending, so nothing can be sent to it; verify it first",
		postern.EndpointFailed:   "the endpoint is failed, so nothing can be sent to it; verify it first",
		postern.EndpointPaused:   "the endpoint is paused, so nothing can be sent to it; resume it first",
		postern.EndpointDisabled: "the endpoint is disabled, so nothing can be sent to it; resume it first",
	} {
		if got := notActive(status).Error(); got != want {
			t.Errorf("%s: %q, want %q", status, got, want)
		}
	}
}
