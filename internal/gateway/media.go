package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"time"

	"postern/internal/access"
	"postern/internal/media/blob"
	"postern/internal/media/library"
	"postern/internal/postern"
	"postern/internal/store"
)

// Upload keeps a file of at most [postern.MaxMedia] bytes. Its type is found in its bytes. It
// is removed a month after the last message with it has expired. The hash of idem is not used:
// the bytes and the name of the file identify the request.
func (g Media) Upload(
	ctx context.Context, c access.Caller, r io.Reader, filename string, idem *Idempotency,
) (Created[postern.Media], error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return Created[postern.Media]{}, err
	}
	if len(filename) > postern.MaxFilename {
		return Created[postern.Media]{}, postern.Invalid("/query/filename",
			"the name of a file may have at most %d bytes", postern.MaxFilename)
	}
	room, err := g.roomFor(ctx, c, idem)
	if err != nil {
		return Created[postern.Media]{}, err
	}
	var made Created[postern.Media]
	_, err = g.take(ctx, c, r, filename, room, func(row store.MediaRow) (err error) {
		made, err = g.addOnce(ctx, row, idem)
		if err == nil && made.Replayed {
			err = errReplayed
		}
		return err
	})
	if errors.Is(err, errReplayed) {
		err = nil
	}
	return made, err
}

// errReplayed means that a file was not added, because an earlier request has added it.
var errReplayed = errors.New("an earlier request has added the file")

// roomFor returns the room for an upload. A request that was answered before needs none.
func (g *core) roomFor(ctx context.Context, c access.Caller, idem *Idempotency) (postern.Storage, error) {
	room, err := g.db.Blobs.Storage(ctx, c.Workspace())
	if err != nil || idem == nil {
		return room, err
	}
	_, _, answered, err := g.db.Idempotency.Answered(ctx, idem.once(c.Workspace(), g.time()))
	if answered {
		room.Limit = math.MaxInt64
	}
	return room, err
}

func (g *core) addOnce(
	ctx context.Context, row store.MediaRow, idem *Idempotency,
) (Created[postern.Media], error) {
	if idem != nil {
		idem.Hash = sha256.Sum256([]byte(row.SHA256 + row.Filename))
	}
	return create(ctx, g, row.WorkspaceID, idem, func() (postern.Media, func(*store.Once) error, error) {
		return row.Media, func(once *store.Once) error { return g.db.Media.Add(ctx, row, once) }, nil
	})
}

// take stores the bytes of a file, and calls add with the row to add.
func (g *core) take(
	ctx context.Context, c access.Caller, r io.Reader, filename string, room postern.Storage,
	add func(store.MediaRow) error,
) (row store.MediaRow, err error) {
	if g.library == nil {
		return row, postern.Errorf(postern.Unavailable, "this server takes no files")
	}
	err = g.library.Take(ctx, c.Workspace(), r, room, func(m library.Taken) error {
		m.ID, m.Filename = postern.NewMediaID(), filename
		now := g.db.Now()
		row = store.MediaRow{
			Media: m.Media, WorkspaceID: c.Workspace(), CreatedAt: now, UsedAt: now, Thumbnail: m.Thumbnail,
		}
		return add(row)
	})
	return row, err
}

// Get returns a file. If fetching a received one has failed and may succeed now, it is tried
// again, and the file is pending.
func (g Media) Get(ctx context.Context, c access.Caller, id postern.MediaID) (postern.Media, error) {
	row, err := g.get(ctx, c, id)
	if err == nil {
		err = g.wanted(ctx, row)
	}
	if err != nil || row.Status != postern.MediaFailed || !row.Recoverable {
		return row.Media, err
	}
	err = g.db.Media.Again(ctx, row, g.db.Now())
	row.Status, row.Recoverable = postern.MediaPending, false
	return row.Media, err
}

// wanted begins to fetch a file that is fetched when somebody asks for it.
func (g *core) wanted(ctx context.Context, row store.MediaRow) error {
	if row.Status != postern.MediaPending || !row.IsAsleep(g.time()) {
		return nil
	}
	return g.db.Media.Awake(ctx, row, g.time())
}

func (g Media) get(ctx context.Context, c access.Caller, id postern.MediaID) (store.MediaRow, error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return store.MediaRow{}, err
	}
	return g.find(ctx, c, id)
}

// find returns a file of a device that the caller may use, or an upload.
func (g *core) find(ctx context.Context, c access.Caller, id postern.MediaID) (store.MediaRow, error) {
	row, err := g.db.Media.Get(ctx, c.Workspace(), id)
	if err == nil && row.DeviceID != "" && !c.Key.Allows(row.DeviceID) {
		err = postern.Errorf(postern.ResourceNotAllowed, "this key may not use that file")
	}
	return row, err
}

