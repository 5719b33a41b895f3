package content

import (
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waE2E"
)

func locationToWire(l postern.Location) *waE2E.LocationMessage {
	return &waE2E.LocationMessage{
		DegreesLatitude: &l.Latitude, DegreesLongitude: &l.Longitude,
		Name: optional(l.Name), Address: optional(l.Address), URL: optional(l.URL),
	}
}

// locationFromWire returns unsupported content for a point that is not on the
// earth, such as NaN, which has no JSON.
func locationFromWire(m *waE2E.LocationMessage) postern.Content {
	var text clipper
	l := placeFromWire(m, &text)
	if !l.IsValid() {
		return postern.Unsupported("location")
	}
	return postern.Content{Kind: postern.KindLocation, Truncated: text.cut, Extra: postern.Extra{Location: &l}}
}

func placeFromWire(m *waE2E.LocationMessage, text *clipper) postern.Location {
	return postern.Location{
		Latitude: m.GetDegreesLatitude(), Longitude: m.GetDegreesLongitude(),
		Name:    text.bytes(m.GetName(), postern.MaxPlace),
		Address: text.bytes(m.GetAddress(), postern.MaxPlace), URL: text.bytes(m.GetURL(), postern.MaxURL),
	}
}

func liveLocationFromWire(m *waE2E.LiveLocationMessage) postern.Content {
	l := postern.LiveLocation{
		Latitude: m.GetDegreesLatitude(), Longitude: m.GetDegreesLongitude(),
		Accuracy: int(m.GetAccuracyInMeters()), Speed: float64(m.GetSpeedInMps()),
		Heading: int(m.GetDegreesClockwiseFromMagneticNorth() % 360),
	}
	if !l.IsValid() {
		return postern.Unsupported("liveLocation")
	}
	c := postern.Content{Kind: postern.KindLiveLocation, ReceivedOnly: postern.ReceivedOnly{LiveLocation: &l}}
	c.Text, c.Truncated = Cut(m.GetCaption(), postern.MaxText)
	return c
}
