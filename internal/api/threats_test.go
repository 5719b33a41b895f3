package api_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// threats names, for each row of the threat model, the tests that show the
// answer to it.
func threats() map[string][]string {
	return map[string][]string{
		"T1 access to what another tenant has":           {"api.TestT1StrangersReachNothing", "api.TestT1NoAnswerShowsAnotherTenant", "testkit.TestT1SandboxNumbersBelongToTheirWorkspace"},
		"T2 scopes and device lists passed by":           {"api.TestT2ScopesAndDeviceListsHold", "api.TestActors", "api.TestAnOperationWithoutScopesStopsTheServer", "api.TestKeyLimitedToDevicesSeesTheirEventsOnly", "api.TestReplayHonoursTheDeviceList"},
		"T3 members assigned, secrets shown":             {"api.TestT3MembersAreNotAssigned", "api.TestT3SecretsAreNeverShownAgain", "api.TestHeadersOfAnEndpointAreNamedOnly", "app.TestHeadersOfAnEarlierReleaseAreSealed"},
		"T4 keys guessed, timed, stolen":                 {"api.TestT4KeysAreNotKept", "api.TestT4KeysAreNotTimed", "api.TestT4RevokedKeysEndAtOnce", "api.TestT4KeyThatIsRevokedBeforeTheBodyEndsDoesNothing", "api.TestOpenStreamsEndWithTheirKey", "api.TestTwoAuthorizationHeaders", "dash.TestT4NewKeyAsksForThePasswordAgain"},
		"T5 keys in URLs, logs, panics":                  {"api.TestT5KeysAreNowhereInTheLog", "testkit.TestLogsShowNoSecret"},
		"T6 keys in plain text, cost before the key":     {"api.TestT6PlainTextIsRefused", "web.TestPlainRequests", "web.TestPlainRequestsAreRefusedOnEveryPath", "api.TestRefusedCredentialsAreCountedByAddress", "testkit.TestPlainRequestToATLSPort", "testkit.TestPlainRequestFromElsewhere"},
		"T7 URLs that lead inside":                       {"testkit.TestT7NoFieldTakesAForbiddenAddress", "egress.TestForbiddenAddressIsRefusedAsAnAnswerOfDNS", "egress.TestNothingIsSentToAForbiddenAddress", "webhook.TestForbiddenAddressIsNeverPostedTo"},
		"T8 scans by their outcome":                      {"webhook.TestForbiddenAddressIsNeverPostedTo"},
		"T9 events forged or replayed":                   {"webhook.TestChangedDeliveryDoesNotVerify", "webhook.TestOldSecretIsRefusedAfterTheOverlap"},
		"T10 URLs of others":                             {"webhook.TestHandshakeAcceptsTheChallengeAlone", "webhook.TestSignedHandshakeNeedsTheSecret", "webhook.TestEchoDoesNotCompleteASignedHandshake", "webhook.TestOldURLIsUsedUntilTheNewOneHasAnswered"},
		"T11 old TLS and bad certificates":               {"egress.TestTLSIsVerified", "egress.TestCertificateMustBeValidNowAndForTheName", "webhook.TestReceiverWithBadTLSHasItsExactOutcome"},
		"T12 hostile receivers":                          {"webhook.TestHostileReceiverHasItsExactOutcome", "egress.TestAnswerThatEndsAtAnyByteHasAReason", "egress.TestMisbehavingReceiverHasAReason", "webhook.TestHangingEndpointsHoldFewBodies", "webhook.TestLargeBodiesOfAWorkspaceLeaveRoomToOthers"},
		"T13 scripts in what others wrote":               {"dash/browsertest.TestT13HostileTextNeverRuns", "dash/browsertest.TestWatchedBrowserBarksAtRawText"},
		"T14 changes from another site":                  {"dash.TestT14AnotherSiteChangesNothing", "dash.TestT14WebhooksAreChangedFromTheirOwnPagesOnly"},
		"T15 sessions fixed or stolen":                   {"dash.TestT15SessionsAreNewAtTheSignInAndEndEverywhere", "dash.TestT15ChangesOfAnAccountAreMailed", "dash.TestCookieOfAKnownBrowserOpensNothing"},
		"T16 guesses, and who has an account":            {"people.TestT16SignInTellsNobodyWhoHasAnAccount", "people.TestT16GuessesAreFewAndLockNobodyOut", "people.TestT16OneNetworkTriesFewPasswordsInAll", "people.TestT16KnownBrowserHasItsOwnAttempts", "people.TestT16ParallelSignInsDelayNobodyElse", "people.TestT16StrangersLeaveTheQueuesOfKnownBrowsers", "people.TestT16StrangersLeaveMostOfTheProcessor", "people.TestT16HashOfAnEarlierReleaseIsReplaced", "dash.TestT16GuessesDoNotLockOutTheUsersBrowser", "dash.TestT16FailedSignInsAreWrittenDown", "people.TestT16CodesOfADayAreFew", "dash.TestVisitorsAreThrottledByNetwork", "testkit.TestT16InventedAddressBeginsNoNewCount", "dash.TestT16ForgottenPasswordTellsNobodyWhoHasAnAccount", "dash.TestT16SlowMailServerTellsNobodyWhoHasAnAccount"},
		"T17 invitations of others":                      {"people.TestT17InvitationEndsWithWhatItRestsOn", "people.TestT17InvitationIsForOneAddress", "people.TestT17InvitationIsUsedOnce", "people.TestT17NobodyGivesMoreThanTheyHave", "people.TestT17TwentyBrowsersMakeOneMember", "people.TestT17WhoWasRemovedDoesNotComeBack", "dash.TestT17KeysOfARemovedMemberAreRevokedOnRequest", "dash.TestT17LinksLetInWhomTheyAreFor", "dash.TestT17TwentyBrowsersWithOneLink"},
		"T18 codes to scan taken or planted":             {"dash.TestT18CodeIsShownToThoseWhoMayLink", "dash.TestT18LinkAttemptIsWrittenDownAndLimited", "testkit.TestT18CodeOnThePageIsGoodForItsAttemptAlone", "testkit.TestT18PhoneOfAnotherNumberLeavesNothing", "testkit.TestT18ManyLinkAttemptsOfOneDeviceAreRefused", "testkit.TestLinkPageIsForOneBrowser"},
		"T19 pages framed, browsers sent elsewhere":      {"dash.TestT19NextLeadsNowhereElse", "obs.TestOpsAnswersItsOwnHostAlone"},
		"T20 JSON with two meanings":                     {"api.TestT20JSONHasOneMeaning", "api.TestStrictInput", "api.TestGoodInput", "api.TestOtherBodies"},
		"T21 tricks with Unicode":                        {"api.TestT21TextsAreKeptByteForByte", "testkit.TestT21TextsArriveByteForByte", "testkit.TestT21LongTextIsCutAndSaysSo"},
		"T22 tricks with phone numbers":                  {"api.TestT22NumbersHaveOneForm", "api.TestT22FilterThatCannotBeValidIsRefused", "postern.FuzzParsePhone", "postern.TestRefusedFormNamesTheCorrectOne"},
		"T23 paths and guessed types":                    {"api.TestT23PathsLeadNowhere"},
		"T24 bombs":                                      {"api.TestT24BombsAreRefused"},
		"T25 slow clients, floods of headers and bodies": {"testkit.TestT25SlowClientsDelayNoOne", "api.TestBodiesOverTheWire", "api.TestHeadersTooLarge", "api.TestPagesAreBoundedByBytes", "api.TestTextsThatArePutIntoMemoryAreBounded", "api.TestUnreadListKeepsNoTurn", "api.TestStreamsOfAllWorkspacesAreCounted", "web.TestEveryWriteHasADeadline", "web.TestUnreadResponsesOfAWorkspaceAreBounded", "web.TestConnectionsAreBounded", "web.TestUnreadBytesOfAConnectionAreBounded"},
		"T26 numbers and limits":                         {"api.TestT26NumbersAndCursorsAreChecked", "api.TestQueries", "api.TestPages", "api.TestLogInPages", "api.TestEveryFilterReadsABoundedPart", "api.TestRareMessagesAreFoundPageByPage", "dash.TestEveryFormReadsABoundedPart", "dash.TestExportReadsABoundedPartAtATime", "db.TestReadEndsWhenItsCallerLeaves", "db.TestWorkspaceHoldsAtMostHalfOfTheReaders", "db.TestRequestKeepsItsTurn"},
		"T27 injection and smuggling":                    {"api.TestT27TextIsNoProgram", "api.TestBodiesOverTheWire", "dash.TestExportHoldsNoFormulas", "dash.TestExportEscapesEveryInvisibleStart", "web.TestTwoLengthsEndTheConnection"},
		"T28 messages of the vendor that crash":          {"network/whatsapp.TestT28PanickingDecryptionIsSetAside", "network/whatsapp.TestUnparsableMessageIsReported", "chaos.TestT28MalformedFrameStopsOneDevice", "session.TestQuarantineLastsUntilItIsResumed", "blackbox.TestCrashLeavesWhatWasInProgress"},
		"T29 races for an idempotency key":               {"api.TestT29OneKeyHappensOnce", "api.TestIdempotency", "api.TestManyPostsWithOneKeyMakeOneMessage", "api.TestIdempotencyKeysBelongToAPath", "api.TestARefusalMayBeRetried", "chaos.TestOneKeyHappensOnce"},
		"T30 races for the quota, edges of months":       {"api.TestT30QuotaIsExact", "api.TestQuotaIsExactAtItsLastUnits", "api.TestUsageIsTrueWhileItChanges", "api.TestMonthsAreUTC", "api.TestT30UnitsGoBackToTheirMonth"},
		"T31 races for the last device":                  {"api.TestManyLinksTakeTheLastSlotOnce", "api.TestLimitsOfAPlan", "people.TestEverythingThatIsCreatedHasALimit", "people.TestKeysHaveALimit", "people.TestMembersAndMembershipsHaveALimit", "dash.TestUnlinkedDevicesHaveALimit", "dash.TestDashboardIsThrottledLikeTheAPI"},
	}
}

