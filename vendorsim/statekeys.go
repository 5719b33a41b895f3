package vendorsim

import (
	"context"
	"errors"
	"fmt"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"
)

const (
	// stateKeyID names the key of an account's app state. It has the form of real ones: two bytes of
	// the device that made the key, and four of a counter.
	stateKeyID = "\x00\x00\x00\x00\x00\x01"
	// stateKeyTime is when the key was made, in milliseconds.
	stateKeyTime = 1_600_000_000_000
)

// stateKey returns the key of a number's app state, the same one at every call.
func (v *core) stateKey(n number) ([]byte, error) {
	pair, err := v.keys.derive("state " + string(n))
	if err != nil {
		return nil, err
	}
	return pair.Priv[:], nil
}

// WithholdStateKeys keeps the phone of a number from sharing the key of the app state with companions
// until [Vendor.ShareStateKeys]. Companions that have the key keep it.
func (v *Vendor) WithholdStateKeys(num string) error {
	n, err := knownNumber(num)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.withheld[n] = true
	return nil
}

// ShareStateKeysOnRequest ends [Vendor.WithholdStateKeys], but the phone shares the key only with
// companions that ask for it, or are linked later.
func (v *Vendor) ShareStateKeysOnRequest(num string) error {
	n, err := knownNumber(num)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.withheld, n)
	return nil
}

// ShareStateKeys lets the phone of a linked account share the key of the app state with all
// companions, now and later.
func (v *Vendor) ShareStateKeys(ctx context.Context, account string) error {
	n, err := v.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	v.mu.Lock()
	delete(v.withheld, n)
	companions := v.devices.companionsOf(n)
	v.mu.Unlock()
	for _, cp := range companions {
		if err := v.states.share(ctx, cp); err != nil {
			return err
		}
	}
	return v.flush()
}

// welcome lets the phone share the key of the app state, and its history, with a companion at its first login.
func (v states) welcome(ctx context.Context, cp *companion) {
	v.mu.Lock()
	known := cp.saved.Welcomed
	v.mu.Unlock()
	if known {
		return
	}
	err := v.begin(ctx, cp.account.number)
	v.mu.Lock()
	cp.saved.Welcomed = true
	v.devices.saveCompanion(cp)
	v.mu.Unlock()
	if err := errors.Join(err, v.share(ctx, cp)); err != nil {
		v.log.WarnContext(ctx, "share the key of the app state", "account", cp.account.number, "error", err)
	}
	v.histories.welcome(ctx, cp)
}

// asked answers a companion that asks its phone for keys of the app state.
func (v states) asked(ctx context.Context, cp *companion, msg *waE2E.Message) {
	request := msg.GetProtocolMessage().GetAppStateSyncKeyRequest()
	for _, id := range request.GetKeyIDs() {
		if string(id.GetKeyID()) != stateKeyID {
			continue
		}
		if err := v.share(ctx, cp); err != nil {
			v.log.WarnContext(ctx, "share the key of the app state", "account", cp.account.number, "error", err)
		}
	}
}

// share queues the key of the app state for a companion, unless the phone withholds it.
func (v states) share(ctx context.Context, cp *companion) error {
	n := cp.account.number
	v.mu.Lock()
	withheld := v.withheld[n]
	v.mu.Unlock()
	if withheld {
		return nil
	}
	data, err := v.stateKey(n)
	if err != nil {
		return err
	}
	return v.messages.toCompanion(ctx, cp, &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
		Type: waE2E.ProtocolMessage_APP_STATE_SYNC_KEY_SHARE.Enum(),
		AppStateSyncKeyShare: &waE2E.AppStateSyncKeyShare{Keys: []*waE2E.AppStateSyncKey{{
			KeyID: &waE2E.AppStateSyncKeyId{KeyID: []byte(stateKeyID)},
			KeyData: &waE2E.AppStateSyncKeyData{
				KeyData: data, Timestamp: new(int64(stateKeyTime)),
				Fingerprint: &waE2E.AppStateSyncKeyFingerprint{
					RawID: new(uint32(1)), CurrentIndex: new(uint32(1)), DeviceIndexes: []uint32{0, uint32(cp.saved.Device)},
				},
			},
		}}},
	}})
}

// begin makes the first setting of a number's app state, unless there is one.
func (v states) begin(ctx context.Context, n number) error {
	s := v.stateOf(n)
	s.mu.Lock()
	begun := s.collections[appstate.WAPatchRegularHigh].state.Version > 0
	s.mu.Unlock()
	if begun {
		return nil
	}
	return v.change(ctx, n, firstSetting())
}

// toCompanion queues what the phone tells a companion of its own account, in no chat.
func (v messages) toCompanion(ctx context.Context, cp *companion, msg *waE2E.Message) error {
	raw, err := proto.Marshal(msg)
	if err != nil {
		return err
	}
	n := cp.account.number
	p, err := v.phoneOf(n)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := text{ID: newMessageID(), From: n, To: n, At: now(), Peer: true, Content: Content{Type: "protocol", Raw: raw}}
	d, err := p.address(ctx, cp, t, nil, 0)
	if err != nil {
		return fmt.Errorf("tell a companion: %w", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queues.deliver(cp, d)
	return nil
}
