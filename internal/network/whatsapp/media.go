package whatsapp

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"postern/internal/network"
	"postern/internal/network/whatsapp/content"
	"postern/internal/network/whatsapp/history"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waWeb"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// maxInMemory is how many bytes a file may have that is encrypted in memory, which costs about three
// times its size. It covers most pictures, and saves writing and reading the encrypted copy.
const maxInMemory = 2 << 20

// Upload encrypts a file and sends it to the vendor. A large one is streamed through a temporary file:
// the vendor wants to know the hash of the encrypted file first.
func (s *session) Upload(ctx context.Context, f network.File) (network.Ref, error) {
	class := content.ClassOf(f.Kind)
	if class == "" {
		return nil, &network.Rejected{Code: postern.MediaUnusable, Detail: "a message of this kind carries no file"}
	}
	var ref network.Ref
	err := s.transfer(ctx, func(ctx context.Context, c *conn) (err error) {
		ref, err = c.upload(ctx, class, f)
		return err
	})
	return ref, err
}

// transfer calls do, with a context that ends with the connection at the latest.
func (s *session) transfer(ctx context.Context, do func(context.Context, *conn) error) error {
	c := s.liveConn()
	if c == nil || !c.calls.Enter() {
		return network.ErrNotConnected
	}
	defer c.calls.Leave()
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	defer context.AfterFunc(c.cli.BackgroundEventCtx, cancel)() //nolint:contextcheck // the connection's
	if err := c.findHosts(ctx); err != nil {
		return err
	}
	return do(ctx, c)
}

// findHosts makes whatsmeow ask for the vendor's hosts of files and for the permission to
// upload, unless it knows them. It would keep a permission that is over or was refused, and
// panic without a host.
//
// The query does not end with ctx: see [conn.unlink].
func (c *conn) findHosts(ctx context.Context) error {
	refresh := c.cli.DangerousInternals().RefreshMediaConn //nolint:staticcheck // there is no other way
	ctx = context.WithoutCancel(ctx)
	found, err := refresh(ctx, c.hostsRefused.Swap(false))
	if err == nil && found.AuthTTL > 0 && time.Since(found.FetchedAt) > time.Duration(found.AuthTTL)*time.Second {
		found, err = refresh(ctx, true)
	}
	switch {
	case err != nil:
		return unsent("find hosts of files", err)
	case len(found.Hosts) == 0:
		c.hostsRefused.Store(true)
		return errNoHosts
	}
	return nil
}

var errNoHosts = errors.New("the vendor named no host of files")

func (c *conn) upload(ctx context.Context, class content.Class, f network.File) (network.Ref, error) {
	send := c.uploadFromDisk
	switch {
	case f.Posted:
		send = c.uploadPlain
	case f.Size <= maxInMemory:
		send = c.uploadFromMemory
	}
	resp, err := send(ctx, mediaTypes[class], f)
	if err == nil && !content.IsPath(resp.DirectPath) {
		err = c.uploaded(errNoPath)
	}
	if err != nil {
		return nil, notUploaded(err)
	}
	if f.Posted {
		return content.File{
			Class: class, Path: resp.DirectPath, URL: resp.URL, SHA256: resp.FileSHA256, Size: f.Size, Plain: true,
			Handle: resp.Handle,
		}.Ref(), nil
	}
	return content.File{
		Class: class, Path: resp.DirectPath, URL: resp.URL, Key: resp.MediaKey, SHA256: resp.FileSHA256,
		EncSHA256: resp.FileEncSHA256, Size: int64(resp.FileLength), KeyTime: time.Now().Unix(), //nolint:gosec // of a file
	}.Ref(), nil
}

// uploaded makes the next transfer ask for hosts again after an error, of which the permission to upload
// may be the reason.
func (c *conn) uploaded(err error) error {
	if err != nil {
		c.hostsRefused.Store(true)
	}
	return err
}

func (c *conn) uploadFromMemory(ctx context.Context, as whatsmeow.MediaType, f network.File) (
	r whatsmeow.UploadResponse, err error,
) {
	b := make([]byte, f.Size)
	if _, err := io.ReadFull(io.NewSectionReader(f.Body, 0, f.Size), b); err != nil {
		return r, err
	}
	r, err = c.cli.Upload(ctx, b, as)
	return r, c.uploaded(err)
}

