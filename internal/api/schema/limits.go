package schema

const (
	// MaxPlaces is how many wrong places one refusal names; more help no one.
	MaxPlaces = 20

	maxDepth   = 32   // of nested objects and arrays in a body
	maxMembers = 1000 // of one object in a body; no documented one takes as many
)
