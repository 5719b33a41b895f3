package whatsapp

import (
	"context"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"
)

// storeShared stores the app state keys that the phone shares in a message, which
// is acknowledged next. whatsmeow stores them too, but does not wait for it.
func (v *run) storeShared(ctx context.Context, evt *events.Message) bool {
	share := evt.Message.GetProtocolMessage().GetAppStateSyncKeyShare()
	if share == nil || !evt.Info.IsFromMe {
		return true
	}
	for _, key := range share.GetKeys() {
		fingerprint, err := proto.Marshal(key.GetKeyData().GetFingerprint())
		if err != nil {
			continue // whatsmeow skips it too
		}
		err = v.cli.Store.AppStateKeys.PutAppStateSyncKey(ctx, key.GetKeyID().GetKeyID(), store.AppStateSyncKey{
			Data: key.GetKeyData().GetKeyData(), Fingerprint: fingerprint, Timestamp: key.GetKeyData().GetTimestamp(),
		})
		if err != nil {
			return false
		}
	}
	return true
}