// Open reads a file, from any place, for as long as ctx lasts. The caller closes it.
func (g Media) Open(ctx context.Context, c access.Caller, id postern.MediaID) (postern.Media, *blob.Reader, error) {
	row, err := g.get(ctx, c, id)
	if err != nil {
		return postern.Media{}, nil, err
	}
	return g.open(ctx, row)
}

// Thumbnail returns a small JPEG of a video: the one that its sender attached, or that was made to
// send it. It is nil if the video has no thumbnail or is not ready.
func (g Media) Thumbnail(ctx context.Context, c access.Caller, id postern.MediaID) ([]byte, error) {
	row, err := g.get(ctx, c, id)
	if err != nil || row.Status != postern.MediaReady {
		return nil, err
	}
	if b := g.thumbnailIn(id, row.Source); b != nil {
		return b, nil
	}
	upload, err := g.db.Media.VideoUpload(ctx, c.Workspace(), id)
	return g.thumbnailIn(id, upload), err
}

// thumbnailIn returns the thumbnail in what is stored of a file on the network. That is JSON, of
// which this is the only member that all networks have in common.
func (g Media) thumbnailIn(id postern.MediaID, sealed []byte) []byte {
	b, err := g.box.Open(sealed, id.SourcePlace())
	if err != nil {
		return nil // nothing is stored, or the server's secret key was replaced
	}
	var found struct {
		Thumbnail []byte `json:"thumbnail"`
	}
	if json.Unmarshal(b, &found) != nil {
		return nil // the source of a file that is fetched from a URL is not JSON
	}
	return found.Thumbnail
}

func (g Media) open(ctx context.Context, row store.MediaRow) (postern.Media, *blob.Reader, error) {
	if err := g.wanted(ctx, row); err != nil {
		return row.Media, nil, err
	}
	switch {
	case row.Status == postern.MediaPending:
		return row.Media, nil, &postern.Error{
			Reason: postern.NotFound, RetryAfter: mediaWait,
			Detail: "the file is being fetched; try again, or wait for media.ready",
		}
	case row.Status == postern.MediaFailed:
		return row.Media, nil, postern.Errorf(postern.NotFound, "the file could not be fetched")
	case row.Status == postern.MediaExpired || g.library == nil:
		return row.Media, nil, postern.Errorf(postern.NotFound, "the file was removed")
	}
	r, err := g.library.Open(ctx, row.WorkspaceID, row.Media)
	return row.Media, r, err
}

// Delete removes a file. Messages show it as expired. Its bytes are removed at once, unless another
// file has the same ones, so that there is room for others.
func (g Media) Delete(ctx context.Context, c access.Caller, id postern.MediaID) error {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return err
	}
	row, err := g.find(ctx, c, id)
	if err != nil || row.Status == postern.MediaExpired {
		return err
	}
	return g.remove(ctx, row)
}

// remove removes a file, and its bytes unless another file has them.
func (g *core) remove(ctx context.Context, row store.MediaRow) error {
	if err := g.db.Media.Expire(ctx, row); err != nil || row.Status != postern.MediaReady || g.library == nil {
		return err
	}
	if err := g.library.Drop(ctx, row.WorkspaceID, row.SHA256); err != nil {
		g.log.WarnContext(ctx, "the bytes of a file are removed later", "media", row.ID, "error", err)
	}
	return nil
}

// Link lets its holder read a file until it expires.
type Link struct {
	Workspace postern.WorkspaceID
	ID        postern.MediaID
	Expires   int64 // Unix time
	Signature string
}

// Link returns a link to a file that is valid for an hour.
func (g Media) Link(c access.Caller, id postern.MediaID) (Link, error) {
	if err := c.Permit(postern.MessagesRead); err != nil {
		return Link{}, err
	}
	l := Link{Workspace: c.Workspace(), ID: id, Expires: g.now().Add(linkLife).Unix()}
	l.Signature = hex.EncodeToString(g.box.MAC(mediaLink, l.text()))
	return l, nil
}

const mediaLink = "media link" // what the signature is for

// text is what is signed.
func (l Link) text() string {
	return string(l.Workspace) + " " + string(l.ID) + " " + strconv.FormatInt(l.Expires, 10)
}

func (g Media) isSigned(l Link) bool {
	code, err := hex.DecodeString(l.Signature)
	return err == nil && g.box.Verify(code, mediaLink, l.text())
}

