// Package networktest tests drivers of the network seam, and stands in for one.
//
// [TestDriver] is the conformance suite: a driver passes it or does not land.
// [Fake] is a small working network in memory, which passes it too; the tests of
// what stands above the seam use it. [Recorder] is a host that keeps what it was
// told.
package networktest
