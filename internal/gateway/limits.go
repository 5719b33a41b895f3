package gateway

import (
	"time"

	"postern/internal/postern"
)

// The limits of the contract that this package checks.
const (
	maxMetadata        = 50  // members
	maxMetadataBytes   = 500 // of a name or a value
	maxDescription     = 500 // characters
	maxEndpointHeaders = 10
	maxHeaderValue     = 1024 // bytes
	maxEventPatterns   = 50
	maxDeviceIDs       = 50 // as many as the largest plan has devices

	maxEmoji = 64 // bytes: the longest emoji that are one character have about 40

	checksKept    = 24 * time.Hour // of numbers
	limitTime     = 24 * time.Hour // after which an account may try to start a chat, if the network gave no time
	easeTime      = 24 * time.Hour // without a limit, after which the pace for new chats is doubled
	limitChunk    = 100
	defaultExpiry = 24 * time.Hour
	indexEvery    = time.Second     // after all words are written
	indexRest     = 4               // pause between chunks of words, as a multiple of the time of a chunk
	linkLife      = time.Hour       // of a link to a file
	mediaWait     = 2 * time.Second // for a file that is being fetched
	sweepAge      = 2 * time.Hour   // of stored bytes that a sweep may remove
	maxSchedule   = 365 * day
	editTime      = 15 * time.Minute // for which a message that was sent can be edited; see the contract
	editsTaken    = 20 * time.Minute // for which the vendor's apps accept an edit; see whatsmeow.EditWindow
	maxExpiry     = 7 * 24 * time.Hour

	// linkTime is how long a phone has to scan: the vendor shows six codes, the first for
	// 60 s and each of the others for 20 s; the rest is a margin for a slow start.
	linkTime = 3 * time.Minute
	// pageTime is how long a link page can be used. Its link attempt stays open for the
	// same time and gets new codes when the vendor's run out.
	pageTime = 15 * time.Minute
	// passkeyTime is how long a link attempt waits at least after the network has asked for the passkey.
	passkeyTime = 10 * time.Minute
	// goodbyeWait is the default of Options.GoodbyeWait.
	goodbyeWait = 10 * time.Second
	// codeWait is how long a scan in the sandbox waits for the first code.
	codeWait   = 10 * time.Second
	maxOffline = 3600 // seconds that a simulated phone may be away
	// linkedWait is how long a scan in the sandbox waits for the device to be connected.
	linkedWait = 2 * time.Second

	maxListed = 1000 // devices in the operator's list, which has no pages

	maxLimit = 1_000_000_000 // of a workspace's own limits
	maxDays  = 36_500

	// erasePatience is how long the removal of a person waits for endpoints that still have to get its messages.
	erasePatience = 20 * time.Hour
	// retentionEvery is how often old rows are removed: often enough to keep each pass
	// short.
	retentionEvery = 10 * time.Minute

	statsTime = day      // default range of an endpoint's counters
	maxStats  = 31 * day // longest range of an endpoint's counters
	keepHours = 32 * day // how long hourly counts of messages are kept

	defaultInFlight = 8
	maxInFlight     = 64

	// MaxOverlap is how long an old key may stay valid beside its successor.
	MaxOverlap = 30 * 24 * time.Hour

	// defaultOverlap is how long an endpoint's old secret signs beside the new one by
	// default; MaxOverlap is the limit.
	defaultOverlap = 24 * time.Hour
	maxOldSecrets  = 9 // that sign beside the newest; more would only make the header longer

	// linkStarts limits the link attempts of a device in a minute: each one requests codes
	// from the network.
	linkStarts = 20

	// usedEvery is the shortest time between two writes of a key's last use.
	usedEvery = time.Minute
	// keysCached is how many keys are cached in memory, and sharedKeys for how long if other servers may
	// revoke them.
	keysCached = 10_000
	sharedKeys = 900 * time.Millisecond
)

func tooLarge(format string, args ...any) error {
	return postern.Errorf(postern.PayloadTooLarge, format, args...)
}

func checkMetadata(m map[string]string) error {
	if len(m) > maxMetadata {
		return tooLarge("metadata may have at most %d fields", maxMetadata)
	}
	for k, v := range m {
		if len(k) > maxMetadataBytes || len(v) > maxMetadataBytes {
			return tooLarge("a metadata name or value may be at most %d bytes long", maxMetadataBytes)
		}
	}
	return nil
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
