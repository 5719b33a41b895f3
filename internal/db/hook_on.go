//go:build failpoints

package db

import "postern/internal/failpoint"

func losesNotices() bool { return failpoint.Makes(failpoint.LoseNotices) }

func polled() { failpoint.Note("poll") }

func turnOf(turn string) string {
	if failpoint.Makes(failpoint.WriteOutOfTurn) {
		return ""
	}
	return turn
}
