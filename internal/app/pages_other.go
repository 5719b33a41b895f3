//go:build !linux

package app

// dropStartPages does nothing on this system.
func dropStartPages() error { return nil }
