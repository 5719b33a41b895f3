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

// errNotDeleted is returned when whatsmeow wants to delete an account's keys.
var errNotDeleted = errors.New("keys are removed by Store.Forget only")

// container saves the companion's own keys. It refuses the deletions that
// whatsmeow makes when the vendor ends a link: they would write to fields that
// other goroutines of whatsmeow read, and only the gateway removes keys.
type container struct {
	store  *Store
	prefix string // of the account's name
	ring   *Ring  // nil until the account has a name
}

var _ store.DeviceContainer = container{}

// DeleteDevice refuses.
func (container) DeleteDevice(context.Context, *store.Device) error { return errNotDeleted }

// PutDevice saves the companion's own keys. The first time, it also gives the
// device its stores.
func (c container) PutDevice(ctx context.Context, device *store.Device) error {
	value, err := encodeDevice(device)
	if err != nil {
		return err
	}
	if c.ring == nil {
		c.ring = newRing(c.store, c.prefix+device.ID.String())
		defer c.ring.equip(device)
	}
	return c.ring.put(ctx, ref{kindDevice, unnamed}, value)
}

// companion is a device as it is stored.
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

// encodeDevice returns the stored form of a device.
func encodeDevice(d *store.Device) ([]byte, error) {
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
		AdvSecret: d.AdvSecretKey, Account: account,
		Platform: d.Platform, BusinessName: d.BusinessName, PushName: d.PushName,
		LIDSince: d.LIDMigrationTimestamp, MetaNonce: d.CompanionMetaNonce,
	})
}

// decodeDevice reads the stored form of a device.
func decodeDevice(value []byte) (*store.Device, error) {
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
		SignedPreKey: &keys.PreKey{
			KeyPair: *keyPair(c.SignedPreKey), KeyID: c.SignedID, Signature: (*[64]byte)(c.Signature),
		},
		AdvSecretKey: c.AdvSecret, Account: account,
		Platform: c.Platform, BusinessName: c.BusinessName, PushName: c.PushName,
		LIDMigrationTimestamp: c.LIDSince, CompanionMetaNonce: c.MetaNonce,
	}, nil
}

func keyPair(private []byte) *keys.KeyPair { return keys.NewKeyPairFromPrivateKey([32]byte(private)) }
