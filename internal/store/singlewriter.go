package store

// One process writes a database: the engine's lock makes sure of that. These are the places
// in this package that rely on it, so that support for several nodes changes them alone.
//
//   - Positions in the event log grow in the order of commit, because addEvents numbers
//     events within the only writer's transactions. A reader that follows a position never
//     misses an event that commits later. See event.go.
//   - Messages are numbered by addMessages in the order of commit, which is their order
//     within a chat. See message.go.
//   - A quota is read and spent in one transaction of the only writer, so no other send can
//     see the same unit as free. See refuseUnacceptable in queue.go.
//   - The device cache is invalidated by this process's own commits. See newDeviceCache in
//     devicecache.go.
//   - The ledgers (messageHours, attemptHours, chatSummaries) are written once per group of
//     the only writer. See hours.go, attempthours.go and chat.go.
//
// Wake-ups are handed over in memory; that place is wake.go of the engine.
