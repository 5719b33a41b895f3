package db

// Ledger keeps rows in step with what the writes of a transaction change: counters
// and summaries that are cheaper to write once per group than once per write. The
// writer's goroutine alone calls it.
type Ledger interface {
	// Note takes a change announced with [Tx.Note]. It ignores changes of types that it
	// does not know.
	Note(change any)
	// Write writes what was noted since the last call.
	Write(t *Tx) error
	// Discard forgets what was noted since the last Write: it was rolled back.
	Discard()
}

// ledgers are all ledgers of a database.
type ledgers []Ledger

func (l ledgers) note(change any) {
	for _, one := range l {
		one.Note(change)
	}
}

func (l ledgers) write(t *Tx) error {
	for _, one := range l {
		if err := one.Write(t); err != nil {
			return err
		}
	}
	return nil
}

func (l ledgers) discard() {
	for _, one := range l {
		one.Discard()
	}
}
