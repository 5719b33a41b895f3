// Package whatsapp drives the messaging network through whatsmeow. It and
// its key store are the only packages that know whatsmeow; everything else sees [network.Driver].
//
// A [Driver] keeps session keys sealed in the gateway's database (package keys) and
// makes one whatsmeow client per connection, which is thrown away when the
// connection ends: that bounds what the client caches, and nothing of a dead
// connection reaches the next.
//
// Three rules shape the package:
//   - Nothing is acknowledged to the vendor before the host has stored it. A
//     refusal, a panic or a failing key store closes the socket at once, and the
//     vendor hands the message over again at the next login.
//   - A send never succeeds unless the stanza that left held a copy for the
//     recipient's phone (see outgoing.go).
//   - No number, code or text reaches a log line or an error.
package whatsapp
