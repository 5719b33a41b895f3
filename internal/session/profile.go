package session

import (
	"context"
	"encoding/json"

	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/store/requests"
)

// profileRequest carries out a request about the profile of the account, and returns the profile.
func (l asked) profileRequest(ctx context.Context, r requests.Request) (any, error) {
	var in gateway.ProfileInput
	if err := json.Unmarshal(r.Input, &in); err != nil {
		return nil, err
	}
	p := l.session.Profile()
	if err := setProfile(ctx, p, in); err != nil {
		return nil, err
	}
	shown, err := p.Get(ctx, in.PictureID)
	if err != nil && r.Kind == gateway.ChangeProfile {
		l.e.log.Warn("a changed profile could not be read", "device", l.id, "error", err)
		return nil, errEffectUnknown
	}
	return gateway.ShownProfile{
		Name: shown.Name, About: shown.About, Picture: gateway.Picture{ID: shown.PictureID, Bytes: shown.Picture},
	}, err
}

// setProfile changes one thing after the other.
func setProfile(ctx context.Context, p network.Profile, in gateway.ProfileInput) error {
	if in.Name != nil {
		if err := p.SetName(ctx, *in.Name); err != nil {
			return err
		}
	}
	if in.About != nil {
		if err := p.SetAbout(ctx, *in.About); err != nil {
			return err
		}
	}
	if in.NewPicture {
		return p.SetPicture(ctx, in.Picture)
	}
	return nil
}
