package vendorsim

import "testing"

func TestHiddenAddressesLeadBack(t *testing.T) {
	t.Parallel()
	seen := make(map[string]number)
	for _, n := range []number{"1000000", "9999999", "15550001111", "15550001112", "491701234567", "999999999999999"} {
		lid := n.lid()
		if other, taken := seen[lid.User]; taken {
			t.Errorf("%s and %s share %s", n, other, lid)
		}
		seen[lid.User] = n
		if got, ok := numberOf(lid); !ok || got != n {
			t.Errorf("numberOf(%s) = %s, %v, want %s", lid, got, ok, n)
		}
		if got, ok := numberOf(n.pn()); !ok || got != n {
			t.Errorf("numberOf(%s) = %s, %v, want %s", n.pn(), got, ok, n)
		}
	}
}

func TestParseNumber(t *testing.T) {
	t.Parallel()
	for in, ok := range map[string]bool{
		"+15550001111": true, "15550001111": true, " +1555000 ": true, "+155500": false, "": false, "+": false,
		"+05550001111": false, "+1555000111a": false, "++15550001111": false, "+1234567890123456": false,
	} {
		if _, err := parseNumber(in); (err == nil) != ok {
			t.Errorf("parseNumber(%q) = %v, want ok %v", in, err, ok)
		}
	}
}
