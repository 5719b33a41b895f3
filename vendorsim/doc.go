// Package vendorsim simulates the messaging network that whatsmeow speaks to: the vendor's servers
// and everybody's phones. An unmodified whatsmeow client links to it by a QR code or a pairing code, sends
// and receives encrypted messages, gets receipts, loses its connection and is logged out, with
// nothing outside the process.
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
//	codes, _ := client.GetQRChannel(ctx)
//	client.Connect()
//	v.Scan(ctx, (<-codes).Code, "+15550001111") // now wait for events.Connected
//
// From then on [Vendor.Send] lets somebody write to the linked number, [Vendor.Shown] tells what a
// phone shows, [Vendor.Ledger] what passed through the network, [Vendor.Receipt] confirms a message
// and [Vendor.Fault] makes things go wrong. [Vendor.Watch] tells when to look again, so that tests
// need not sleep.
//
// whatsmeow keeps one root key per process. A process with several Vendors makes one [Keys] with
// [NewKeys] and hands it to all of them in [Options].
//
// # Numbers
//
// Every number of 7 to 15 digits exists and confirms delivery, but for those that act:
// [NumberUnknown], [NumberSilent], [NumberReader], [NumberEcho] and [NumberReporter].
//
// # State
//
// With [Options].Dir set, linked devices stay linked across restarts: keys, Signal sessions, what
// companions have not acknowledged, the ledger and the phones' messages are kept in one append-only
// file. A message is on the disk before the vendor acknowledges it, and whatever a client or a
// caller was told is written before, so that killing the process loses nothing.
//
// # Limits
//
// Text between two people is simulated in full, and so is linking, but for passkeys: a client is
// asked for one ([Vendor.RequirePasskey]), and no answer is taken. That the vendor refuses the key
// bundle of a client whose code was entered wrong is assumed. Groups, media upload and download,
// history and app state are not simulated: their queries get an empty answer. What the real vendor does
// beyond what whatsmeow shows of it is unknown here.
package vendorsim
