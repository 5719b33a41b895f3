package people

import (
	"context"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
)

// NewUser is somebody whom the operator adds to a workspace.
type NewUser struct {
	Email string       `json:"email"`
	Role  postern.Role `json:"role"`
	// Existing takes an account that has this address, and a password, for the
	// person's own. Anybody who was invited by that address could have made it.
	Existing bool `json:"existing"`
}

// Create adds a user to a workspace and gives the token of the link by which
// the user chooses a password; "" for one who has a password already. For operators.
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
	u, linked, err := g.db.Users.Create(ctx, store.NewUser{
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

// Reset is whose password is to be chosen anew.
type Reset struct {
	Email string `json:"email"`
	// Alone removes what else the sign-in asks for, when the link is used: for who
	// has lost the phone.
	Alone bool `json:"alone"`
}

// ResetByPassword is ResetPassword for an operator who has entered the own
// password again.
func (g PasswordLinks) ResetByPassword(
	ctx context.Context, by access.Actor, id postern.UserID, alone bool, password string,
) (u postern.User, token string, err error) {
	if err := by.NeedsOperator(); err != nil {
		return u, "", err
	}
	u, _, ok, err := g.db.Users.Get(ctx, id)
	if err == nil && !ok {
		err = postern.Errorf(postern.NotFound, "there is no such user")
	}
	if err != nil {
		return u, "", err
	}
	if _, _, err := g.users().reenter(ctx, by.Address, by.Member.UserID, "/password", password); err != nil {
		return u, "", err
	}
	return g.Reset(ctx, by, Reset{Email: u.Email, Alone: alone})
}

// Reset gives the token of a link by which a user chooses a new password,
// in place of an earlier one. The password of before opens the account until the
// link is used.
func (g PasswordLinks) Reset(ctx context.Context, by access.Actor, in Reset) (u postern.User, token string, err error) {
	if err := by.NeedsOperator(); err != nil {
		return u, "", err
	}
	email, err := CheckEmail(in.Email)
	if err != nil {
		return u, "", err
	}
	name := "user.password-reset"
	if in.Alone {
		name = "user.password-reset-alone"
	}
	token, now := seal.NewToken(), g.time()
	u, err = g.db.PasswordLinks.Set(
		ctx,
		email,
		store.PasswordLink{TokenHash: hashToken(token), ExpiresAt: now.Add(joinTime), Alone: in.Alone},
		act(by, now, "", name, ""),
	)
	return u, token, err
}
