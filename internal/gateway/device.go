package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/profiles"
)

// List lists the devices that the caller may use, newest first.
func (g Devices) List(ctx context.Context, c access.Caller, p paging.Page) (paging.List[postern.Device], error) {
	if err := c.Permit(postern.DevicesRead); err != nil {
		return paging.List[postern.Device]{}, err
	}
	sp, err := g.open(c.Workspace(), "devices", p)
	if err != nil {
		return paging.List[postern.Device]{}, err
	}
	rows, err := g.db.Devices.List(ctx, c.Workspace(), c.Key.Devices, sp)
	if err == nil && len(rows) > 0 {
		rows, err = g.withQueues(ctx, rows, "")
	}
	return paging.Cut(
		g.cursors, c.Workspace(), "devices", rows, sp.Limit, func(d postern.Device) string { return string(d.ID) },
	), err
}

// withQueues returns devices of a workspace, or the one with an id, with the number of messages that wait.
func (g Devices) withQueues(
	ctx context.Context, list []postern.Device, id postern.DeviceID,
) ([]postern.Device, error) {
	queued, err := g.db.Devices.Queued(ctx, list[0].WorkspaceID, id)
	list = slices.Clone(list) // the store may keep the original
	for i := range list {
		list[i].Queued = new(queued[list[i].ID])
	}
	return list, err
}

// counted returns a device with the number of messages that wait.
func (g Devices) counted(ctx context.Context, d postern.Device, err error) (postern.Device, error) {
	if err != nil {
		return d, err
	}
	list, err := g.withQueues(ctx, []postern.Device{d}, d.ID)
	return list[0], err
}

// ListForOperator lists the newest devices of a workspace to operators, at most 1,000;
// [Workspaces.Devices] lists all of them, page by page.
func (g Devices) ListForOperator(
	ctx context.Context, by access.Actor, ws postern.WorkspaceID,
) ([]postern.Device, error) {
	if err := by.NeedsOperator(); err != nil {
		return nil, err
	}
	if _, err := g.db.Workspaces.Get(ctx, ws); err != nil {
		return nil, err
	}
	return g.db.Devices.List(ctx, ws, nil, store.Page{Limit: maxListed})
}

// NewDevice describes a device to create.
type NewDevice struct {
	Name     string
	Metadata map[string]string
}

// Create creates a device without a link. It uses none of the plan's device slots until a
// link attempt is opened. A key that is limited to devices is refused.
func (g Devices) Create(
	ctx context.Context, c access.Caller, in NewDevice, idem *Idempotency,
) (Created[postern.Device], error) {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return Created[postern.Device]{}, err
	}
	if c.Key.Devices != nil {
		return Created[postern.Device]{}, postern.Errorf(
			postern.ResourceNotAllowed,
			"this key is limited to certain devices and cannot create one; use a key without a device list",
		)
	}
	return create(ctx, g.core, c.Workspace(), idem, func() (postern.Device, func(*store.Once) error, error) {
		if err := errors.Join(postern.CheckName("/name", in.Name), checkMetadata(in.Metadata)); err != nil {
			return postern.Device{}, nil, err
		}
		d := postern.Device{
			ID: postern.NewDeviceID(), WorkspaceID: c.Workspace(), Name: in.Name, Mode: g.mode(),
			Status: postern.Unlinked, NewChats: postern.NewChats{Allowed: true},
			Desired: postern.WantIdle, Metadata: orEmpty(in.Metadata), Receive: postern.DefaultReceive(),
			CreatedAt: g.time(), Queued: new(0),
		}
		return d, func(once *store.Once) error {
			return g.db.Devices.Create(ctx, d, once, did(c, d.CreatedAt, "device.created", string(d.ID), d.Name)...)
		}, nil
	})
}

// Get finds one device.
func (g Devices) Get(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Device, error) {
	if err := c.Permit(postern.DevicesRead); err != nil {
		return postern.Device{}, err
	}
	d, err := g.get(ctx, c, id)
	return g.counted(ctx, d, err)
}

// get finds a device that the caller may use.
func (g Devices) get(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Device, error) {
	d, err := g.db.Devices.Get(ctx, c.Workspace(), id)
	if err != nil {
		return postern.Device{}, err
	}
	return d, c.Allow(id)
}