func (c *conn) uploadFromDisk(ctx context.Context, as whatsmeow.MediaType, f network.File) (
	r whatsmeow.UploadResponse, err error,
) {
	sealed, err := os.CreateTemp(f.Scratch, "upload-*")
	if err != nil {
		return r, err
	}
	defer func() {
		_ = sealed.Close() // whatsmeow may have closed it
		_ = os.Remove(sealed.Name())
	}()
	r, err = c.cli.UploadReader(ctx, io.NewSectionReader(f.Body, 0, f.Size), sealed, as)
	return r, c.uploaded(err)
}

// uploadPlain uploads a file as it is.
func (c *conn) uploadPlain(ctx context.Context, as whatsmeow.MediaType, f network.File) (
	r whatsmeow.UploadResponse, err error,
) {
	r, err = c.cli.UploadNewsletterReader(ctx, io.NewSectionReader(f.Body, 0, f.Size), as)
	return r, c.uploaded(err)
}

var errNoPath = errors.New("the vendor did not say where the file is")

// mediaTypes are whatsmeow's names of the classes of files.
//
//nolint:gochecknoglobals // a table
var mediaTypes = map[content.Class]whatsmeow.MediaType{
	content.ClassImage: whatsmeow.MediaImage, content.ClassVideo: whatsmeow.MediaVideo,
	content.ClassAudio: whatsmeow.MediaAudio, content.ClassDocument: whatsmeow.MediaDocument,
}

// statusTooLarge begins whatsmeow's error if the vendor does not take files of a size.
const statusTooLarge = "upload failed with status code 413"

// notUploaded classifies the error of an upload. Only the size of a file is refused for good.
func notUploaded(err error) error {
	if err.Error() == statusTooLarge {
		return &network.Rejected{Code: postern.MediaUnusable, Detail: "the network does not take a file of this size"}
	}
	return redact("upload", err)
}

// Download writes the file of a received message to dst, and leaves dst at its start.
func (s *session) Download(ctx context.Context, ref network.Ref, dst *os.File) error {
	f, ok := content.ParseRef(ref)
	switch {
	case !ok:
		return network.ErrMediaUseless
	case f.Size > postern.MaxMedia:
		return network.ErrMediaTooLarge
	}
	return s.transfer(ctx, func(ctx context.Context, c *conn) error {
		to, kind := &sink{File: dst, limit: sealedSize(f)}, ""
		if f.Plain {
			kind = "newsletter-" + string(f.Class)
		}
		err := c.cli.DownloadMediaWithPathToFile(
			ctx, withQuery(f.Path), f.EncSHA256, f.SHA256, f.Key, mediaTypes[f.Class], kind, false, to,
		)
		if err == nil {
			return verify(dst, f)
		}
		return notDownloaded(err, to, f)
	})
}

// withQuery returns a path to which whatsmeow can append its parameters.
func withQuery(path string) string {
	if !strings.Contains(path, "?") {
		path += "?"
	}
	return path
}

// macSize is how many bytes follow an encrypted file.
const macSize = 10

// sealedSize returns the most bytes that the vendor may send for a file.
func sealedSize(f content.File) int64 {
	size := f.Size
	if size == 0 {
		size = postern.MaxMedia
	}
	return (size/aes.BlockSize+1)*aes.BlockSize + macSize
}

// sink is the file to which whatsmeow downloads. whatsmeow downloads from one host after
// another, several times from each, and neither bounds what a host sends nor begins again at
// the start of the file for each host. It also takes the length that a host announces, and
// reserves it on the disk, if it knows the file to be one.
type sink struct {
	whatsmeow.File

	limit int64 // bytes
	over  bool  // a host has sent more
	whole bool  // the hash of what a host has sent was right, and whatsmeow went on
}

// ReadFrom writes what one host sends.
func (s *sink) ReadFrom(r io.Reader) (int64, error) {
	s.whole = false
	if err := s.File.Truncate(0); err != nil {
		return 0, err
	}
	if _, err := s.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := io.Copy(s.File, io.LimitReader(r, s.limit+1))
	if err == nil && n > s.limit {
		s.over, err = true, errTooMuch
	}
	return n, err
}

var errTooMuch = errors.New("the vendor sent more than the file can have")

