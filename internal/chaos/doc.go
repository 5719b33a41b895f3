// Package chaos kills the gateway and judges what is left. Its tests run
// postern and vendorsim as programs, put load on them, kill the gateway with
// SIGKILL under backlog again and again, and compare three ledgers that
// outlive the kills with the gateway's database: what the driver asked and was
// told, what the vendor got and gave, and what the webhook receiver was
// posted.
//
// The harness is in the tests of this package; here are the ledgers, the
// database as the judge reads it, and the judge, a pure function that names
// each broken promise of docs/architecture.md.
package chaos
