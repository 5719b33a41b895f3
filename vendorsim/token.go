package vendorsim

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
)

// RequireTokens makes the vendor refuse messages of a linked account to people who never wrote to it, with the code 463,
// unless the message has a token: the one that the recipient's phone has granted, or one that is made from the account's
// salt. Companions get both with the history. The rule is kept in memory only.
func (v *Vendor) RequireTokens(account string) error {
	n, err := v.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.guarded[n] = true
	return nil
}

// salt returns the secret of an account from which it makes tokens for people who granted it none.
func (v histories) salt(n number) ([]byte, error) {
	pair, err := v.keys.derive("salt " + string(n))
	if err != nil {
		return nil, err
	}
	return pair.Priv[:], nil
}

// grant returns the token with which a number lets an account write to it; nil if there is none.
func (v histories) grant(by, account number) []byte {
	pair, err := v.keys.derive("token " + string(by) + " " + string(account))
	if err != nil {
		return nil
	}
	return pair.Pub[:]
}

// accepts reports whether a message to a number has a valid token. Only a token that the recipient has granted helps an
// account that may not start chats.
func (v histories) accepts(from number, m outbound, limited bool) bool {
	if granted := v.grant(m.to, from); granted != nil && bytes.Equal(m.granted, granted) {
		return true
	}
	salt, err := v.salt(from)
	if err != nil || limited {
		return false
	}
	mac := hmac.New(sha256.New, salt)
	mac.Write([]byte(m.to.lid().String()))
	return hmac.Equal(mac.Sum(nil), m.salted)
}