// Truncate cuts off what follows the encrypted file, and later its padding.
func (s *sink) Truncate(size int64) error {
	s.whole = true
	return s.File.Truncate(size)
}

// notDownloaded classifies the error of a download. After some failures of the network
// whatsmeow finds that the file is damaged, although it has not seen all of it.
func notDownloaded(err error, to *sink, f content.File) error {
	switch {
	case to.over && f.Size == 0:
		return network.ErrMediaTooLarge
	case to.over, errors.Is(err, whatsmeow.ErrTooShortFile), errors.Is(err, whatsmeow.ErrInvalidMediaEncSHA256),
		errors.Is(err, whatsmeow.ErrMediaDownloadFailedWith403), errors.Is(err, whatsmeow.ErrMediaDownloadFailedWith404),
		errors.Is(err, whatsmeow.ErrMediaDownloadFailedWith410), errors.Is(err, whatsmeow.ErrInvalidUnencryptedMediaSHA256):
		return network.ErrMediaGone
	case to.whole && !isErr[*fs.PathError](err): // what the sender says of the file is contradictory
		return network.ErrMediaGone
	}
	return redact("download", err)
}

// verify checks a file against its hash: there are failures after which whatsmeow reports
// success.
func verify(dst *os.File, f content.File) error {
	if _, err := dst.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("download: %w", err)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, dst); err != nil {
		return fmt.Errorf("download: %w", err)
	}
	if !bytes.Equal(sum.Sum(nil), f.SHA256) {
		return network.ErrMediaGone
	}
	if _, err := dst.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("download: %w", err)
	}
	return nil
}

// ReadHistory reads a part of the history that the phone has offered.
func (s *session) ReadHistory(ctx context.Context, ref network.Ref, r network.HistoryReader) error {
	o, ok := history.ParseOffer(ref)
	if !ok {
		return network.ErrMediaUseless
	}
	part, err := scratch(r.Scratch)
	if err != nil {
		return err
	}
	defer part.Close()
	size := int64(len(o.Inline))
	if o.Inline != nil {
		_, err = part.WriteAt(o.Inline, 0)
	} else {
		err = s.transfer(ctx, func(ctx context.Context, c *conn) (err error) {
			size, err = c.downloadHistory(ctx, o, part)
			return err
		})
	}
	if err != nil {
		return err
	}
	return s.readHistory(ctx, io.NewSectionReader(part, 0, size), r)
}

// scratch returns an empty file that is gone when it is closed, or when the process ends.
func scratch(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "history-*")
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	return f, os.Remove(f.Name())
}

func (c *conn) downloadHistory(ctx context.Context, o history.Offer, dst *os.File) (size int64, err error) {
	f := content.File{Path: o.Path, Size: o.Size, SHA256: o.SHA256, EncSHA256: o.EncSHA256, Key: o.Key}
	to := &sink{File: dst, limit: sealedSize(f)}
	err = c.cli.DownloadMediaWithPathToFile(
		ctx, withQuery(o.Path), o.EncSHA256, o.SHA256, o.Key, whatsmeow.MediaHistory, "", false, to)
	if err != nil {
		return 0, notDownloaded(err, to, f)
	}
	if err := verify(dst, f); err != nil {
		return 0, err
	}
	info, err := dst.Stat()
	if err != nil {
		return 0, fmt.Errorf("read the history: %w", err)
	}
	return info.Size(), nil
}

// readHistory reads a part of the history, and keeps and passes on what is in it.
func (s *session) readHistory(ctx context.Context, part *io.SectionReader, r network.HistoryReader) error {
	c := s.liveConn()
	if c == nil || !c.calls.Enter() {
		return network.ErrNotConnected
	}
	defer c.calls.Leave()
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	defer context.AfterFunc(c.cli.BackgroundEventCtx, cancel)() //nolint:contextcheck // the connection's
	var spool *os.File
	if r.Messages != nil {
		var err error
		if spool, err = scratch(r.Scratch); err != nil {
			return err
		}
		defer spool.Close()
	}
	found, err := history.Scan(part, part.Size(), spool)
	if err != nil {
		return err
	}
	if err := found.Keep(ctx, c.cli.Store); err != nil {
		return redact("keep the history", err)
	}
	if err := c.timed(ctx, found.Chats); err != nil || r.Messages == nil {
		return err
	}
	return c.passOn(ctx, found, r)
}

