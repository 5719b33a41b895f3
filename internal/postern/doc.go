// Package postern defines the nouns of the gateway: workspaces, keys, devices, link
// attempts, messages, events, webhook endpoints and deliveries, with their states, ids
// and limits, and the one error type that a caller may see.
//
// It does no I/O. The JSON fields of a noun are its form in the API; fields tagged "-"
// never leave the process.
package postern
