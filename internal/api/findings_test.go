package api_test

import (
	"maps"
	"slices"
	"testing"
)

// findings names, for each finding of the penetration test and of the check
// line by line that went before it, the tests that failed before it was fixed.
func findings() map[string][]string {
	return map[string][]string{
		"1 pages have a bound in bytes": {
			"api.TestPagesAreBoundedByBytes", "api.TestTextsThatArePutIntoMemoryAreBounded",
		},
		"1 responses have deadlines": {
			"web.TestEveryWriteHasADeadline", "web.TestStreamsSetTheirOwnDeadlines",
			"web.TestDeadlineOfAnEarlierResponseIsReplaced",
		},
		"1 connections and streams are limited": {
			"web.TestConnectionsAreBounded", "api.TestStreamsOfAWorkspaceAreCounted",
			"api.TestStreamsOfAllWorkspacesAreCounted",
		},
		"1 unread bytes are limited": {
			"web.TestUnreadBytesOfAConnectionAreBounded", "web.TestUnreadResponsesOfAWorkspaceAreBounded",
			"api.TestUnreadListKeepsNoTurn",
		},
		"2 a filter reads a bounded part": {
			"api.TestEveryFilterReadsABoundedPart", "api.TestRareMessagesAreFoundPageByPage",
			"dash.TestEveryFormReadsABoundedPart",
		},
		"2 a read ends with its caller": {
			"db.TestReadEndsWhenItsCallerLeaves", "db.TestCanceledReadKeepsItsConnection",
			"api.TestReadOfARequestEndsWithItsCaller",
		},
		"2 readers are shared": {
			"db.TestWorkspaceHoldsAtMostHalfOfTheReaders", "db.TestRequestKeepsItsTurn",
		},
		"3 bodies are limited by bytes": {
			"webhook.TestHangingEndpointsHoldFewBodies", "webhook.TestLargeBodiesOfAWorkspaceLeaveRoomToOthers",
			"webhook.TestBodyLargerThanALaneIsPostedAlone", "webhook.TestLaneThatEndsGivesItsBytesBack",
			"store.TestLargeBodiesAreReadAlone",
		},
		"4 unsolicited responses reach nobody else": {"egress.TestUnaskedAnswerReachesNoOtherTenant"},
		"5 nobody is locked out": {
			"people.TestT16KnownBrowserHasItsOwnAttempts", "people.TestT16GuessesAreFewAndLockNobodyOut",
			"dash.TestT16GuessesDoNotLockOutTheUsersBrowser",
		},
		"5 hashing has short queues": {
			"people.TestT16ParallelSignInsDelayNobodyElse", "people.TestT16StrangersLeaveTheQueuesOfKnownBrowsers",
			"people.TestT16StrangersLeaveMostOfTheProcessor",
		},
		"6 the dashboard is throttled": {
			"dash.TestDashboardIsThrottledLikeTheAPI", "dash.TestOpenPagesAreThrottledForMembers",
		},
		"6 what is created has a limit": {
			"people.TestEverythingThatIsCreatedHasALimit", "people.TestKeysHaveALimit",
			"dash.TestUnlinkedDevicesHaveALimit",
		},
		"7 a workspace has its own numbers": {"testkit.TestT1SandboxNumbersBelongToTheirWorkspace"},
		"8 headers of endpoints are sealed": {
			"api.TestHeadersOfAnEndpointAreNamedOnly", "app.TestHeadersOfAnEarlierReleaseAreSealed",
		},
		"8 a handshake can need the secret": {
			"webhook.TestSignedHandshakeNeedsTheSecret", "webhook.TestEchoDoesNotCompleteASignedHandshake",
		},
		"9 what is done is written down": {
			"dash.TestWebhooksOfKeysAndOfTheOperatorAreWrittenDown", "dash.TestT16FailedSignInsAreWrittenDown",
		},
		"9 keys of a removed member":        {"dash.TestT17KeysOfARemovedMemberAreRevokedOnRequest"},
		"9 a new key asks for the password": {"dash.TestT4NewKeyAsksForThePasswordAgain"},
		"9 changes are mailed":              {"dash.TestT15ChangesOfAnAccountAreMailed"},
		"10 two lengths":                    {"web.TestTwoLengthsEndTheConnection"},
		"10 the operations listener": {
			"obs.TestOpsAnswersItsOwnHostAlone", "obs.TestPublicOperationsPortIsWarnedOf",
		},
		"10 cells of an export": {
			"dash.TestExportEscapesEveryInvisibleStart", "dash.TestExportHoldsNoFormulas",
		},
		"10 codes of a day": {"people.TestT16CodesOfADayAreFew"},
		"11 a malformed frame stops one device": {
			"chaos.TestT28MalformedFrameStopsOneDevice", "blackbox.TestCrashLeavesWhatWasInProgress",
			"session.TestSuspectsConnectLastAndOneAtATime", "session.TestQuarantineLastsUntilItIsResumed",
		},
		"11 a decryption that panics": {"network/whatsapp.TestT28PanickingDecryptionIsSetAside"},
		"12 settings that do not exist": {
			"config.TestFileThatIsWrongIsRefused", "config.TestUnknownVariablesAreRefused",
			"postern.TestSwitchesNeedNoValue",
		},
		"13 a refused login has its event": {"testkit.TestRefusedLoginHasItsOwnEvent"},
		"13 an undecodable stream":         {"network/whatsapp.TestUndecodableStreamEndsTheConnection"},
		"13 a message that cannot be parsed": {
			"network/whatsapp.TestUnparsableMessageIsReported", "testkit.TestUnreadableMessageSaysWhy",
		},
		"13 receipts of the recipient":       {"store.TestReceiptCountsOnlyFromTheRecipient"},
		"13 failures of TLS say what failed": {"network/whatsapp.TestTLSFailuresSayWhatFailed"},
		"13 a conflict that is resumed":      {"session.TestResumedConflictTakesTheSessionBackAtOnce"},
		"13 a half-open socket":              {"network/whatsapp.TestHalfOpenConnectionEndsInTime"},
		"13 one number, one device":          {"testkit.TestOneNumberIsLinkedOnce"},
		"14 text is counted in characters": {
			"testkit.TestT21LongTextIsCutAndSaysSo", "api.TestT21TextsAreKeptByteForByte",
		},
		"14 forms of a number":           {"api.TestT22NumbersHaveOneForm"},
		"14 a plus that is not encoded":  {"api.TestT22FilterThatCannotBeValidIsRefused"},
		"14 a device that is not linked": {"api.TestStates"},
		"15 times follow each other":     {"api.TestTimesOfAMessageFollowEachOther"},
		"15 limits count characters":     {"api.TestLimitsInCharactersCountCharacters"},
		"15 every refusal is a problem": {
			"web.TestEveryRefusalIsAProblemDocument", "web.TestAProgramNeverGetsAPageOfTheDashboard",
		},
		"15 every response has its limits":     {"api.TestActors"},
		"15 pointers lead to the element":      {"api.TestPointersLeadToTheElement"},
		"15 Location":                          {"api.TestCreatedResourcesHaveALocation"},
		"15 merge patches":                     {"api.TestPatchesMayBeSentAsWhatTheyAre"},
		"15 Retry-After of a code":             {"api.TestRetryAfterWhileACodeIsOnItsWay"},
		"15 the stream's place":                {"api.TestStreamTellsItsPlace"},
		"16 every property is described":       {"api.TestEveryPropertyIsDescribed"},
		"16 every event is in the document":    {"api/spec.TestWebhooksAreDescribed"},
		"16 reasons are closed lists":          {"api.TestReasonsOfStatesAreClosedLists"},
		"16 GET /v1/me":                        {"api.TestMeSaysWhoAsks"},
		"17 a plan without webhooks":           {"dash.TestOperatorGivesNoWebhookToAPlanWithoutThem"},
		"17 deliveries of a disabled endpoint": {"store.TestDeliveriesOfADisabledEndpointWait"},
		"17 a replay counts what was pending": {
			"store.TestReplayReachesWhatSucceededWhatFailedAndWhatWasNeverSent",
		},
		"18 what may be compressed is": {
			"api.TestListsAndTheDocumentAreCompressed", "web.TestTextIsCompressedForThoseWhoAcceptIt",
		},
		"18 secrets are not compressed": {
			"web.TestOnlyWhatIsMarkedIsCompressed", "api.TestResponsesWithASecretAreNeverCompressed",
			"dash.TestPagesWithASecretAreNeverCompressed",
		},
	}
}

// TestEveryFindingHasItsTest looks that each test of the table is there.
func TestEveryFindingHasItsTest(t *testing.T) {
	t.Parallel()
	tests := slices.Concat(testsUnder(t, ".."), testsUnder(t, "../../cmd"))
	for _, finding := range slices.Sorted(maps.Keys(findings())) {
		for _, name := range findings()[finding] {
			if !slices.Contains(tests, name) {
				t.Errorf("%s: there is no %s", finding, name)
			}
		}
	}
}