// TestEveryThreatHasItsTest looks that no row is missing, that each test is
// there, and that each test of a row's name is in the table.
func TestEveryThreatHasItsTest(t *testing.T) {
	t.Parallel()
	tests, named := testsUnder(t, ".."), regexp.MustCompile(`\.TestT\d`)
	var rows []int
	var inTable []string
	for row, shown := range threats() {
		name, _, _ := strings.Cut(row, " ")
		n, err := strconv.Atoi(name[1:])
		if err != nil || len(shown) == 0 {
			t.Fatalf("row %q: %v", row, err)
		}
		rows, inTable = append(rows, n), append(inTable, shown...)
	}
	for _, name := range inTable {
		if !slices.Contains(tests, name) {
			t.Errorf("there is no %s", name)
		}
	}
	for _, name := range tests {
		if named.MatchString(name) && !slices.Contains(inTable, name) {
			t.Errorf("%s is in no row", name)
		}
	}
	slices.Sort(rows)
	if want := []int{
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
		28, 29, 30, 31,
	}; !slices.Equal(rows, want) {
		t.Errorf("rows %v, want %v", rows, want)
	}
}

// testsUnder are the test functions below a directory, each as its package's
// path from there, a dot and its name.
func testsUnder(t *testing.T, root string) (names []string) {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		pkg, _ := filepath.Rel(root, filepath.Dir(path))
		for _, m := range declared.FindAllSubmatch(text, -1) {
			names = append(names, filepath.ToSlash(pkg)+"."+string(m[1]))
		}
		return err
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("%d tests under %s: %v", len(names), root, err)
	}
	return names
}
