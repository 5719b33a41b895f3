package people

import (
	"context"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store/accounts"
)

// NewUser describes a user whom an operator adds to a workspace.
type NewUser struct {
	Email string       `json:"email"`
	Role  postern.Role `json:"role"`
	// Existing confirms that an account with this address and a password belongs to the
	// person. Anybody who was invited by that address could have created it.
	Existing bool `json:"existing"`
}

// Create adds a user to a workspace. It returns the token of the link by which the user
// chooses a password; "" if the user already has one. For operators.
func (g Users) Create(
	ctx context.Context, by access.Actor, ws postern.WorkspaceID, in NewUser,
) (u postern.User, token string, err error) {
	if err := by.NeedsOperator(); err != nil {
		return u, "", err
	}
	email, err := CheckEmail(in.Email)
	if err != nil {
		return u, "", err
	}
	if err := checkRole(in.Role); err != nil {
		return u, "", err
	}
	token, now := seal.NewToken(), g.time()
	u, linked, err := g.accounts.Users.Create(ctx, accounts.NewUser{
		User: postern.User{
			ID:        postern.NewUserID(),
			Email:     email,
			CreatedAt: now,
		}, WorkspaceID: ws, Role: in.Role, Existing: in.Existing,
		TokenHash: hashToken(token), ExpiresAt: now.Add(joinTime), Act: act(by, now, ws, "user.created", ""),
	})
	if !linked {
		token = ""
	}
	return u, token, err
}

// Reset describes a link for a new password.
type Reset struct {
	Email string `json:"email"`
	// Alone also removes the second factors when the link is used, for people who have
	// lost their phone.
	Alone bool `json:"alone"`
}

// ResetByPassword is Reset for an operator in the dashboard, who must enter the own
// password again, or have just signed in again if they have none.
func (g PasswordLinks) ResetByPassword(
	ctx context.Context, by access.Actor, id postern.UserID, alone bool, password string,
) (u postern.User, token string, err error) {
	if err := by.NeedsOperator(); err != nil {
		return u, "", err
	}
	u, _, ok, err := g.accounts.Users.Get(ctx, id)
	if err == nil && !ok {
		err = postern.Errorf(postern.NotFound, "there is no such user")
	}
	if err != nil {
		return u, "", err
	}
	if err := g.users().confirm(ctx, by.Member.UserID, by.Address, by.Sure, password); err != nil {
		return u, "", err
	}
	return g.reset(ctx, by, u.Email, alone)
}

// Reset returns the token of a link by which a user chooses a new password. It replaces an
// earlier link. The old password stays valid until the link is used. It needs the server's
// own socket; see [PasswordLinks.ResetByPassword].
func (g PasswordLinks) Reset(ctx context.Context, by access.Actor, in Reset) (u postern.User, token string, err error) {
	if err := by.NeedsSocket(); err != nil {
		return u, "", err
	}
	email, err := CheckEmail(in.Email)
	if err != nil {
		return u, "", err
	}
	return g.reset(ctx, by, email, in.Alone)
}

func (g PasswordLinks) reset(
	ctx context.Context, by access.Actor, email string, alone bool,
) (u postern.User, token string, err error) {
	name := "user.password-reset"
	if alone {
		name = "user.password-reset-alone"
	}
	token, now := seal.NewToken(), g.time()
	u, err = g.accounts.PasswordLinks.Set(
		ctx,
		email,
		accounts.PasswordLink{TokenHash: hashToken(token), ExpiresAt: now.Add(joinTime), Alone: alone},
		act(by, now, "", name, ""),
	)
	return u, token, err
}