// timed reports the timers that chats had before the account was linked.
func (c *conn) timed(ctx context.Context, chats []history.Chat) error {
	for _, chat := range chats {
		if chat.Timer == 0 && chat.SetAt == 0 { // it never had one
			continue
		}
		id, known, err := c.chatOf(ctx, chat.JID)
		if err == nil && known {
			timer := content.TimerSince(chat.Timer, chat.TimerSet(time.Now()))
			err = c.update(ctx, network.Disappearing{ChatID: id, Timer: timer})
		}
		if err != nil {
			return redact("keep the history", err)
		}
	}
	return nil
}

// passOn passes the messages of a part of the history to r, some at a time.
func (c *conn) passOn(ctx context.Context, part *history.Part, r network.HistoryReader) error {
	var list []network.Past
	var secrets []store.MessageSecretInsert
	flush := func() error {
		if err := c.cli.Store.MsgSecrets.PutMessageSecrets(ctx, secrets); err != nil {
			return redact("keep the history", err)
		}
		err := r.Messages(ctx, list)
		list, secrets = list[:0], secrets[:0]
		return err
	}
	err := part.Each(func(chat types.JID, encoded []byte) error {
		var web waWeb.WebMessageInfo
		if proto.Unmarshal(encoded, &web) != nil {
			return nil
		}
		p, secret, ok, err := c.past(ctx, chat, &web)
		if err != nil || !ok {
			return err
		}
		if list = append(list, p); secret.Secret != nil {
			secrets = append(secrets, secret)
		}
		if len(list) == historyChunk {
			return flush()
		}
		return nil
	})
	if err == nil && len(list) > 0 {
		err = flush()
	}
	return err
}

// past reads a message of the history, and the secret with which others act on it. ok is false if it says nothing to
// people, or if it is not of a chat.
func (c *conn) past(ctx context.Context, chat types.JID, web *waWeb.WebMessageInfo) (
	p network.Past, secret store.MessageSecretInsert, ok bool, err error,
) {
	evt, err := c.cli.ParseWebMessage(chat, web)
	if err != nil || evt.Info.ID == "" || !isOfChat(evt.Info.MessageSource) {
		return p, secret, false, nil //nolint:nilerr // one message that cannot be read
	}
	in, ok := content.FromWire(evt.Message)
	if !ok || in.About != "" {
		return p, secret, false, nil
	}
	at, known, err := c.place(ctx, evt.Info.MessageSource)
	if err != nil || !known {
		return p, secret, false, err
	}
	in.Content = content.Renamed(in.Content, c.number(ctx))
	in.Content.ViewOnce = in.Content.ViewOnce || evt.IsViewOnce && in.Content.Media != nil
	p = network.Past{FromMe: evt.Info.IsFromMe, Status: postern.Received, Inbound: network.Inbound{
		NetworkID: content.Clip(evt.Info.ID, maxID), ChatID: at.chat, Content: in.Content, File: in.File, QuoteOf: in.QuoteOf,
		At: history.Sane(evt.Info.Timestamp.UTC(), time.Now().UTC()),
	}}
	if p.FromMe {
		p.To, p.Status = at.to(), history.StatusOf(web)
	} else {
		p.Sender, p.From, p.FromLID, p.FromName = at.who.sender(), at.who.phone(), at.who.lid, content.Name(evt.Info.PushName)
	}
	return p, store.MessageSecretInsert{
		Chat: evt.Info.Chat, Sender: evt.Info.Sender.ToNonAD(), ID: evt.Info.ID, Secret: web.GetMessageSecret(),
	}, true, nil
}

// AskHistory asks the account's phone for older messages of a chat.
func (s *session) AskHistory(ctx context.Context, q network.HistoryRequest) error {
	c := s.liveConn()
	if c == nil || !c.calls.Enter() {
		return network.ErrNotConnected
	}
	defer c.calls.Leave()
	chat, err := c.recipient(ctx, q.ChatID)
	if err != nil {
		return err
	}
	_, err = c.cli.SendMessage(ctx, s.account.ToNonAD(), history.Request(chat, q),
		whatsmeow.SendRequestExtra{Peer: true, Timeout: answerTimeout})
	if err != nil {
		return unsent("ask for history", err)
	}
	return nil
}
