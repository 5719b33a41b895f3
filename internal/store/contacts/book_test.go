package contacts

import (
	"fmt"
	"testing"

	"postern/internal/postern"
)

// An address book that is full takes changes and removals, and no more entries.
func TestAFullAddressBook(t *testing.T) {
	t.Parallel()
	known := map[string]postern.BookEntry{}
	for i := range postern.MaxBookEntries - 1 {
		e := postern.BookEntry{Entry: fmt.Sprintf("+1555%07d", i), Name: "somebody"}
		known[e.Entry] = e
	}
	news := []postern.BookEntry{
		{Entry: "+15550000000", Name: "somebody"}, {Entry: "+15550000001", Name: "somebody else"}, {Entry: "+15550000002"},
		{Entry: "+16660000000", Name: "one more"}, {Entry: "+16660000001", Name: "too many"},
	}
	for whole, want := range map[bool][2]int{false: {2, 1}, true: {3, len(known) - 2}} {
		saved, gone := changed("dev_1", postern.AddressBook{Whole: whole, Entries: news}, known)
		if got := [2]int{len(saved), len(gone)}; got != want {
			t.Errorf("whole %t: saved and removed are %d, want %d", whole, got, want)
		}
	}
}