// OpenLink reads the file of a link. The error is NotFound if the link is not valid.
func (g Media) OpenLink(ctx context.Context, l Link) (postern.Media, *blob.Reader, error) {
	if !g.isSigned(l) || g.now().After(time.Unix(l.Expires, 0)) {
		return postern.Media{}, nil, postern.Errorf(postern.NotFound,
			"the link is not valid, or has expired; ask for a new one")
	}
	row, err := g.db.Media.Get(ctx, l.Workspace, l.ID)
	if err != nil {
		return postern.Media{}, nil, err
	}
	return g.open(ctx, row)
}

// NewMedia is the file of a new message: exactly one of ID, URL and Data.
type NewMedia struct {
	ID       postern.MediaID
	URL      string // fetched after the message was accepted
	Data     []byte
	MIMEType string // of the file at the URL, if it is known
	Filename string // "" leaves the name that the file has
}

// attach gives a new message its file. It returns the row of a file that is fetched later, and
// nil for others.
func (g *core) attach(ctx context.Context, c access.Caller, in NewMessage) (NewMessage, *store.MediaRow, error) {
	n := in.Media
	if n == nil {
		return in, nil, nil
	}
	row, err := g.file(ctx, c, in)
	if err != nil {
		return in, nil, err
	}
	file := row.Media
	file.Filename = cmp.Or(n.Filename, file.Filename)
	if in.Content.Media = &file; file.Status == postern.MediaReady {
		err = g.library.Sendable(in.Content.Kind, file.MIMEType)
	}
	if err == nil {
		in.Content, err = in.Content.Checked()
	}
	if n.URL == "" {
		return in, nil, g.withdraw(ctx, n, row, err)
	}
	return in, &row, err
}

// withdraw removes the file that a message brought along if the message was refused, and returns
// the refusal. If it is unknown whether the message was accepted, the file stays.
func (g *core) withdraw(ctx context.Context, n *NewMedia, row store.MediaRow, refusal error) error {
	reason := postern.ReasonOf(refusal)
	if refusal == nil || n.Data == nil || reason == postern.Internal || reason == postern.Unavailable {
		return refusal
	}
	if err := g.remove(ctx, row); err != nil {
		g.log.WarnContext(ctx, "the file of a refused message is removed later", "media", row.ID, "error", err)
	}
	return refusal
}

// file returns the row of the file of a new message.
func (g *core) file(ctx context.Context, c access.Caller, in NewMessage) (store.MediaRow, error) {
	switch n := in.Media; {
	case n.URL != "":
		return g.later(ctx, c, in)
	case n.Data != nil:
		room, err := g.db.Blobs.Storage(ctx, c.Workspace())
		if err != nil {
			return store.MediaRow{}, err
		}
		return g.take(ctx, c, bytes.NewReader(n.Data), n.Filename, room, func(row store.MediaRow) error {
			return g.db.Media.Add(ctx, row, nil)
		})
	default:
		return g.existing(ctx, c, n.ID)
	}
}

// existing returns a file that was uploaded or received.
func (g *core) existing(ctx context.Context, c access.Caller, id postern.MediaID) (store.MediaRow, error) {
	if g.library == nil {
		return store.MediaRow{}, postern.Errorf(postern.Unavailable, "this server takes no files")
	}
	row, err := g.find(ctx, c, id)
	switch {
	case postern.ReasonOf(err) == postern.NotFound:
		err = postern.Invalid("/media/id", "there is no such file; upload it first: POST /v1/media")
	case err == nil && (row.Status == postern.MediaExpired || row.Status == postern.MediaFailed):
		err = postern.Invalid("/media/id", "the file is %s; upload it again", row.Status)
	case err == nil:
		err = g.wanted(ctx, row)
	}
	return row, err
}

// later returns the row of a file at a URL. It refuses one if there is room for no byte of it.
func (g *core) later(ctx context.Context, c access.Caller, in NewMessage) (store.MediaRow, error) {
	if g.library == nil {
		return store.MediaRow{}, postern.Errorf(postern.Unavailable, "this server takes no files")
	}
	if err := g.checkURL(in.Media.URL); err != nil {
		return store.MediaRow{}, postern.Invalid("/media/url", "%v", err)
	}
	room, err := g.db.Blobs.Storage(ctx, c.Workspace())
	if err = cmp.Or(err, room.Check(1)); err != nil {
		return store.MediaRow{}, err
	}
	now := g.db.Now()
	id := postern.NewMediaID()
	return store.MediaRow{
		Media: postern.Media{
			ID: id, MIMEType: in.Media.MIMEType, Filename: in.Media.Filename, Status: postern.MediaPending,
		},
		WorkspaceID: c.Workspace(), DeviceID: in.DeviceID, Source: g.box.Seal([]byte(in.Media.URL), id.SourcePlace()),
		NextAt: now, CreatedAt: now,
	}, nil
}
