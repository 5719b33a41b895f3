package page

import "time"

// Health is a part of what became of a device, the newest first.
type Health struct {
	Changes []HealthChange
	More    string // where the older ones are; "": there are none
}

// HealthChange is a line of it.
type HealthChange struct {
	Status string // "connected"
	Text   string // as a sentence
	Reason string // the network's, or ours
	At     time.Time
}

// DeviceHealthView is a page of what became of a device.
type DeviceHealthView struct {
	Device
	Health Health
}