// Delete hides a device at once. The session engine then unlinks it and removes its keys
// and messages. Delete waits for the network's answer to the unlink, at most
// Options.GoodbyeWait; a later answer is not lost. Members are refused; see
// [Devices.DeleteByPassword].
func (g Devices) Delete(ctx context.Context, c access.Caller, id postern.DeviceID) error {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return err
	}
	if c.Member.UserID != "" {
		return postern.Invalid("/password", "enter your password to delete the device")
	}
	d, err := g.get(ctx, c, id)
	if err != nil {
		return err
	}
	changes := g.db.Listen(store.DeviceChanged, string(id))
	defer changes.Close()
	if err := g.requestDelete(ctx, c, d); err != nil {
		return err
	}
	g.awaitGoodbye(ctx, id, changes)
	return nil
}

// DeleteByPassword is Delete for a member who has entered the password again. It does not
// wait for the network.
func (g Devices) DeleteByPassword(ctx context.Context, c access.Caller, id postern.DeviceID, password string) error {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return err
	}
	d, err := g.get(ctx, c, id)
	if err != nil {
		return err
	}
	if err := g.confirm(ctx, c, password); err != nil {
		return err
	}
	return g.requestDelete(ctx, c, d)
}

func (g Devices) requestDelete(ctx context.Context, c access.Caller, d postern.Device) error {
	event, err := deletion(d)
	if err != nil {
		return err
	}
	now := g.time()
	return g.db.Devices.RequestDelete(
		ctx,
		c.Workspace(),
		d.ID,
		event,
		now,
		did(c, now, "device.deleted", string(d.ID), d.Name)...)
}

// deletion returns the event that tells that a device lost its link, or its open link attempt, because it was deleted;
// nil if the device has neither.
func deletion(d postern.Device) (*postern.Event, error) {
	if !d.Status.HoldsSlot() {
		return nil, nil
	}
	kind := postern.DeviceUnlinked
	if d.Status == postern.Linking {
		kind = postern.DeviceLinking
	}
	d.Status, d.StatusReason = postern.Unlinked, "deleted"
	e, err := d.Event(kind)
	return &e, err
}

// awaitGoodbye waits until the session engine has removed the device's account.
func (g Devices) awaitGoodbye(ctx context.Context, id postern.DeviceID, changes *store.Listener) {
	ctx, cancel := context.WithTimeout(ctx, g.goodbye)
	defer cancel()
	for {
		d, err := g.db.Devices.ForEngine(ctx, id)
		if err != nil || d.Account == "" {
			return
		}
		select {
		case <-changes.C():
			changes.Take()
		case <-ctx.Done():
			return
		}
	}
}

// Unlink removes a device's link and keeps the device. The session engine tells the
// network as soon as it can.
func (g Devices) Unlink(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Device, error) {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return postern.Device{}, err
	}
	d, err := g.get(ctx, c, id)
	if err != nil {
		return d, err
	}
	if !d.Status.HoldsSlot() || d.Status == postern.Linking {
		return d, postern.Errorf(postern.NotLinked, "the device is %s; there is no link to remove", d.Status)
	}
	d.Status, d.StatusReason = postern.Unlinked, "unlinked"
	e, err := d.Event(postern.DeviceUnlinked)
	if err != nil {
		return d, err
	}
	now := g.time()
	err = g.db.Devices.RequestUnlink(ctx, store.SetDeviceState{
		WorkspaceID: d.WorkspaceID, DeviceID: id, Status: d.Status, Reason: string(d.StatusReason),
		Desired: postern.WantUnlink, FailQueued: true, From: append(live(), postern.Paused), At: now, Event: &e,
	}, did(c, now, "device.unlinked", string(id), d.Name)...)
	return g.counted(ctx, d, err)
}

// pausedByUser is the status reason of a device or endpoint that only its owner can
// resume.
const pausedByUser = "user"

