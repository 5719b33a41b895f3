// Package db is the storage engine: one SQL database, either SQLite in the data
// directory or PostgreSQL behind a URL. It knows nothing about what is stored.
//
// All writes go through one writer goroutine. A write is either a [Func], for
// what happens rarely, or a hot write made by [Item]: a value with its rows.
// The writer commits many writes with one fsync and answers each when its commit
// is on disk. Hot writes of one kind in a group are written together: PostgreSQL
// gets one statement with arrays, SQLite a prepared statement for each row. If a
// group fails, its writes are repeated one by one, so that one caller's conflict
// never fails its neighbours.
//
// A write says what the scheduler needs to know about it: its workspace and its
// urgency ([About]). While it runs, it announces what it changes: [Tx.Wake] wakes
// those who wait for a change once it is committed, and [Tx.Note] tells the
// engine's [Ledger] values, which keep counters and summaries in step within the
// same transaction.
//
// Reads have connections of their own and never wait for a write.
//
// With PostgreSQL the writer's connection holds a lock, so that only one server
// works on a database. A lost connection is replaced. A commit whose response was
// lost is never reported as done.
package db
