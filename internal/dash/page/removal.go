package page

// RemovalView asks whether a device shall be deleted.
type RemovalView struct {
	Device
	Linked   bool  // a phone is linked to it
	Password Field // its value is never shown
	Again    Again
}
