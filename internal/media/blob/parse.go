package blob

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"postern/internal/seal"
)

// forms ends the errors about an address. They never repeat a part of it, because each
// part may be a piece of a secret that was not escaped.
const forms = "write file:///directory or s3://key:secret@host/bucket?region=…&tls=off, " +
	"with / + @ : and % in the key and the secret percent-encoded (%2F %2B %40 %3A %25)"

// Parse opens the storage at an address: file:///directory, or
// s3://key:secret@host[:port]/bucket[/prefix] with the optional parameters region
// (us-east-1) and tls (on). Scratch is a directory for temporary files of uploads.
func Parse(address seal.Secret, scratch string) (Store, error) {
	u, err := url.Parse(address.Reveal())
	if err != nil {
		return nil, errors.New("this is not the address of a media storage: " + forms)
	}
	switch u.Scheme {
	case "file":
		return parseDirectory(u)
	case "s3":
		return parseBucket(u, scratch)
	}
	return nil, errors.New("this is not the address of a media storage: " + forms)
}

// ParseExisting opens the storage at an address as Parse does, but creates no directory: if there is none,
// the error matches fs.ErrNotExist.
func ParseExisting(address seal.Secret, scratch string) (Store, error) {
	if u, err := url.Parse(address.Reveal()); err == nil && u.Scheme == "file" {
		if _, err := os.Stat(u.Path); err != nil {
			return nil, err
		}
	}
	return Parse(address, scratch)
}

func parseDirectory(u *url.URL) (Store, error) {
	if u.Host != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !strings.HasPrefix(u.Path, "/") {
		return nil, errors.New("the address of a media directory has only an absolute path: " + forms)
	}
	return OpenDirectory(u.Path)
}

func parseBucket(u *url.URL, scratch string) (Store, error) {
	secret, ok := u.User.Password()
	bucket, prefix, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if !ok || secret == "" || u.User.Username() == "" || u.Host == "" || bucket == "" || u.Fragment != "" {
		return nil, errors.New("the address of a bucket needs a key, a secret, a host and a bucket: " + forms)
	}
	o := BucketOptions{
		Endpoint: u.Host, Bucket: bucket, Key: u.User.Username(), Secret: seal.Secret(secret), Scratch: scratch,
	}
	if prefix != "" {
		o.Prefix = prefix + "/"
	}
	if err := o.parameters(u.RawQuery); err != nil {
		return nil, err
	}
	return OpenBucket(o)
}

// parameters reads the part of an address after the question mark. An unknown name is
// refused, so that a mistyped one is noticed.
func (o *BucketOptions) parameters(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the parameters of a bucket are region and tls: " + forms)
	}
	for name, value := range values {
		switch {
		case len(value) != 1:
			return errors.New("a parameter of a bucket is given once: " + forms)
		case name == "region":
			o.Region = value[0]
		case name == "tls" && (value[0] == "on" || value[0] == "off"):
			o.PlainTCP = value[0] == "off"
		default:
			return fmt.Errorf("the parameters of a bucket are region and tls (on or off): %s", forms)
		}
	}
	return nil
}
