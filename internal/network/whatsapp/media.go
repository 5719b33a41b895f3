package whatsapp

import (
	"context"
	"errors"
	"os"

	"postern/internal/network"
)

var errLater = errors.New("not built yet")

func (s *session) Upload(context.Context, network.File) (network.Ref, error) { return nil, errLater }

func (s *session) Download(context.Context, network.Ref, *os.File) error { return errLater }

func (s *session) RequestMedia(context.Context, network.MediaRequest) error { return errLater }
