package config

import (
	"os"
	"runtime"
)

// SpareProcessor adds one to GOMAXPROCS, unless the operator has set that, for
// the store's writer and its checkpoints, which spend their time in fsync. Go lets
// go of a processor whose goroutine is in a system call only when its monitor
// comes by, up to 10 ms later (runtime/proc.go, retake); with two of two in fsync
// nobody else runs. Measured in docs/decisions/0010.
func SpareProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}
