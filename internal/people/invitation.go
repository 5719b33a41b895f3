package people

import (
	"context"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/accounts"
)

// NewInvitation describes an invitation to create.
type NewInvitation struct {
	Email string
	Role  postern.Role
	// ByMail says that the caller sends the link by mail, which is limited.
	ByMail bool
}

// Create creates an invitation and replaces an open one for the same address. It returns
// the token of the link, which is not stored. If the inviter leaves or loses the right to
// give the role, open invitations are revoked.
func (g Invitations) Create(
	ctx context.Context, by access.Actor, ws postern.WorkspaceID, in NewInvitation,
) (i postern.Invitation, token string, err error) {
	if err := by.Needs(ws, postern.Admin); err != nil {
		return i, "", err
	}
	email, err := CheckEmail(in.Email)
	if err != nil {
		return i, "", err
	}
	if err := checkRole(in.Role); err != nil {
		return i, "", err
	}
	if err := g.countMail(ctx, ws, in, email); err != nil {
		return i, "", err
	}
	token, now := seal.NewToken(), g.time()
	i = postern.Invitation{
		ID: postern.NewInvitationID(), WorkspaceID: ws, Email: email, Role: in.Role,
		Workspace: by.Member.Workspace, InvitedBy: by.Member.UserID, Inviter: by.Member.Email, CreatedAt: now,
		ExpiresAt: now.Add(joinTime),
	}
	return i, token, g.accounts.Invitations.Create(
		ctx,
		i,
		hashToken(token),
		by.Gives(in.Role),
		act(by, now, ws, "invitation.created", string(i.ID)),
	)
}

// List lists the open invitations to a workspace. Members need the role admin.
func (g Invitations) List(ctx context.Context, by access.Actor, ws postern.WorkspaceID) ([]postern.Invitation, error) {
	if err := by.Needs(ws, postern.Admin); err != nil {
		return nil, err
	}
	return g.accounts.Invitations.List(ctx, ws, g.time(), maxInvitations)
}

// Revoke ends an open invitation. Nobody can revoke an invitation to a role higher than
// their own.
func (g Invitations) Revoke(
	ctx context.Context, by access.Actor, ws postern.WorkspaceID, id postern.InvitationID,
) error {
	if err := by.Needs(ws, postern.Admin); err != nil {
		return err
	}
	rule := func(s postern.Standing) error {
		s.Owners = 0 // an invitation does not count as the last owner
		return by.Gives("")(s)
	}
	return g.accounts.Invitations.Revoke(ctx, ws, id, rule, act(by, g.time(), ws, "invitation.revoked", string(id)))
}

// JoinLink is what the token of a link at /join opens: an invitation, or the choice of a
// password for an existing account.
type JoinLink struct {
	Email      string
	Known      bool               // the address has an account
	Invitation postern.Invitation // zero if the link is for a password

	user postern.User // the user with the address, if it is known
}

// ChoosesPassword tells whether the link lets its holder choose a password. An existing
// account keeps its own for an invitation: an inviter must not get into the account.
func (l JoinLink) ChoosesPassword() bool { return !l.Known || l.Invitation.ID == "" }

// Get finds what a token opens.
func (g Invitations) Get(ctx context.Context, token string) (l JoinLink, err error) {
	hash, now := hashToken(token), g.time()
	u, ok, err := g.accounts.PasswordLinks.Get(ctx, hash, now)
	if err != nil || ok {
		return JoinLink{Email: u.Email, Known: true, user: u}, err
	}
	i, ok, err := g.accounts.Invitations.Get(ctx, hash, now)
	if err != nil {
		return l, err
	}
	if !ok {
		return l, accounts.LinkOver()
	}
	u, _, known, err := g.accounts.Users.ByEmail(ctx, i.Email)
	return JoinLink{Email: i.Email, Known: known, Invitation: i, user: u}, err
}

// Join uses a link to choose a password: its holder gets a new account and joins the
// workspace, or gets into the account for which an operator created the link.
func (g Invitations) Join(
	ctx context.Context, token, address, password string,
) (postern.User, postern.WorkspaceID, error) {
	l, err := g.Get(ctx, token)
	if err != nil {
		return postern.User{}, "", err
	}
	if !l.ChoosesPassword() {
		return postern.User{}, "", postern.Errorf(
			postern.ResourceNotAllowed, "there is already an account with this address; sign in with it",
		)
	}
	if err := checkPassword(password, l.Email); err != nil {
		return postern.User{}, "", err
	}
	hash, err := g.hashing.hash(ctx, queue{"link " + l.Email, true}, password)
	if err != nil {
		return postern.User{}, "", err
	}
	now := g.time()
	if l.Known {
		act := store.Act{
			At:      now,
			UserID:  l.user.ID,
			Act:     "user.password-set",
			Subject: string(l.user.ID),
			Address: address,
		}
		l.user.Epoch, err = g.accounts.PasswordLinks.Use(ctx, hashToken(token), l.user.ID, hash, act)
		return l.user, "", err
	}
	u := postern.User{ID: postern.NewUserID(), Email: l.Email, CreatedAt: now}
	return u, l.Invitation.WorkspaceID, g.accounts.Invitations.Join(ctx, accounts.Join{
		TokenHash: hashToken(token), User: u, PasswordHash: hash,
		Act: store.Act{At: now, UserID: u.ID, Act: "invitation.accepted", Address: address},
	})
}

// JoinAs accepts an invitation as a person who is signed in and has its address.
func (g Invitations) JoinAs(ctx context.Context, self access.Self, token string) (postern.WorkspaceID, error) {
	if err := self.Needs(); err != nil {
		return "", err
	}
	l, err := g.Get(ctx, token)
	if err != nil {
		return "", err
	}
	if l.Invitation.ID == "" || l.user.ID != self.ID {
		return "", postern.Errorf(
			postern.ResourceNotAllowed, "this link is for another email address; sign out and open it again",
		)
	}
	act := store.Act{At: g.time(), UserID: self.ID, Act: "invitation.accepted", Address: self.Address}
	return l.Invitation.WorkspaceID, g.accounts.Invitations.Join(
		ctx, accounts.Join{TokenHash: hashToken(token), User: l.user, Act: act},
	)
}
