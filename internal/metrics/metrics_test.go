package metrics

import (
	"fmt"
	"slices"
	"testing"

	"postern/internal/postern"
)

func TestStatusesThatAMessagePasses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to postern.MessageStatus
		want     []postern.MessageStatus
	}{
		{"", postern.Queued, []postern.MessageStatus{postern.Queued}},
		{"", postern.Received, []postern.MessageStatus{postern.Received}},
		{postern.Sending, postern.Failed, []postern.MessageStatus{postern.Failed}},
		{postern.Sending, postern.Sent, []postern.MessageStatus{postern.Sent}},
		{postern.Sending, postern.Delivered, []postern.MessageStatus{postern.Sent, postern.Delivered}},
		{postern.Sent, postern.Read, []postern.MessageStatus{postern.Delivered, postern.Read}},
		{postern.Delivered, postern.Read, []postern.MessageStatus{postern.Read}},
		{postern.Read, postern.Played, []postern.MessageStatus{postern.Played}},
		{postern.Delivered, postern.Played, []postern.MessageStatus{postern.Played}},
	} {
		if got := passed(tt.from, tt.to); !slices.Equal(got, tt.want) {
			t.Errorf("from %q to %q it passes %v, want %v", tt.from, tt.to, got, tt.want)
		}
	}
}

func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBounded(maxReasons)
	seen := map[string]bool{}
	for i := range 10 * maxReasons {
		seen[b.of(fmt.Sprint(i))] = true
	}
	if len(seen) != maxReasons+1 || b.of("0") != "0" {
		t.Errorf("%d values", len(seen))
	}
}
