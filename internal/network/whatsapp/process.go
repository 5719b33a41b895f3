package whatsapp

import (
	"errors"
	"fmt"
	"sync"

	"go.mau.fi/libsignal/logger"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/store"
)

// ErrOtherVendor means that this process already talks to a vendor with another
// root key, or under another device name: whatsmeow holds both in package
// variables.
var ErrOtherVendor = errors.New("this process already uses another root key or device name")

const defaultDeviceName = "Postern"

//nolint:gochecknoglobals // whatsmeow's settings are global; these remember and guard them
var (
	vendorRoot = whatsmeow.WACertPubKey // taken before anything could change it

	process struct {
		sync.Mutex
		claimed bool
		root    [32]byte
		name    string
	}
)

// libsignal prints to standard output unless it has a logger, and reads that
// from everywhere without a lock: so it is set before anything runs.
var _ = silence()

func silence() struct{} {
	var quiet logger.Loggable = mute{}
	logger.Setup(&quiet)
	return struct{}{}
}

// claimProcess sets whatsmeow's package variables once per process. A variable
// that is right already is not written, so that running clients may read it.
func claimProcess(rootKey []byte, name string) error {
	root := vendorRoot
	if rootKey != nil {
		if len(rootKey) != len(root) {
			return fmt.Errorf("root key: %d bytes, want %d", len(rootKey), len(root))
		}
		root = [32]byte(rootKey)
	}
	if name == "" {
		name = defaultDeviceName
	}
	process.Lock()
	defer process.Unlock()
	if process.claimed {
		if root != process.root || name != process.name {
			return ErrOtherVendor
		}
		return nil
	}
	if whatsmeow.WACertPubKey != root {
		whatsmeow.WACertPubKey = root
	}
	store.DeviceProps.Os = new(name)
	process.claimed, process.root, process.name = true, root, name
	return nil
}

// mute is a logger for libsignal that says nothing.
type mute struct{}

func (mute) Debug(_, _ string)   {}
func (mute) Info(_, _ string)    {}
func (mute) Warning(_, _ string) {}
func (mute) Error(_, _ string)   {}
func (mute) Configure(string)    {}
