package people

import (
	"context"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
)

// NewInvitation is whom to invite, and as what.
type NewInvitation struct {
	Email string
	Role  postern.Role
	// ByMail says that the caller sends the link to the address: there is a bound for
	// that.
	ByMail bool
}

// Create makes an invitation in place of an open one for the same address. The
// token of its link is in the answer and nowhere else. Whoever loses the right to
// give the role, or leaves, takes the open invitations along: they are revoked
// with it.
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
	return i, token, g.db.Invitations.Create(
		ctx,
		i,
		hashToken(token),
		maxInvitations,
		rule(by.Gives(in.Role)),
		act(by, now, ws, "invitation.created", string(i.ID)),
	)
}

// List lists the open invitations to a workspace. A member needs the role
// of an admin.
func (g Invitations) List(ctx context.Context, by access.Actor, ws postern.WorkspaceID) ([]postern.Invitation, error) {
	if err := by.Needs(ws, postern.Admin); err != nil {
		return nil, err
	}
	return g.db.Invitations.List(ctx, ws, g.time(), maxInvitations)
}

// Revoke ends an open invitation. Nobody revokes one to a mightier role than
// the own.
func (g Invitations) Revoke(
	ctx context.Context, by access.Actor, ws postern.WorkspaceID, id postern.InvitationID,
) error {
	if err := by.Needs(ws, postern.Admin); err != nil {
		return err
	}
	rule := func(s store.Standing) error {
		s.Owners = 0 // an invitation to be an owner is nobody's last
		return rule(by.Gives(""))(s)
	}
	return g.db.Invitations.Revoke(ctx, ws, id, rule, act(by, g.time(), ws, "invitation.revoked", string(id)))
}

// JoinLink is what the token of a link at /join opens: an invitation, or the choice
// of a password by somebody who has an account.
type JoinLink struct {
	Email      string
	Known      bool               // the address has an account
	Invitation postern.Invitation // zero when the link is for a password

	user postern.User // whose address it is, when it is known
}

// ChoosesPassword tells whether a password is to be chosen. An account that is
// there keeps its own: whoever invites an address must not get into its account.
func (l JoinLink) ChoosesPassword() bool { return !l.Known || l.Invitation.ID == "" }

// Get finds what a token opens.
func (g Invitations) Get(ctx context.Context, token string) (l JoinLink, err error) {
	hash, now := hashToken(token), g.time()
	u, ok, err := g.db.PasswordLinks.Get(ctx, hash, now)
	if err != nil || ok {
		return JoinLink{Email: u.Email, Known: true, user: u}, err
	}
	i, ok, err := g.db.Invitations.Get(ctx, hash, now)
	if err != nil {
		return l, err
	}
	if !ok {
		return l, store.LinkOver()
	}
	u, _, known, err := g.db.Users.ByEmail(ctx, i.Email)
	return JoinLink{Email: i.Email, Known: known, Invitation: i, user: u}, err
}

// Join uses a link by which a password is chosen: whoever has the link gets an
// account and joins, or gets into the account that the operator made the link for.
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
	hash, err := g.hashing.hash(ctx, password)
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
		l.user.Epoch, err = g.db.PasswordLinks.Use(ctx, hashToken(token), l.user.ID, hash, act)
		return l.user, "", err
	}
	u := postern.User{ID: postern.NewUserID(), Email: l.Email, CreatedAt: now}
	return u, l.Invitation.WorkspaceID, g.db.Invitations.Join(ctx, store.Join{
		TokenHash: hashToken(token), User: u, PasswordHash: hash,
		Act: store.Act{At: now, UserID: u.ID, Act: "invitation.accepted", Address: address},
	})
}

// JoinAs uses an invitation as a user who is signed in: the one with its address.
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
	return l.Invitation.WorkspaceID, g.db.Invitations.Join(
		ctx, store.Join{TokenHash: hashToken(token), User: l.user, Act: act},
	)
}
