package requests

// FreeKey is the statement that frees the idempotency key of a request.
const FreeKey = freeKey + `)`
