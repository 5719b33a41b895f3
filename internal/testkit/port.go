package testkit

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// portTries is how many ports FreePort tries.
const portTries = 1000

// FreePort returns a TCP port of 127.0.0.1 that nothing listens on. It is below the ports from which systems
// choose by themselves (49152 to 65535 by RFC 6335, 32768 to 60999 on Linux), so a test that runs at the same
// time gets it neither by listening on port 0 nor by dialling.
func FreePort(t testing.TB) string {
	t.Helper()
	var lc net.ListenConfig
	var err error
	for range portTries {
		port := strconv.Itoa(10_000 + rand.IntN(20_000)) //nolint:gosec // no secret
		var l net.Listener
		if l, err = lc.Listen(t.Context(), "tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatalf("no port is free: %v", err)
	return ""
}
