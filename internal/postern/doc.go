// Package postern holds the nouns of the gateway: workspaces, keys, devices,
// link attempts, messages, events, webhook endpoints and deliveries, with their
// states, ids and limits, and the one error type a caller may see.
//
// It does no I/O. The JSON members of a noun are the public shape of the API;
// members tagged "-" never leave the process.
package postern
