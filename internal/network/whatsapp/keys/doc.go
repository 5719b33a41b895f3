// Package keys implements whatsmeow's store interfaces on the gateway's
// database: the keys and ratchets of each linked account, sealed, and cached
// for as long as a connection lives.
//
// A [Store] holds the records of all accounts. [Store.Load] reads one account
// for one connection and fills its whatsmeow device with a store for each kind
// of record: one file and one small type per interface, all of them on one
// [Ring]. The Ring reads, caches and writes records of every kind, and decides
// when they are durable.
package keys
