package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"postern/internal/postern"
	"postern/internal/seal"
)

const (
	maxRetries    = 3 // of one request to the storage, with growing pauses of at most 1 s
	defaultRegion = "us-east-1"
	contentType   = "application/octet-stream" // what a blob is, only the database knows
)

// BucketOptions say where a bucket is. Endpoint, Bucket, Key and Secret are required.
type BucketOptions struct {
	Endpoint string // host or host:port
	Bucket   string
	Prefix   string // before the names of objects: "", or a path that ends with a slash
	Region   string // "" means us-east-1
	Key      string
	Secret   seal.Secret
	PlainTCP bool   // http instead of https
	Scratch  string // directory for one temporary file per upload; "" means that of the system
}

// Bucket is a Store in storage that speaks the protocol of Amazon S3.
type Bucket struct {
	core    minio.Core
	bucket  string
	prefix  string
	scratch string
}

// OpenBucket prepares a client. It sends no request; Check does.
func OpenBucket(o BucketOptions) (*Bucket, error) {
	if o.Region == "" {
		o.Region = defaultRegion
	}
	client, err := minio.New(o.Endpoint, &minio.Options{
		Creds:      credentials.NewStaticV4(o.Key, o.Secret.Reveal(), ""),
		Secure:     !o.PlainTCP,
		Region:     o.Region,
		MaxRetries: maxRetries,
	})
	if err != nil {
		return nil, fmt.Errorf("media storage: %w", err)
	}
	return &Bucket{core: minio.Core{Client: client}, bucket: o.Bucket, prefix: o.Prefix, scratch: o.Scratch}, nil
}

// Put first copies the content to a temporary file, because an object is named by its
// hash and because a repeated request must read it again. The upload is one request, so
// a process that dies leaves no parts behind that nobody sees and somebody pays for.
func (b *Bucket) Put(ctx context.Context, ws postern.WorkspaceID, r io.Reader) (Name, int64, error) {
	if err := checkWorkspace(ws); err != nil {
		return Name{}, 0, err
	}
	f, err := unnamedFile(b.scratch)
	if err != nil {
		return Name{}, 0, fmt.Errorf("temporary file: %w", err)
	}
	defer f.Close() // which removes it, as it has no name
	hash, size, err := copyHashed(ctx, f, r)
	if err != nil {
		return Name{}, 0, err
	}
	name := Name{Workspace: ws, Hash: hash}
	return name, size, b.publish(ctx, name, f, size)
}

// Create creates a temporary file.
func (b *Bucket) Create() (*os.File, error) { return os.CreateTemp(b.scratch, "postern-*") }

// Adopt uploads the file.
func (b *Bucket) Adopt(ctx context.Context, name Name, f *os.File) error {
	info, err := f.Stat()
	if err = errors.Join(err, checkWorkspace(name.Workspace), ctx.Err()); err != nil {
		return err
	}
	return errors.Join(b.publish(ctx, name, f, info.Size()), os.Remove(f.Name()))
}

// unnamedFile creates a file that vanishes when it is closed or the process ends.
func unnamedFile(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "postern-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// publish makes an object that is there young again, and otherwise uploads it.
func (b *Bucket) publish(ctx context.Context, name Name, f *os.File, size int64) error {
	key, err := b.key(name)
	if err != nil {
		return err
	}
	if b.touch(ctx, key) == nil {
		return nil
	}
	_, err = b.core.Client.PutObject(ctx, b.bucket, key, io.NewSectionReader(f, 0, size), size,
		minio.PutObjectOptions{
			ContentType: contentType, DisableMultipart: true,
			DisableContentSha256: size == 0, // signed in pieces, it would have no Content-Length
		})
	if err != nil {
		return fmt.Errorf("upload media: %w", err)
	}
	return nil
}

// touch copies an object to itself, which the protocol allows only with new metadata.
func (b *Bucket) touch(ctx context.Context, key string) error {
	_, err := b.core.Client.CopyObject(ctx,
		minio.CopyDestOptions{
			Bucket: b.bucket, Object: key, ReplaceMetadata: true,
			UserMetadata: map[string]string{"Content-Type": contentType},
		},
		minio.CopySrcOptions{Bucket: b.bucket, Object: key})
	return err
}

func (b *Bucket) key(name Name) (string, error) {
	key, err := name.key()
	return b.prefix + key, err
}

// Open starts a download. A lost connection ends the reader with an error.
func (b *Bucket) Open(ctx context.Context, name Name, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, errNegativeOffset
	}
	key, err := b.key(name)
	if err != nil {
		return nil, err
	}
	if length == 0 { // has no form in HTTP
		_, err := b.Stat(ctx, name)
		return http.NoBody, err
	}
	var o minio.GetObjectOptions
	o.Set("Range", byteRange(offset, length))
	body, _, _, err := b.core.GetObject(ctx, b.bucket, key, o)
	switch {
	case isCode(err, "InvalidRange"): // the range starts at the end or behind it
		return http.NoBody, nil
	case err != nil:
		return nil, missingOr(err)
	}
	return body, nil
}

