package config

import (
	"os"
	"runtime"
)

// SpareProcessor adds one to GOMAXPROCS, unless the operator has set it. The store's
// writer and its checkpoints spend their time in fsync, and Go reassigns the processor
// of a goroutine that is in a system call only up to 10 ms later (runtime/proc.go,
// retake). With both of two processors in fsync, nothing else would run. Measured in
// docs/decisions/0010.
func SpareProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}
