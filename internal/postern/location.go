package postern

// Location is a place on the earth. Name and Address have at most MaxPlace bytes, and
// URL has at most MaxURL.
type Location struct {
	Latitude  float64 `json:"latitude" minimum:"-90" maximum:"90" doc:"Degrees; positive values are north of the equator." example:"52.5163"`
	Longitude float64 `json:"longitude" minimum:"-180" maximum:"180" doc:"Degrees; positive values are east of Greenwich." example:"13.3777"`
	Name      string  `json:"name,omitempty" doc:"Name of the place, at most 1,000 bytes in UTF-8." example:"Brandenburg Gate"`
	Address   string  `json:"address,omitempty" doc:"Address of the place, at most 1,000 bytes in UTF-8." example:"Pariser Platz, Berlin"`
	URL       string  `json:"url,omitempty" doc:"Address of a page about the place, at most 2,000 bytes." example:"https://example.com/gate"`
}

// Limits of a location, in bytes of UTF-8.
const (
	MaxPlace = 1000
	MaxURL   = 2000
)

// IsValid reports whether l is a point on the earth. NaN is not.
func (l Location) IsValid() bool { return isPoint(l.Latitude, l.Longitude) }

func isPoint(latitude, longitude float64) bool {
	return latitude >= -90 && latitude <= 90 && longitude >= -180 && longitude <= 180
}

// check returns nil if l can be sent; l may be nil.
func (l *Location) check() error {
	switch {
	case l == nil:
		return Invalid("/location", "a location message needs a location")
	case !l.IsValid():
		return Invalid("/location", "a latitude is from -90 to 90, and a longitude from -180 to 180")
	case len(l.Name) > MaxPlace:
		return Errorf(PayloadTooLarge, "the name of a place has at most %d bytes in UTF-8", MaxPlace)
	case len(l.Address) > MaxPlace:
		return Errorf(PayloadTooLarge, "the address of a place has at most %d bytes in UTF-8", MaxPlace)
	case len(l.URL) > MaxURL:
		return Errorf(PayloadTooLarge, "the URL of a place has at most %d bytes in UTF-8", MaxURL)
	}
	return nil
}

// LiveLocation is where somebody was who shares their location for a while.
type LiveLocation struct {
	Latitude  float64 `json:"latitude" minimum:"-90" maximum:"90" doc:"Degrees; positive values are north of the equator." example:"52.5163"`
	Longitude float64 `json:"longitude" minimum:"-180" maximum:"180" doc:"Degrees; positive values are east of Greenwich." example:"13.3777"`
	Accuracy  int     `json:"accuracy,omitzero" minimum:"0" doc:"Radius of uncertainty in meters; absent if unknown." example:"20"`
	Speed     float64 `json:"speed,omitzero" minimum:"0" doc:"Meters per second; absent if unknown or at rest." example:"1.4"`
	Heading   int     `json:"heading,omitzero" minimum:"0" maximum:"359" doc:"Degrees clockwise from north; absent if unknown or north." example:"90"`
}

// IsValid reports whether l is a point on the earth, with a speed that is a number.
func (l LiveLocation) IsValid() bool {
	return isPoint(l.Latitude, l.Longitude) && l.Speed >= 0 && l.Speed < 1e6
}

// CalendarEvent is an event to which a message invites.
type CalendarEvent struct {
	Name        string    `json:"name" doc:"Name of the event." example:"Summer party"`
	Description string    `json:"description,omitempty" doc:"Description of the event; absent if there is none." example:"Bring a cake."`
	StartsAt    Time      `json:"startsAt" format:"date-time" nullable:"true" doc:"When the event starts; null if unknown." example:"2026-12-01T17:00:00.000Z"`
	EndsAt      Time      `json:"endsAt" format:"date-time" nullable:"true" doc:"When the event ends; null if unknown." example:"2026-12-01T22:00:00.000Z"`
	Location    *Location `json:"location,omitempty" doc:"Where the event takes place; absent if unknown."`
	JoinLink    string    `json:"joinLink,omitempty" doc:"Link by which to join a call; absent if there is none." example:"https://example.com/call"`
	Canceled    bool      `json:"canceled,omitzero" doc:"True if the event was canceled; otherwise absent." example:"true"`
}
