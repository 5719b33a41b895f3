package store

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"postern/internal/db/dbtest"
	"postern/internal/postern"
)

// The benchmarks run 64 callers against one writer, on disk:
// go test ./internal/store -run - -bench .

func eachDurable(b *testing.B, bench func(b *testing.B, db *Store)) {
	b.Helper()
	for _, name := range []string{"sqlite", "postgres"} {
		b.Run(name, func(b *testing.B) {
			opts := Options{Dir: b.TempDir()}
			if name == "postgres" {
				opts.URL = dbtest.NewDurable(b).URL(b)
			}
			db, err := Open(b.Context(), opts)
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			bench(b, db)
		})
	}
}

// sixtyFour runs an operation b.N times from 64 callers and reports the rate and the CPU
// time of this process.
func sixtyFour(b *testing.B, do func(caller int) error) {
	b.Helper()
	const callers = 64
	began, cpu := time.Now(), ownCPU()
	b.ResetTimer()
	var next atomic.Int64
	done := make(chan error, callers)
	for i := range callers {
		go func() {
			for next.Add(1) <= int64(b.N) {
				if err := do(i); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "ops/s")
	b.ReportMetric(float64((ownCPU()-cpu).Microseconds())/float64(b.N), "cpu-us/op")
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchDevices(b *testing.B, db *Store) (list []postern.Device) {
	b.Helper()
	ws := postern.Workspace{ID: postern.NewWorkspaceID(), Plan: "pro"}
	if err := db.Workspaces.Create(b.Context(), ws); err != nil {
		b.Fatal(err)
	}
	limitMessages(b, db, ws.ID, 1<<40)
	for i := range 64 {
		d := postern.Device{
			ID: postern.NewDeviceID(), WorkspaceID: ws.ID, Name: fmt.Sprint(i),
			Status:   postern.Connected,
			Metadata: map[string]string{},
		}
		if err := db.Devices.Create(b.Context(), d, nil); err != nil {
			b.Fatal(err)
		}
		list = append(list, d)
	}
	e := postern.Endpoint{
		ID: postern.NewEndpointID(), WorkspaceID: ws.ID, Events: []string{"*"},
		Status: postern.EndpointPending, Secret: []byte{1},
	}
	if err := db.Endpoints.Create(b.Context(), e, 1, nil); err != nil {
		b.Fatal(err)
	}
	if err := db.Endpoints.Activate(b.Context(), e.ID, testNow); err != nil {
		b.Fatal(err)
	}
	return list
}

func BenchmarkAccept(b *testing.B) {
	eachDurable(b, func(b *testing.B, db *Store) {
		devices := benchDevices(b, db)
		sixtyFour(b, func(i int) error {
			return db.Messages.Queue(b.Context(),
				QueueMessage{Message: outbound(devices[i]), Month: MonthOf(testNow)})
		})
	})
}

func BenchmarkAcceptOnce(b *testing.B) {
	eachDurable(b, func(b *testing.B, db *Store) {
		devices := benchDevices(b, db)
		sixtyFour(b, func(i int) error {
			m := outbound(devices[i])
			once := &Once{
				WorkspaceID: m.WorkspaceID, Method: "POST", Path: "/v1/messages", Key: string(m.ID),
				Answer: make([]byte, 400), At: testNow,
			}
			return db.Messages.Queue(b.Context(),
				QueueMessage{
					Message: m, Month: MonthOf(testNow),
					Once: once,
				})
		})
	})
}

func BenchmarkInbound(b *testing.B) {
	eachDurable(b, func(b *testing.B, db *Store) {
		devices := benchDevices(b, db)
		sixtyFour(b, func(i int) error {
			return db.Messages.RecordInbound(b.Context(),
				inboundOf(devices[i], postern.NewNetworkID(), "lid:1",
					"hello"))
		})
	})
}

func BenchmarkSend(b *testing.B) {
	eachDurable(b, func(b *testing.B, db *Store) {
		devices := benchDevices(b, db)
		sixtyFour(b, func(i int) error {
			m := outbound(devices[i])
			if err := db.Messages.Queue(b.Context(),
				QueueMessage{Message: m, Month: MonthOf(testNow)}); err != nil {
				return err
			}
			if err := db.Outbox.MarkSending(m.ID, 0)(); err != nil {
				return err
			}
			if err := db.Outbox.Finish(b.Context(),
				FinishOutbound{MessageID: m.ID, Status: postern.Sent, At: testNow, SentAt: testNow}); err != nil {
				return err
			}
			return db.Messages.RecordReceipts(b.Context(),
				[]Receipt{{
					WorkspaceID: m.WorkspaceID, DeviceID: m.DeviceID, NetworkID: m.NetworkID,
					Chats: []string{m.ChatID}, Status: postern.Read, At: testNow, Now: testNow,
				}})
		})
	})
}