// byteRange is the value of a Range header (RFC 9110, 14.1.2).
func byteRange(offset, length int64) string {
	if length < 0 {
		return fmt.Sprintf("bytes=%d-", offset)
	}
	return fmt.Sprintf("bytes=%d-%d", offset, offset+length-1)
}

// Stat describes one blob.
func (b *Bucket) Stat(ctx context.Context, name Name) (Info, error) {
	key, err := b.key(name)
	if err != nil {
		return Info{}, err
	}
	object, err := b.core.StatObject(ctx, b.bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return Info{}, missingOr(err)
	}
	return Info{Name: name, Size: object.Size, Modified: object.LastModified}, nil
}

// Delete removes the object.
func (b *Bucket) Delete(ctx context.Context, name Name) error {
	key, err := b.key(name)
	if err != nil {
		return err
	}
	return b.core.RemoveObject(ctx, b.bucket, key, minio.RemoveObjectOptions{})
}

// Walk lists the bucket, 1,000 objects per request.
func (b *Bucket) Walk(ctx context.Context) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		options := minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true}
		for object := range b.core.ListObjectsIter(ctx, b.bucket, options) {
			if object.Err != nil {
				yield(Info{}, fmt.Errorf("list media: %w", object.Err))
				return
			}
			name, ok := parseKey(strings.TrimPrefix(object.Key, b.prefix))
			if ok && !yield(Info{Name: name, Size: object.Size, Modified: object.LastModified}, nil) {
				return
			}
		}
		if ctx.Err() != nil { // the list ends without an error then
			yield(Info{}, ctx.Err())
		}
	}
}

// Tidy has nothing to do: an upload is one request, which stores all or nothing.
func (b *Bucket) Tidy(context.Context, time.Time) error { return nil }

// Check asks whether the bucket exists and may be used, and whether the temporary files
// of uploads have a place.
func (b *Bucket) Check(ctx context.Context) error {
	found, err := b.core.BucketExists(ctx, b.bucket)
	if err != nil {
		return fmt.Errorf("media storage: %w", err)
	}
	if !found {
		return errors.New("media storage: the bucket does not exist")
	}
	f, err := unnamedFile(b.scratch)
	if err != nil {
		return fmt.Errorf("media storage: %w", err)
	}
	return f.Close()
}

// Mark reads the object with the mark, or makes one, unless another server was faster.
func (b *Bucket) Mark(ctx context.Context, fresh string) (string, error) {
	mark, err := b.readMark(ctx)
	if !isCode(err, "NoSuchKey") || fresh == "" {
		if isCode(err, "NoSuchKey") {
			return "", nil
		}
		return mark, err
	}
	options := minio.PutObjectOptions{ContentType: "text/plain", DisableMultipart: true}
	options.SetMatchETagExcept("*") // only if it is missing
	_, err = b.core.Client.PutObject(ctx, b.bucket, b.prefix+markName, strings.NewReader(fresh), int64(len(fresh)), options)
	if err != nil && !isCode(err, "PreconditionFailed") {
		return "", fmt.Errorf("mark the media storage: %w", err)
	}
	return b.readMark(ctx)
}

func (b *Bucket) readMark(ctx context.Context) (string, error) {
	object, _, _, err := b.core.GetObject(ctx, b.bucket, b.prefix+markName, minio.GetObjectOptions{})
	if err != nil {
		return "", err
	}
	defer object.Close()
	text, err := io.ReadAll(io.LimitReader(object, maxMark))
	return strings.TrimSpace(string(text)), err
}

// missingOr gives the error about a missing object the form of a missing file's.
func missingOr(err error) error {
	if isCode(err, "NoSuchKey") {
		return fmt.Errorf("media storage: %w", fs.ErrNotExist)
	}
	return fmt.Errorf("media storage: %w", err)
}

func isCode(err error, code string) bool {
	return err != nil && minio.ToErrorResponse(err).Code == code
}
