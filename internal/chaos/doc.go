// Package chaos kills the gateway and checks that it kept its promises. Its tests run
// postern and vendorsim as programs, put load on them, and kill the gateway with SIGKILL
// again and again while work is queued. They compare the gateway's database with three
// ledgers that outlive the kills: the driver's requests and the answers, what the vendor
// received and delivered, and what was posted to the webhook receiver.
//
// The harness is in the tests of this package. The package itself contains the ledgers,
// the database as the judge reads it, and the judge, a pure function that names each
// broken promise of docs/architecture.md.
package chaos
