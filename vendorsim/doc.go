// Package vendorsim simulates the messaging network that whatsmeow connects to: the vendor's
// servers and all phones. An unmodified whatsmeow client links to it by a QR code or a pairing code,
// sends and receives encrypted messages, gets receipts, loses its connection and is logged out. The
// simulation needs nothing outside of the process.
//
// # Use
//
// A [Vendor] is the whole network. Give whatsmeow its root key and its HTTP client, and let a
// simulated phone scan the code:
//
//	v, _ := vendorsim.Open(vendorsim.Options{})
//	defer v.Close()
//	whatsmeow.WACertPubKey = v.RootKey() // once per process, before any client connects
//
//	client := whatsmeow.NewClient(device, nil)
//	client.SetPreLoginHTTPClient(v.HTTPClient())
//	client.SetWebsocketHTTPClient(v.HTTPClient())
//	client.SetMediaHTTPClient(v.HTTPClient())
//	codes, _ := client.GetQRChannel(ctx)
//	client.Connect()
//	v.Scan(ctx, (<-codes).Code, "+15550001111") // now wait for events.Connected
//
// [Vendor.Send] then sends a text to the linked number and [Vendor.SendContent] any other [Content],
// such as an image. [Vendor.React], [Vendor.Edit], [Vendor.Revoke], [Vendor.Vote], [Vendor.Pin] and
// [Vendor.Star] act on a message. [Vendor.Channels] are channels, which the vendor calls newsletters.
// [Vendor.Status] are the posts that contacts see for a day.
// [Vendor.Shown] returns the messages that a phone shows, [Vendor.OpenMedia] their files,
// [Vendor.Ledger] the messages that passed through the network. [Vendor.Receipt] confirms a message
// and [Vendor.Fault] causes a failure. [Vendor.Watch] notifies of changes, so that tests need not
// sleep.
//
// whatsmeow has one root key per process. A process with several Vendors makes one [Keys] with
// [NewKeys] and passes it to all of them in [Options].
//
// [Spaces] are several networks with one set of keys, for tenants who must not see each other's
// numbers: each tenant's space is a Vendor of its own.
//
// # Numbers
//
// Every number of 7 to 15 digits exists and confirms delivery, except for the special numbers
// [NumberUnknown], [NumberSilent], [NumberReader], [NumberEcho], [NumberReporter], [NumberPrivate]
// and [NumberPasskey].
//
// # State
//
// With [Options].Dir set, linked devices stay linked across restarts. One append-only file contains
// the keys, the Signal sessions, the nodes that companions have not acknowledged, the ledger and the
// phones' messages. A message is on the disk before the vendor acknowledges it. All other state is
// written before a client or a caller learns of it, so that killing the process loses nothing.
// The encrypted files of messages are beside it, each in a file of its own; the journal only refers to
// them.
//
// # Limits
//
// Messages between two users, their files and linking are simulated completely, also with a passkey
// ([Vendor.RequirePasskey]). It is an assumption
// that the vendor refuses the key bundle of a client whose code was entered wrong. Of the app state,
// phones change and show stars, names, the address book, and which chats are archived, muted or read; companions may
// change all of it, and the real vendor would not notice a wrong MAC, because it has no keys. The simulation is based
// on whatsmeow only, so the real vendor may behave differently.
package vendorsim
