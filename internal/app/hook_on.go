//go:build failpoints

package app

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"postern/internal/failpoint"
	"postern/internal/network"
	"postern/internal/postern"
)

// hooked adds saboteurs between the engine and the network.
func hooked(d network.Driver) network.Driver { return saboteur{d} }

type saboteur struct{ network.Driver }

func (s saboteur) Open(ctx context.Context, account string) (network.Session, error) {
	inner, err := s.Driver.Open(ctx, account)
	return saboteurSession{inner}, err
}

type saboteurSession struct{ network.Session }

func (s saboteurSession) Run(ctx context.Context, host network.Host) error {
	return s.Session.Run(ctx, saboteurHost{host})
}

func (s saboteurSession) Send(ctx context.Context, m network.Outbound) (time.Time, error) {
	switch {
	case m.Target != nil: // what an action does to its message would break other promises too
	case failpoint.Makes(failpoint.NeverFinish) && failpoint.Chosen(m.NetworkID):
		return time.Time{}, errors.New("never")
	case failpoint.Slips(failpoint.PretendSent):
		return time.Now(), nil
	case failpoint.Slips(failpoint.SendUnderOtherID):
		m.NetworkID = postern.NewNetworkID()
	case failpoint.Slips(failpoint.SendOtherText):
		m.Content.Text += "!"
	case failpoint.Slips(failpoint.SendUnderTwoIDs):
		other := m
		other.NetworkID = postern.NewNetworkID()
		if _, err := s.Session.Send(ctx, other); err != nil {
			return time.Time{}, err
		}
	}
	return s.Session.Send(ctx, m)
}

func (s saboteurSession) Upload(ctx context.Context, f network.File) (network.Ref, error) {
	if failpoint.Makes(failpoint.SendOtherFile) {
		f.Body = spoiled{f.Body}
	}
	return s.Session.Upload(ctx, f)
}

func (s saboteurSession) Download(ctx context.Context, ref network.Ref, dst *os.File) error {
	err := s.Session.Download(ctx, ref, dst)
	if err == nil && failpoint.Makes(failpoint.KeepOtherFile) {
		err = spoil(dst)
	}
	return err
}

// spoiled is a file with another first byte.
type spoiled struct{ io.ReaderAt }

func (s spoiled) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.ReaderAt.ReadAt(p, off)
	if off == 0 && n > 0 {
		p[0] = '!'
	}
	return n, err
}

// spoil changes the first byte of a file.
func spoil(f *os.File) error {
	w, err := os.OpenFile(f.Name(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = w.WriteAt([]byte("!"), 0)
	return errors.Join(err, w.Close())
}

type saboteurHost struct{ network.Host }

func (h saboteurHost) Update(ctx context.Context, u network.Update) error {
	if in, ok := u.(network.Inbound); ok && failpoint.Makes(failpoint.NeverTake) && failpoint.Chosen(in.NetworkID) {
		return errors.New("never")
	}
	switch n := u.(type) {
	case network.ChatsSet:
		if failpoint.Makes(failpoint.ForgetSetting) {
			return nil
		}
	case network.GroupUpdate:
		if failpoint.Makes(failpoint.LoseChange) {
			return nil
		}
		if n.Change.Subject != nil && failpoint.Makes(failpoint.InventChange) {
			other := n
			other.Change.Subject = new(*n.Change.Subject + "!")
			if err := h.Host.Update(ctx, other); err != nil {
				return err
			}
		}
	}
	return h.Host.Update(ctx, u)
}
