package testkit_test

import (
	"strconv"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/internal/trace/tracetest"
)

// BenchmarkAccept measures the acceptance of a message over HTTP, without its sending, with traces off and on. The
// allocations are those of the client, too.
func BenchmarkAccept(b *testing.B) {
	for _, traced := range []bool{false, true} {
		b.Run("traced="+strconv.FormatBool(traced), func(b *testing.B) {
			k := testkit.StartAsServed(b, "")
			k.Stop()
			k.Config.LogLevel = "error"
			if traced {
				k.Config.OTLPEndpoint = tracetest.Start(b).URL
			}
			k.Boot()
			c := k.Workspace("enterprise")
			d := c.Link(phone)
			c.Call("POST", "/v1/devices/"+string(d.ID)+"/pause", nil, 200, nil)
			c.Await(d.ID, postern.Paused)
			body := map[string]any{"deviceId": d.ID, "to": reader, "body": "out", "whenDisconnected": "queue"}
			b.ReportAllocs()
			b.SetParallelism(32)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if a := c.Do("POST", "/v1/messages", body); a.Status != 202 {
						b.Errorf("%d %s", a.Status, a.Body)
					}
				}
			})
			b.StopTimer()
		})
	}
}
