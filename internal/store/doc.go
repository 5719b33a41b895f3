// Package store keeps all that outlives the process in one SQL database.
//
// Writes go through one writer, as operations: values with their rows. The
// writer commits many operations with one fsync and answers each when its
// commit is on disk. [DB.Do] waits for that; what is handed over by Later keeps
// its place in the order and does not wait. Reads have connections of their own
// and never wait for a write.
//
// The engine is SQLite in the data directory, or PostgreSQL behind a URL. With
// PostgreSQL the writer's connection holds a lock, so that one server works on
// a database, and is made again when it is lost. A commit that was cut off is
// never answered as done.
//
// Statements stand next to the one operation that uses them, with $1
// placeholders and only such SQL as both engines take; what differs is in
// dialect. Every statement about a tenant's row names its workspace.
package store
