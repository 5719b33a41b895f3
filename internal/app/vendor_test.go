package app

import (
	"strings"
	"testing"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/vendorsim"
)

// The vendor's error names the phone number, which belongs neither in an answer nor in the log.
func TestSimulatedPhoneThatIsNotLinkedIsNoInternalError(t *testing.T) {
	t.Parallel()
	v, err := vendorsim.Open(vendorsim.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	const number = "+15550001111"
	s := simulated{v}
	_, inbound := s.Inbound(t.Context(), number, gateway.SandboxInbound{
		From: "+15551234567", Content: postern.Text("x"),
	})
	for name, err := range map[string]error{
		"inbound": inbound,
		"fault":   s.Fault(t.Context(), number, "drop"),
		"receipt": s.Receipt(t.Context(), number, "", "3EB0", postern.Read),
	} {
		if postern.ReasonOf(err) != postern.NotLinked || strings.Contains(err.Error(), number[1:]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
