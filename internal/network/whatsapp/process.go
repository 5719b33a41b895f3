package whatsapp

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/store"
)

// ErrOtherVendor means that this process already uses a vendor with another root
// key, or another device name. whatsmeow has both in package variables.
var ErrOtherVendor = errors.New("this process already uses another root key or device name")

const defaultDeviceName = "Postern"

//nolint:gochecknoglobals // whatsmeow's settings are global; these record and guard them
var (
	vendorRoot = whatsmeow.WACertPubKey // read before anything can change it

	process struct {
		sync.Mutex
		claimed bool
		root    [32]byte
		name    string
	}
)

// claimProcess sets whatsmeow's package variables once per process. A variable
// that already has the right value is not written, because clients may be reading
// it.
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

// shrink replaces the map of the last messages that a client has sent. whatsmeow makes it for all
// 256 of them at once, which takes 41 kB for each device, also for those that only receive; the new
// map grows with the messages. The client must not be in use yet. With a version of whatsmeow that
// has no such map, nothing changes (decision 0039).
func shrink(cli *whatsmeow.Client) {
	field := reflect.ValueOf(cli).Elem().FieldByName("recentMessagesMap")
	if !field.IsValid() || field.Kind() != reflect.Map {
		return
	}
	at := unsafe.Pointer(field.UnsafeAddr()) //nolint:gosec // of a field of this type; reflect cannot set it
	reflect.NewAt(field.Type(), at).Elem().Set(reflect.MakeMap(field.Type()))
}