// Pause closes a device's connection until it is resumed. The device keeps its link and
// its slot, and queued messages wait. Pausing twice changes nothing. A device that was
// paused because of the plan stays paused until its owner resumes it.
func (g Devices) Pause(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Device, error) {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return postern.Device{}, err
	}
	d, err := g.get(ctx, c, id)
	if err != nil {
		return postern.Device{}, err
	}
	now := g.time()
	pause := func(d *postern.Device, _ bool) (postern.EventType, error) {
		if err := linked(*d, "pause"); err != nil {
			return "", err
		}
		event := postern.DevicePaused
		if d.Status == postern.Paused {
			event = ""
		}
		d.Status, d.StatusReason, d.Desired = postern.Paused, pausedByUser, postern.WantIdle
		return event, nil
	}
	d, err = g.db.Devices.Decide(ctx, c.Workspace(), id, now, pause, did(c, now, "device.paused", string(id), d.Name)...)
	return g.counted(ctx, d, err)
}

// Resume lets a paused device connect again, unless the plan's slots belong to devices that
// were linked earlier. A device in conflict takes the session back at once, a quarantined one is
// forgiven, and one that is disconnected tries to connect at once. Any other device does not change.
func (g Devices) Resume(ctx context.Context, c access.Caller, id postern.DeviceID) (postern.Device, error) {
	if err := c.Permit(postern.DevicesWrite); err != nil {
		return postern.Device{}, err
	}
	d, err := g.get(ctx, c, id)
	if err != nil {
		return postern.Device{}, err
	}
	now := g.time()
	d, err = g.db.Devices.Decide(
		ctx,
		c.Workspace(),
		id,
		now,
		func(d *postern.Device, slot bool) (postern.EventType, error) {
			if err := linked(*d, "resume"); err != nil || !Resumes(*d) {
				return "", err
			}
			if !slot && d.Status == postern.Paused {
				return "", postern.Errorf(
					postern.DeviceLimit,
					"the plan's slots belong to devices that were linked earlier; unlink one or change the plan",
				)
			}
			d.Status, d.StatusReason, d.Desired = postern.Connecting, "", postern.WantConnect
			return "", nil
		},
		did(c, now, "device.resumed", string(id), d.Name)...)
	return g.counted(ctx, d, err)
}

// Quarantined is the status reason of a device that is not connected, because the server
// crashed too often while it processed what the network sent to the device.
const Quarantined = "quarantined"

// Resumes reports whether [Devices.Resume] changes a device.
func Resumes(d postern.Device) bool {
	return d.Status == postern.Paused || d.Status == postern.Conflict || d.Status == postern.Disconnected
}

// linked refuses a device that has no link.
func linked(d postern.Device, what string) error {
	if !d.Status.HoldsSlot() || d.Status == postern.Linking {
		return postern.Errorf(
			postern.NotLinked, "the device is %s; link it before you %s it", d.Status, what,
		)
	}
	return nil
}

// Health is one change of a device's state, as its event recorded it.
type Health struct {
	Type   postern.EventType
	At     postern.Time
	Status postern.Status // of the device since then; "" if the event was removed
	Reason string         // "" if the event has none
	Number string         // the phone number of the account at that time
}

// Health lists the changes of a device's state, newest first, as far back as events are
// retained. It needs events:read too, because it reads the event log.
func (g Devices) Health(
	ctx context.Context, c access.Caller, id postern.DeviceID, p paging.Page,
) (paging.List[Health], error) {
	if err := c.Permit(postern.DevicesRead, postern.EventsRead); err != nil {
		return paging.List[Health]{}, err
	}
	if _, err := g.get(ctx, c, id); err != nil {
		return paging.List[Health]{}, err
	}
	kind := "health " + string(id)
	sp, err := g.open(c.Workspace(), kind, p)
	if err != nil {
		return paging.List[Health]{}, err
	}
	before, err := g.cursors.Number(c.Workspace(), kind, p.Cursor)
	if err != nil {
		return paging.List[Health]{}, err
	}
	rows, err := g.db.Events.DeviceHealth(ctx, c.Workspace(), id, before, sp.Limit)
	if err != nil {
		return paging.List[Health]{}, err
	}
	found := paging.Cut(
		g.cursors,
		c.Workspace(),
		kind,
		rows,
		sp.Limit,
		func(e store.LogEntry) string { return strconv.FormatInt(e.Position, 10) },
	)
	list := paging.List[Health]{Next: found.Next}
	for _, e := range found.Data {
		list.Data = append(list.Data, healthIn(e))
	}
	return list, nil
}

