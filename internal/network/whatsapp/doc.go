// Package whatsapp drives the messaging network through whatsmeow. It and
// its key store are the only packages that know whatsmeow; everything else sees [network.Driver].
//
// A [Driver] stores session keys sealed in the gateway's database (package keys).
// It makes one whatsmeow client per connection and discards it with the
// connection: this bounds the client's caches, and nothing of an ended connection
// reaches the next one.
//
// Four rules shape the package:
//   - Nothing is acknowledged to the vendor before the host has stored it. After a
//     refusal, a panic or a failure of the key store the socket is closed at once,
//     and the vendor delivers the message again at the next login.
//   - A send succeeds only if the stanza that was sent held a copy for the
//     recipient's phone (see outgoing.go).
//   - Files stream through the disk, and nobody's word about one is taken: what a host sends
//     is bounded, and compared with the hash in the message.
//   - No number, code or text reaches a log line or an error.
//
// How a kind of message looks on the network is in package content alone.
package whatsapp
