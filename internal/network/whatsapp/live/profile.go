package live

import (
	"context"
	"errors"

	"postern/internal/network"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
)

// Profile implements [network.Profile].
type Profile struct {
	Enter

	// Name reads the name of the account from its app state, and Rename changes it there.
	Name   func(context.Context) (string, error)
	Rename func(ctx context.Context, name string) error
}

var _ network.Profile = Profile{}

// Get returns the profile.
func (p Profile) Get(ctx context.Context, known string) (shown network.ShownProfile, err error) {
	if shown.Name, err = p.Name(ctx); err != nil {
		return shown, err
	}
	if shown.About, err = p.about(ctx); err != nil {
		return shown, ofProfile(err)
	}
	shown.PictureID, shown.Picture, err = readPicture(ctx, p.Enter, known, ownNumber)
	return shown, ofProfile(err)
}

func ownNumber(cli *whatsmeow.Client) types.JID { return cli.Store.GetJID().ToNonAD() }

func (p Profile) about(ctx context.Context) (string, error) {
	return ask(ctx, p.Enter, func(ctx context.Context, cli *whatsmeow.Client) (string, error) {
		own := ownNumber(cli)
		found, err := cli.GetUserInfo(ctx, []types.JID{own})
		return clip(found[own].Status, maxAbout), err
	})
}

const maxAbout = 500 // characters of an about text that is received; the vendor's apps write at most 139

// SetName changes the name.
func (p Profile) SetName(ctx context.Context, name string) error { return p.Rename(ctx, name) }

// SetAbout changes what the account says about itself.
func (p Profile) SetAbout(ctx context.Context, about string) error {
	_, err := ask(ctx, p.Enter, func(ctx context.Context, cli *whatsmeow.Client) (struct{}, error) {
		return struct{}{}, cli.SetStatusMessage(ctx, types.SetStatusInput{Text: &about})
	})
	return ofProfile(err)
}

// SetPicture sets the picture. The vendor takes a query that names nobody as one about the account itself.
func (p Profile) SetPicture(ctx context.Context, jpeg []byte) error {
	return ofProfile(setPicture(ctx, p.Enter, types.EmptyJID, jpeg))
}

// ofProfile returns an error without what it would say about a group.
func ofProfile(err error) error {
	if errors.Is(err, network.ErrGroupForbids) || errors.Is(err, network.ErrNoSuchGroup) {
		return &network.GroupRefused{Why: network.ErrGroupRefused}
	}
	return err
}
