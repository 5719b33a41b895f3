package paging_test

import (
	"slices"
	"testing"

	"postern/internal/paging"
	"postern/internal/seal"
)

// Lists that are read as a whole have pages for those who ask for them.
func TestWholeListsHavePages(t *testing.T) {
	t.Parallel()
	list := make([]int, 5)
	for i := range list {
		list[i] = i
	}
	box, err := seal.NewBox(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	cursors := paging.Cursors{Box: box}
	var got []int
	p := paging.Page{Limit: 2}
	for range 3 {
		l, err := paging.Whole(cursors, "ws_1", "numbers", list, p)
		if err != nil {
			t.Fatal(err)
		}
		got, p.Cursor = append(got, l.Data...), l.Next
	}
	if !slices.Equal(got, list) || p.Cursor != "" {
		t.Errorf("the pages have %v, and then %q", got, p.Cursor)
	}
	if l, err := paging.Whole(cursors, "ws_1", "numbers", list, paging.Page{}); err != nil || len(l.Data) != 5 || l.Next != "" {
		t.Errorf("without a limit: %+v, %v", l, err)
	}
}
