package factor

import (
	"strings"
	"testing"
	"time"
)

// The times and codes are those of RFC 6238, appendix B, for SHA-1: ours have their
// last six digits.
func TestCodesAreThoseOfTheStandard(t *testing.T) {
	t.Parallel()
	secret := []byte("12345678901234567890")
	for at, want := range map[int64]string{
		59: "287082", 1111111109: "081804", 1111111111: "050471",
		1234567890: "005924", 2000000000: "279037",
		20000000000: "353130",
	} {
		if step, ok := MatchCode(secret, want, time.Unix(at, 0), 0); !ok || step != at/30 {
			t.Errorf("at %d the code %s is of step %d, %v", at, want, step, ok)
		}
	}
}

func TestCodeIsOfNowAndIsUsedOnce(t *testing.T) {
	t.Parallel()
	secret, now := NewSecret(), time.Unix(1_700_000_000, 0)
	code := codeAt(secret, now.Unix()/30)
	for off, want := range map[time.Duration]bool{
		0: true, 30 * time.Second: true, -30 * time.Second: true,
		90 * time.Second: false, -90 * time.Second: false,
	} {
		if _, ok := MatchCode(secret, code, now.Add(off), 0); ok != want {
			t.Errorf("%s away it is taken: %v", off, ok)
		}
	}
	if _, ok := MatchCode(secret, code, now, now.Unix()/30); ok {
		t.Error("it is taken twice")
	}
	for _, wrong := range []string{"", "0", code[:5], code + "0", "abcdef"} {
		if _, ok := MatchCode(secret, wrong, now, 0); ok {
			t.Errorf("%q is taken", wrong)
		}
	}
}

func TestSecretForAnApp(t *testing.T) {
	t.Parallel()
	got := SecretURI("Postern", "ada+x@example.com", []byte("12345678901234567890"))
	if want := "otpauth://totp/Postern:ada+x@example.com?issuer=Postern&secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"; got != want {
		t.Errorf("the app reads %s, want %s", got, want)
	}
}

func TestRecoveryCodesAreTypedAnyWay(t *testing.T) {
	t.Parallel()
	list := NewRecoveryCodes(10)
	if len(list) != 10 || list[0] == list[1] || len(list[0]) != 11 {
		t.Fatalf("the codes are %q", list)
	}
	if TypedCode(" "+strings.ToUpper(list[0])) != TypedCode(strings.ReplaceAll(list[0], "-", " ")) {
		t.Errorf("%s is read in two ways", list[0])
	}
}
