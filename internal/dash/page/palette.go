package page

// Hit is something that the palette has found.
type Hit struct {
	Label string
	Kind  string // what it is, such as "Device"
	Path  string
}
