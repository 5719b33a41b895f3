package gateway

import (
	"bytes"
	"context"
	"maps"
	"strings"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"
)

// Change is one field of a merge patch (RFC 7396): left out, null, or a value.
type Change[T any] struct {
	Given bool
	Value *T // nil means null
}

// or returns the field's value after the change: the old value if the field was left out,
// the default if it is null.
func (c Change[T]) or(was, def T) T {
	switch {
	case !c.Given:
		return was
	case c.Value == nil:
		return def
	}
	return *c.Value
}

// DeviceChange is a change of a device. A field that is not given keeps its value, and
// null resets it to its default.
type DeviceChange struct {
	Name     string // "" keeps the name
	Metadata Change[map[string]Change[string]]
	Pace     Change[PaceChange]
	Receive  Change[ReceiveChange]
	ProxyURL Change[string]
}

// PaceChange is the part of a [DeviceChange] about how fast the device sends.
type PaceChange struct{ PerMinute, NewChatsPerMinute Change[postern.Rate] }

// ReceiveChange is the part of a [DeviceChange] about which messages the device receives.
type ReceiveChange struct {
	Direct, Groups, Channels, Status, Calls, ViewOnce, History Change[bool]

	Media Change[postern.MediaMode]
}

// Change changes the given fields of a device. It returns MissingScope,
// ResourceNotAllowed, NotFound, or an error that names the field.
func (g Devices) Change(
	ctx context.Context, c access.Caller, id postern.DeviceID, in DeviceChange,
) (postern.Device, error) {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return postern.Device{}, err
	}
	if _, err := g.get(ctx, c, id); err != nil {
		return postern.Device{}, err
	}
	if in.Name != "" {
		if err := postern.CheckName("/name", in.Name); err != nil {
			return postern.Device{}, err
		}
	}
	proxy, err := g.sealProxy(id, in.ProxyURL)
	if err != nil {
		return postern.Device{}, err
	}
	d, err := g.db.Devices.Change(ctx, c.Workspace(), id, func(d *postern.Device) ([]store.Act, error) {
		was := *d
		if in.Name != "" {
			d.Name = in.Name
		}
		d.Metadata = mergeLabels(d.Metadata, in.Metadata)
		d.Pace = applyPace(d.Pace, in.Pace)
		d.Receive = applyReceive(d.Receive, in.Receive)
		d.Proxy = proxy.or(d.Proxy, nil)
		return g.didChange(c, was, *d), checkMetadata(d.Metadata)
	})
	return g.counted(ctx, d, err)
}

// didChange is the audit log's entry for the change of a device. It names the fields without their values: the URL of a
// proxy may contain a password.
func (g Devices) didChange(c access.Caller, was, now postern.Device) []store.Act {
	fields := changedFields(was, now)
	if fields == nil {
		return nil
	}
	return did(c, g.time(), "device.changed", string(now.ID), now.Name+" ("+strings.Join(fields, ", ")+")")
}

// changedFields returns the names, as in the API, of the fields of a device that were changed.
func changedFields(was, now postern.Device) (list []string) {
	for _, f := range []struct {
		name    string
		changed bool
	}{
		{"name", was.Name != now.Name}, {"metadata", !maps.Equal(was.Metadata, now.Metadata)},
		{"pace", was.Pace.Or(postern.Pace{}) != now.Pace.Or(postern.Pace{})},
		{"receive", was.Receive != now.Receive}, {"proxyUrl", !bytes.Equal(was.Proxy, now.Proxy)},
	} {
		if f.changed {
			list = append(list, f.name)
		}
	}
	return list
}

// sealProxy checks and encrypts the URL of a proxy, which may contain a password.
func (g Devices) sealProxy(id postern.DeviceID, c Change[string]) (Change[[]byte], error) {
	if c.Value == nil {
		return Change[[]byte]{Given: c.Given}, nil
	}
	if err := g.checkVia(*c.Value); err != nil {
		return Change[[]byte]{}, postern.Invalid("/proxyUrl", "%s", err)
	}
	return Change[[]byte]{Given: true, Value: new(g.box.Seal([]byte(*c.Value), id.ProxyPlace()))}, nil
}

// mergeLabels applies the changes of single labels; null removes all labels.
func mergeLabels(was map[string]string, c Change[map[string]Change[string]]) map[string]string {
	if !c.Given {
		return was
	}
	now := map[string]string{}
	if c.Value == nil {
		return now
	}
	maps.Copy(now, was)
	for name, label := range *c.Value {
		if label.Value == nil {
			delete(now, name)
		} else {
			now[name] = *label.Value
		}
	}
	return now
}

func applyPace(was *postern.Pace, c Change[PaceChange]) *postern.Pace {
	if !c.Given {
		return was
	}
	if c.Value == nil {
		return nil
	}
	in, old := c.Value, was.Or(postern.Pace{})
	now := postern.Pace{
		PerMinute:         in.PerMinute.or(old.PerMinute, 0),
		NewChatsPerMinute: in.NewChatsPerMinute.or(old.NewChatsPerMinute, 0),
	}
	if now == (postern.Pace{}) {
		return nil
	}
	return &now
}

func applyReceive(was postern.Receive, c Change[ReceiveChange]) postern.Receive {
	def := postern.DefaultReceive()
	if !c.Given {
		return was
	}
	if c.Value == nil {
		return def
	}
	in := c.Value
	return postern.Receive{
		Direct: in.Direct.or(was.Direct, def.Direct), Groups: in.Groups.or(was.Groups, def.Groups),
		Channels: in.Channels.or(was.Channels, def.Channels), Status: in.Status.or(was.Status, def.Status),
		Calls: in.Calls.or(was.Calls, def.Calls), ViewOnce: in.ViewOnce.or(was.ViewOnce, def.ViewOnce),
		History: in.History.or(was.History, def.History), Media: in.Media.or(was.Media, def.Media),
	}
}

// listed names the values that are allowed, for an error.
func listed[T ~string](values []T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return strings.Join(words, ", ")
}
