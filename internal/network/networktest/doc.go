// Package networktest tests drivers, and contains one for other tests.
//
// [TestDriver] is the conformance suite that every driver must pass. [Fake] is a
// small working network in memory that passes it too; the tests of higher layers
// use it. [Recorder] is a host that remembers its updates.
package networktest
