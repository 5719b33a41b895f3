package keys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

// errKept is what whatsmeow gets when it wants to delete an account's keys.
var errKept = errors.New("the keys stay until they are forgotten")

// keeper saves the companion's own keys. It refuses the deletions that whatsmeow
// makes on its own when the vendor ends a link: they would write to fields that
// its other goroutines read, and the keys are ours to remove.
type keeper struct {
	keys *Store
	ring *Ring // nil until the account has a name
}

// DeleteDevice says that the keys stay.
func (keeper) DeleteDevice(context.Context, *store.Device) error { return errKept }

// PutDevice saves the companion's own keys. The first time it gives the device
// its stores.
func (k keeper) PutDevice(ctx context.Context, device *store.Device) error {
	value, err := bytesOf(device)
	if err != nil {
		return err
	}
	if k.ring == nil {
		k.ring = newRing(k.keys, *device.ID)
		defer k.ring.equip(device)
	}
	return k.ring.change(ctx, func(b *batch) error {
		b.put(ref{kindDevice, nameOnly}, record{value: value})
		return nil
	})
}

// companion is a device as it is kept.
type companion struct {
	JID          string `json:"jid"`
	LID          string `json:"lid"`
	Registration uint32 `json:"registration"`
	NoiseKey     []byte `json:"noise_key"`
	IdentityKey  []byte `json:"identity_key"`
	SignedPreKey []byte `json:"signed_pre_key"`
	SignedID     uint32 `json:"signed_id"`
	Signature    []byte `json:"signature"`
	AdvSecret    []byte `json:"adv_secret"`
	Account      []byte `json:"account"` // the phone's signature under this companion, as protobuf
	Platform     string `json:"platform,omitempty"`
	BusinessName string `json:"business_name,omitempty"`
	PushName     string `json:"push_name,omitempty"`
	LIDSince     int64  `json:"lid_since,omitempty"`
	MetaNonce    string `json:"meta_nonce,omitempty"`
}

// bytesOf makes what is kept of a device.
func bytesOf(d *store.Device) ([]byte, error) {
	if d.ID == nil {
		return nil, errors.New("save keys: the account has no name yet")
	}
	account, err := proto.Marshal(d.Account)
	if err != nil {
		return nil, fmt.Errorf("save keys: %w", err)
	}
	return json.Marshal(companion{
		JID: d.ID.String(), LID: d.LID.String(), Registration: d.RegistrationID,
		NoiseKey: d.NoiseKey.Priv[:], IdentityKey: d.IdentityKey.Priv[:],
		SignedPreKey: d.SignedPreKey.Priv[:], SignedID: d.SignedPreKey.KeyID, Signature: d.SignedPreKey.Signature[:],
		AdvSecret: d.AdvSecretKey, Account: account, Platform: d.Platform, BusinessName: d.BusinessName, PushName: d.PushName,
		LIDSince: d.LIDMigrationTimestamp, MetaNonce: d.CompanionMetaNonce,
	})
}

// deviceOf makes a device of what is kept.
func deviceOf(value []byte) (*store.Device, error) {
	var c companion
	if err := unmarshal(value, &c); err != nil {
		return nil, err
	}
	if len(c.NoiseKey) != 32 || len(c.IdentityKey) != 32 || len(c.SignedPreKey) != 32 || len(c.Signature) != 64 {
		return nil, errKeyLength
	}
	jid, err := types.ParseJID(c.JID)
	if err != nil {
		return nil, fmt.Errorf("read the account's name: %w", err)
	}
	lid, err := types.ParseJID(c.LID)
	if err != nil {
		return nil, fmt.Errorf("read the account's LID: %w", err)
	}
	account := &waAdv.ADVSignedDeviceIdentity{}
	if err := proto.Unmarshal(c.Account, account); err != nil {
		return nil, fmt.Errorf("read the account's signature: %w", err)
	}
	return &store.Device{
		ID: &jid, LID: lid, RegistrationID: c.Registration,
		NoiseKey: keyPair(c.NoiseKey), IdentityKey: keyPair(c.IdentityKey),
		SignedPreKey: &keys.PreKey{KeyPair: *keyPair(c.SignedPreKey), KeyID: c.SignedID, Signature: (*[64]byte)(c.Signature)},
		AdvSecretKey: c.AdvSecret, Account: account, Platform: c.Platform, BusinessName: c.BusinessName, PushName: c.PushName,
		LIDMigrationTimestamp: c.LIDSince, CompanionMetaNonce: c.MetaNonce,
	}, nil
}

func keyPair(private []byte) *keys.KeyPair { return keys.NewKeyPairFromPrivateKey([32]byte(private)) }
