package keys

import "go.mau.fi/libsignal/logger"

// libsignal prints to standard output unless it has a logger. It reads the logger
// without a lock, so the logger is set before anything runs.
var _ = silence()

func silence() struct{} {
	var quiet logger.Loggable = mute{}
	logger.Setup(&quiet)
	return struct{}{}
}

// mute is a logger for libsignal that writes nothing.
type mute struct{}

func (mute) Debug(_, _ string)   {}
func (mute) Info(_, _ string)    {}
func (mute) Warning(_, _ string) {}
func (mute) Error(_, _ string)   {}
func (mute) Configure(string)    {}
