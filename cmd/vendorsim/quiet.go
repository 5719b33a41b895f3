package main

import "go.mau.fi/libsignal/logger"

// libsignal prints to standard output unless it has a logger. Whoever started this program reads one line
// of it, so that the phones would stop when the pipe is full. It reads the logger without a lock, so the
// logger is set before anything runs.
//
//nolint:gochecknoinits // see above
func init() {
	var quiet logger.Loggable = mute{}
	logger.Setup(&quiet)
}

// mute is a logger for libsignal that writes nothing.
type mute struct{}

func (mute) Debug(_, _ string)   {}
func (mute) Info(_, _ string)    {}
func (mute) Warning(_, _ string) {}
func (mute) Error(_, _ string)   {}
func (mute) Configure(string)    {}
