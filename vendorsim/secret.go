package vendorsim

import "crypto/rand"

// secretSize is the size of a message's secret and of the key of a file, in bytes.
const secretSize = 32

// newSecret returns secretSize random bytes.
func newSecret() []byte {
	b := make([]byte, secretSize)
	_, _ = rand.Read(b) // never fails
	return b
}
