package network

import (
	"context"
	"time"

	"postern/internal/postern"
)

// HistoryExtent says why the phone offers a part of its history.
type HistoryExtent string

// The extents of parts of a history.
const (
	RecentHistory HistoryExtent = "recent" // after linking: the messages of the last weeks, and what the phone knows of people
	OlderHistory  HistoryExtent = "older"  // after linking: messages from before
	AskedHistory  HistoryExtent = "asked"  // the answer to [Session.AskHistory]
)

// HistoryOffered reports that the phone offers a part of its history, which [Session.ReadHistory] reads.
type HistoryOffered struct {
	NetworkID string // of the offer
	Ref       Ref
	Extent    HistoryExtent
}

func (HistoryOffered) update() {}

// Past is a message of the history.
type Past struct {
	Inbound // NetworkID, ChatID, Content, File, QuoteOf and At are of both directions, the other members of inbound ones

	FromMe bool   // the account wrote it
	To     string // then, to whom: "+" and digits; "" in a group, and while the network hides the number
	Status postern.MessageStatus
}

// HistoryReader is what [Session.ReadHistory] needs.
type HistoryReader struct {
	Scratch string // directory for temporary files
	// Messages stores messages, the oldest one of the part first. It is called once for some of them at a time. nil: they
	// are not read.
	Messages func(ctx context.Context, list []Past) error
}

// HistoryRequest asks for the messages of a chat before one of them.
type HistoryRequest struct {
	ChatID    string
	NetworkID string // of the oldest message that is known
	FromMe    bool   // the account wrote it
	At        time.Time
	Count     int
}
