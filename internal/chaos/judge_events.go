package chaos

import (
	"fmt"
	"slices"
)

// events checks the log itself, and its deliveries.
func (j *judging) events() {
	j.order()
	status := map[string]string{} // of the delivery, by event
	for _, d := range j.State.Deliveries {
		status[d.EventID] = d.Status
	}
	for _, e := range j.State.Events {
		if e.Type == "device.conflict" {
			j.report(TwoConnections, e.ID, "%s at %s", e.Device, e.Says.Timestamp)
		}
		switch s, ok := status[e.ID]; {
		case !ok:
			j.report(NoDelivery, e.ID, "%s of %s", e.Type, e.Device)
		case s == "exhausted" && j.posted[e.ID] < attempts:
			j.report(Undelivered, e.ID, "%s of %s: given up after %d attempts", e.Type, e.Device, j.posted[e.ID])
		case s != "exhausted" && (s != "succeeded" || !j.delivered[e.ID]):
			j.report(Undelivered, e.ID, "%s of %s: the delivery is %s; answered with 2xx: %v", e.Type, e.Device, s,
				j.delivered[e.ID])
		}
	}
}

// order checks that a device's events are numbered without gaps, that their bodies
// agree, and that their times never decrease.
func (j *judging) order() {
	last := map[string]Event{} // by device
	for _, e := range j.State.Events {
		before := last[e.Device]
		if e.Sequence != before.Sequence+1 {
			j.report(SequenceHole, e.ID, "%d where %s is at %d", e.Sequence, e.Device, before.Sequence)
		}
		if s := e.Says; s.EventID != e.ID || s.Type != e.Type || s.DeviceID != e.Device || s.Sequence != e.Sequence ||
			s.Timestamp < before.Says.Timestamp {
			j.report(BadEvent, e.ID, "number %d of %s, %s at %s, says that it is %+v", e.Sequence, e.Device, e.Type,
				before.Says.Timestamp, s)
		}
		last[e.Device] = e
	}
	for device, sequence := range j.State.Sequences {
		if last[device].Sequence != sequence {
			j.report(SequenceHole, device, "its newest event is %d, its count %d", last[device].Sequence, sequence)
		}
	}
}

// posts compares what the receiver got with the log.
func (j *judging) posts() {
	logged := make(map[string]Event, len(j.State.Events))
	for _, e := range j.State.Events {
		logged[e.ID] = e
	}
	seen := map[[2]string]string{} // message and type → eventId
	for _, p := range j.Posts {
		if p.Wrong != "" {
			j.report(BadPost, p.EventID, "%s", p.Wrong)
		}
		if p.Type == "webhook.verification" {
			continue
		}
		if e, ok := logged[p.EventID]; ok && e.SHA256 != p.SHA256 {
			j.report(ChangedBytes, p.EventID, "attempt %s carried other bytes than the log holds", p.Attempt)
		} else if !ok {
			j.report(NotInLog, p.EventID, "%s", p.Type)
		}
		if p.MessageID == "" || slices.Contains(actionEvents, p.Type) { // there may be several reactions
			continue
		}
		fact := [2]string{p.MessageID, p.Type}
		if before := seen[fact]; before != "" && before != p.EventID && len(j.eventOf[fact]) < 2 {
			j.report(TwoEvents, p.MessageID, "%s came as %s and as %s", p.Type, before, p.EventID)
		}
		seen[fact] = p.EventID
	}
}

// log reports secrets and texts in the gateway's log.
func (j *judging) log() {
	for _, l := range j.Leaks {
		j.report(Leaked, fmt.Sprintf("line %d", l.Line), "%s", l.What)
	}
}

// quota compares the units used with the accepted and the refunded messages. A message
// that ended without a frame is refunded.
func (j *judging) quota() {
	accepted, refunded, kept, back := 0, 0, 0, 0
	for _, m := range j.State.Messages {
		switch {
		case m.Direction != "outbound":
			continue
		case !m.FrameLeft && (m.Status == "failed" || m.Status == "expired" || m.Status == "canceled"):
			refunded++
			if m.Failure == "RECIPIENT_NOT_FOUND" {
				back++
			}
		case m.Failure == "RECIPIENT_NOT_FOUND":
			kept++
		}
		accepted++
	}
	if kept > min(j.Interrupted, back+1) { // the first of them may be the one that a kill cut short
		j.report(NotRefunded, "the month",
			"%d messages to nobody were not given back and %d were; at most %d attempts were cut short", kept, back,
			j.Interrupted)
	}
	if j.State.Used != accepted-refunded {
		j.report(QuotaOff, "the month", "used is %d; accepted %d, given back %d", j.State.Used, accepted, refunded)
	}
}
