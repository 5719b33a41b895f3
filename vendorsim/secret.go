package vendorsim

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"go.mau.fi/whatsmeow/types"
)

const (
	// secretSize is the size of a message's secret and of the key of a file, in bytes.
	secretSize = 32
	// ivSize is the size of the nonce of what is sealed, in bytes.
	ivSize = 12
)

// The uses of a message's secret.
const (
	useVote = "Poll Vote"
	useEdit = "Message Edit"
)

// ErrNoSecret is returned for an action that is sealed with the secret of a message that has none.
var ErrNoSecret = errors.New("message has no secret")

var errSealed = errors.New("cannot open what is sealed with the secret of a message")

// newSecret returns secretSize random bytes.
func newSecret() []byte {
	b := make([]byte, secretSize)
	_, _ = rand.Read(b) // never fails
	return b
}

// secretUse is what the secret of a message is used for: an action of somebody on the message.
type secretUse struct {
	use      string
	id       string // of the message
	author   types.JID
	modifier types.JID // who acts
}

// cipher returns the cipher of an action and what it authenticates beside the action.
func (u secretUse) cipher(secret []byte) (cipher.AEAD, []byte, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, u.id+u.author.String()+u.modifier.String()+u.use, 32)
	if err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, nil, err
	}
	aead, err := cipher.NewGCM(block)
	if u.use == useVote {
		return aead, []byte(u.id + "\x00" + u.modifier.String()), err
	}
	return aead, nil, err
}

// seal encrypts an action with the secret of the message that it concerns.
func (u secretUse) seal(secret, plain []byte) (sealed, iv []byte, err error) {
	if len(secret) == 0 {
		return nil, nil, fmt.Errorf("%w: %s", ErrNoSecret, u.id)
	}
	aead, extra, err := u.cipher(secret)
	if err != nil {
		return nil, nil, err
	}
	iv = newSecret()[:ivSize]
	return aead.Seal(nil, iv, plain, extra), iv, nil
}

// sealedAction is an action of a companion on a message.
type sealedAction struct {
	use, id       string // of the message
	author, actor number
	payload, iv   []byte
}

// open decrypts an action with the secret of its message. Both people may be named by their numbers
// or by their hidden addresses, and the network does not say which form was used.
func (s sealedAction) open(secret []byte) ([]byte, error) {
	if len(secret) == 0 || len(s.iv) != ivSize {
		return nil, errSealed
	}
	for _, author := range []types.JID{s.author.lid(), s.author.pn()} {
		for _, actor := range []types.JID{s.actor.lid(), s.actor.pn()} {
			aead, extra, err := secretUse{s.use, s.id, author, actor}.cipher(secret)
			if err != nil {
				return nil, err
			}
			if plain, err := aead.Open(nil, s.iv, s.payload, extra); err == nil {
				return plain, nil
			}
		}
	}
	return nil, errSealed
}