// healthIn reads an event's body, which is empty when it was removed with its device.
func healthIn(e store.LogEntry) Health {
	var body struct {
		Device struct {
			Status       postern.Status `json:"status"`
			StatusReason string         `json:"statusReason"`
			PhoneNumber  string         `json:"phoneNumber"`
		} `json:"device"`
	}
	h := Health{Type: e.Type, At: e.At}
	if json.Unmarshal(e.Body, &body) == nil {
		h.Status, h.Reason, h.Number = body.Device.Status, body.Device.StatusReason, body.Device.PhoneNumber
	}
	return h
}

// The requests about the profile of an account that the live session of a device carries out.
const (
	GetProfile    = "profile.get"
	ChangeProfile = "profile.change"
)

// ProfileInput is what these requests need. Nil is left as it is.
type ProfileInput struct {
	PictureID  string  `json:"pictureId,omitempty"` // of the picture that is known
	Name       *string `json:"name,omitempty"`
	About      *string `json:"about,omitempty"`
	NewPicture bool    `json:"newPicture,omitempty"`
	Picture    []byte  `json:"picture,omitempty"` // JPEG; nil removes it
}

// ShownProfile is the profile of an account as the live session of a device has read it.
type ShownProfile struct {
	Name    string  `json:"name"`
	About   string  `json:"about"`
	Picture Picture `json:"picture"`
}

// ProfileChange is a change of a profile. What is not given stays.
type ProfileChange struct {
	Name  *string
	About *string
	Media Change[NewMedia] // null removes the picture
}

// Profile asks the network what others see of the account.
func (g Devices) Profile(ctx context.Context, c access.Caller, id postern.DeviceID) (p postern.Profile, err error) {
	if err := c.Permit(postern.DevicesRead, postern.MessagesRead); err != nil {
		return p, err
	}
	if _, err := g.get(ctx, c, id); err != nil {
		return p, err
	}
	return g.askProfile(ctx, c, id, GetProfile, ProfileInput{})
}

// ChangeProfile changes what others see of the account, and returns it.
func (g Devices) ChangeProfile(
	ctx context.Context, c access.Caller, id postern.DeviceID, change ProfileChange,
) (p postern.Profile, err error) {
	if err := c.Permit(postern.DevicesWrite, postern.MessagesRead); err != nil {
		return p, err
	}
	if _, err := g.get(ctx, c, id); err != nil {
		return p, err
	}
	if err := postern.CheckProfile(change.Name, change.About); err != nil {
		return p, err
	}
	in := ProfileInput{Name: change.Name, About: change.About, NewPicture: change.Media.Given}
	if change.Media.Value != nil {
		if in.Picture, err = g.avatar(ctx, c, change.Media.Value); err != nil {
			return p, err
		}
	}
	return g.askProfile(ctx, c, id, ChangeProfile, in)
}

// askProfile hands a request about the profile to the live session of a device, and waits for the profile. Only another
// picture than the one that is known is fetched.
func (g Devices) askProfile(
	ctx context.Context, c access.Caller, id postern.DeviceID, kind string, in ProfileInput,
) (p postern.Profile, err error) {
	known, media, err := g.profiles().Picture(ctx, c.Workspace(), id)
	if err != nil {
		return p, err
	}
	known, file, err := g.keptPicture(ctx, c, known, media)
	if err != nil {
		return p, err
	}
	in.PictureID = known
	got, err := askOnce[ShownProfile](ctx, g.core, c, id, nil, kind, func() (ProfileInput, error) { return in, nil })
	if err != nil {
		return p, err
	}
	shown := got.Value
	p = postern.Profile{Name: postern.Maybe(shown.Name), About: shown.About}
	switch {
	case shown.Picture.ID == "":
		return p, nil
	case len(shown.Picture.Bytes) > 0:
		if file, err = g.storePicture(ctx, c, id, "profile.jpg", shown.Picture); err == nil {
			err = g.profiles().SetPicture(ctx, c.Workspace(), id, shown.Picture.ID, file.ID)
		}
	}
	p.Media = &file
	return p, err
}

func (g *core) profiles() profiles.Table { return profiles.Of(g.db) }

// SetDisplayName records the name of an account.
func (g Sessions) SetDisplayName(ctx context.Context, d postern.Device, name string) error {
	return g.profiles().Rename(ctx, d.WorkspaceID, d.ID, name)
}
