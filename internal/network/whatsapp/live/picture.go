package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"postern/internal/network"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
)

// maxPicture is how many bytes a picture may have; those that the vendor's apps make have about 100 kB.
const (
	maxPicture     = 1 << 20
	pictureTimeout = 15 * time.Second // for its download
)

type picture struct {
	id    string
	bytes []byte
}

// Picture returns the picture of a group, unless it is the one that is known.
func (g Groups) Picture(ctx context.Context, chat, known string) (id string, jpeg []byte, err error) {
	return readPicture(ctx, g.Enter, known, func(*whatsmeow.Client) types.JID { return address(chat) })
}

// readPicture returns the picture of a group or a person, unless it is the one that is known.
func readPicture(
	ctx context.Context, enter Enter, known string, of func(*whatsmeow.Client) types.JID,
) (id string, jpeg []byte, err error) {
	p, err := ask(ctx, enter, func(ctx context.Context, cli *whatsmeow.Client) (picture, error) {
		info, err := cli.GetProfilePictureInfo(ctx, of(cli), &whatsmeow.GetProfilePictureParams{ExistingID: known})
		switch {
		case errors.Is(err, whatsmeow.ErrProfilePictureNotSet), errors.Is(err, whatsmeow.ErrProfilePictureUnauthorized):
			return picture{}, nil
		case err != nil:
			return picture{}, err
		case info == nil:
			return picture{id: known}, nil
		}
		b, err := download(ctx, cli, info.URL)
		return picture{info.ID, b}, err
	})
	return p.id, p.bytes, err
}

var errNoPicture = errors.New("the network did not hand out the picture")

// download reads a picture at an address that the network has named.
func download(ctx context.Context, cli *whatsmeow.Client, address string) ([]byte, error) {
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" {
		return nil, errNoPicture
	}
	ctx, cancel := context.WithTimeout(ctx, pictureTimeout)
	defer cancel()
	b := limited{}
	//nolint:staticcheck // marked as dangerous, but it is the client for files, with the proxy of the connection
	if _, _, err := cli.DangerousInternals().DownloadMediaToFile(ctx, address, &b); err != nil || b.all.Len() == 0 {
		return nil, errNoPicture
	}
	return b.all.Bytes(), nil
}

// limited takes as many bytes as a picture may have.
type limited struct{ all bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.all.Len()+len(p) > maxPicture {
		return 0, fmt.Errorf("%w: it has more than %d bytes", errNoPicture, maxPicture)
	}
	return l.all.Write(p)
}

// SetPicture sets the picture of a group; nil removes it.
func (g Groups) SetPicture(ctx context.Context, chat string, jpeg []byte) error {
	return setPicture(ctx, g.Enter, address(chat), jpeg)
}

func setPicture(ctx context.Context, enter Enter, of types.JID, jpeg []byte) error {
	_, err := ask(ctx, enter, func(ctx context.Context, cli *whatsmeow.Client) (struct{}, error) {
		_, err := cli.SetGroupPhoto(ctx, of, jpeg)
		if errors.Is(err, whatsmeow.ErrInvalidImageFormat) {
			err = &network.GroupRefused{Why: network.ErrBadPicture}
		}
		return struct{}{}, err
	})
	return err
}
