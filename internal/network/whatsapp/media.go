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
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
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
	if f.Size <= maxInMemory {
		send = c.uploadFromMemory
	}
	resp, err := send(ctx, mediaTypes[class], f)
	if err == nil && !content.IsPath(resp.DirectPath) {
		err = c.uploaded(errNoPath)
	}
	if err != nil {
		return nil, notUploaded(err)
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
		to := &sink{File: dst, limit: sealedSize(f)}
		err := c.cli.DownloadMediaWithPathToFile(
			ctx, withQuery(f.Path), f.EncSHA256, f.SHA256, f.Key, mediaTypes[f.Class], "", false, to,
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
		errors.Is(err, whatsmeow.ErrMediaDownloadFailedWith410):
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
