package testkit

import (
	"context"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort returns a TCP port of 127.0.0.1 that nothing listens on. It is below the ports from which systems
// choose by themselves (49152 to 65535 by RFC 6335, 32768 to 60999 on Linux), so a test that runs at the same
// time gets it neither by listening on port 0 nor by dialling.
func FreePort(t testing.TB) string {
	t.Helper()
	var lc net.ListenConfig
	for {
		port := strconv.Itoa(10_000 + rand.IntN(20_000)) //nolint:gosec // no secret
		l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:"+port)
		if err == nil {
			l.Close()
			return port
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}
