package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// threats names, for each row of the threat model that concerns the API, the
// tests that show the answer to it. What is covered elsewhere has a test of the
// row's name that runs it.
func threats() map[string][]string {
	return map[string][]string{
		"T1 access to what another tenant has":           {"api.TestT1StrangersReachNothing", "api.TestT1NoAnswerShowsAnotherTenant"},
		"T2 scopes and device lists passed by":           {"api.TestT2ScopesAndDeviceListsHold"},
		"T3 members assigned, secrets shown":             {"api.TestT3MembersAreNotAssigned", "api.TestT3SecretsAreNeverShownAgain"},
		"T4 keys guessed, timed, stolen":                 {"api.TestT4KeysAreNotKept", "api.TestT4KeysAreNotTimed", "api.TestT4RevokedKeysEndAtOnce"},
		"T5 keys in URLs, logs, panics":                  {"api.TestT5KeysAreNowhereInTheLog", "testkit.TestLogsShowNoSecret"},
		"T6 keys in plain text, cost before the key":     {"api.TestT6PlainTextIsRefused", "testkit.TestPlainRequestToATLSPort", "testkit.TestPlainRequestFromElsewhere"},
		"T7 URLs that lead inside":                       {"testkit.TestT7NoFieldTakesAForbiddenAddress", "egress.TestForbiddenAddressIsRefusedAsAnAnswerOfDNS", "egress.TestNothingIsSentToAForbiddenAddress", "webhook.TestForbiddenAddressIsNeverPostedTo"},
		"T8 scans by their outcome":                      {"webhook.TestForbiddenAddressIsNeverPostedTo"},
		"T9 events forged or replayed":                   {"webhook.TestChangedDeliveryDoesNotVerify", "webhook.TestOldSecretIsRefusedAfterTheOverlap"},
		"T10 URLs of others":                             {"webhook.TestHandshakeAcceptsTheChallengeAlone", "webhook.TestOldURLIsUsedUntilTheNewOneHasAnswered"},
		"T11 old TLS and bad certificates":               {"egress.TestTLSIsVerified", "egress.TestCertificateMustBeValidNowAndForTheName", "webhook.TestReceiverWithBadTLSHasItsExactOutcome"},
		"T12 hostile receivers":                          {"webhook.TestHostileReceiverHasItsExactOutcome", "egress.TestAnswerThatEndsAtAnyByteHasAReason", "egress.TestMisbehavingReceiverHasAReason"},
		"T18 codes to scan taken or planted":             {"dash.TestT18CodeIsShownToThoseWhoMayLink", "dash.TestT18LinkAttemptIsWrittenDownAndLimited", "testkit.TestT18CodeOnThePageIsGoodForItsAttemptAlone", "testkit.TestT18PhoneOfAnotherNumberLeavesNothing", "testkit.TestT18ManyLinkAttemptsOfOneDeviceAreRefused", "testkit.TestLinkPageIsForOneBrowser"},
		"T20 JSON with two meanings":                     {"api.TestT20JSONHasOneMeaning"},
		"T21 tricks with Unicode":                        {"api.TestT21TextsAreKeptByteForByte", "testkit.TestT21TextsArriveByteForByte"},
		"T22 tricks with phone numbers":                  {"api.TestT22NumbersHaveOneForm", "postern.FuzzParsePhone"},
		"T23 paths and guessed types":                    {"api.TestT23PathsLeadNowhere"},
		"T24 bombs":                                      {"api.TestT24BombsAreRefused"},
		"T25 slow clients, floods of headers and bodies": {"testkit.TestT25SlowClientsDelayNoOne", "api.TestBodiesOverTheWire", "api.TestHeadersTooLarge"},
		"T26 numbers and limits":                         {"api.TestT26NumbersAndCursorsAreChecked"},
		"T27 injection and smuggling":                    {"api.TestT27TextIsNoProgram"},
		"T29 races for an idempotency key":               {"api.TestT29OneKeyHappensOnce", "chaos.TestOneKeyHappensOnce"},
		"T30 races for the quota, edges of months":       {"api.TestT30QuotaIsExact", "api.TestT30UnitsGoBackToTheirMonth"},
		"T31 races for the last device":                  {"api.TestT31LastSlotIsTakenOnce"},
	}
}

// TestEveryThreatHasItsTest looks that no row is missing and that each test is
// there.
func TestEveryThreatHasItsTest(t *testing.T) {
	t.Parallel()
	var rows []int
	have := map[string][]string{}
	for row, tests := range threats() {
		name, _, _ := strings.Cut(row, " ")
		n, err := strconv.Atoi(name[1:])
		if err != nil || len(tests) == 0 {
			t.Fatalf("row %q: %v", row, err)
		}
		rows = append(rows, n)
		for _, test := range tests {
			pkg, name, _ := strings.Cut(test, ".")
			if have[pkg] == nil {
				have[pkg] = testsOf(t, pkg)
			}
			if !slices.Contains(have[pkg], name) {
				t.Errorf("%s: there is no %s", row, test)
			}
		}
	}
	slices.Sort(rows)
	if want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 18, 20, 21, 22, 23, 24, 25, 26, 27, 29, 30, 31}; !slices.Equal(rows, want) {
		t.Errorf("rows %v, want %v", rows, want)
	}
	named := regexp.MustCompile(`^TestT\d`)
	for _, name := range slices.Concat(have["api"], have["testkit"]) {
		if named.MatchString(name) && !inTable(name) {
			t.Errorf("%s is in no row", name)
		}
	}
}

func inTable(name string) bool {
	for _, tests := range threats() {
		for _, test := range tests {
			if strings.HasSuffix(test, "."+name) {
				return true
			}
		}
	}
	return false
}

// testsOf are the test functions of a package beside this one.
func testsOf(t *testing.T, pkg string) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../" + pkg + "/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("the tests of %s: %v", pkg, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}
