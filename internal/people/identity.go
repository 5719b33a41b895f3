package people

import (
	"context"
	"strings"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/accounts"
	"postern/internal/throttle"
)

// Identity is a person's account at an OpenID Connect provider.
type Identity struct {
	Issuer   string
	Subject  string
	Email    string // as the provider writes it
	Verified bool   // the provider has verified that the address belongs to the person
}

// TakeSignOn counts a browser that is sent to the provider, because each one adds an entry
// to the session store.
func (g Identities) TakeSignOn(ctx context.Context, address string) error {
	return g.signOns.Take(ctx, throttle.Network(address), tooManySignIns)
}

var errIdentity = postern.Errorf(
	postern.Unauthorized,
	"no account here is connected to that one; sign in with your password and connect it on the "+
		"Account page, or open your invitation link",
)

// SignIn finds the user who is connected to an identity. The user may still need a second
// factor. An email address alone finds nobody, because a provider may let people enter any
// address in their profile.
func (g Identities) SignIn(ctx context.Context, i Identity) (postern.User, error) {
	u, ok, err := g.accounts.Identities.User(ctx, i.Issuer, i.Subject)
	if err == nil && !ok {
		err = errIdentity
	}
	return u, err
}

// Reenter checks that an identity belongs to the person who is signed in. It replaces the
// password for people who have none, and is refused for those who have one.
func (g Identities) Reenter(ctx context.Context, self access.Self, i Identity) error {
	has, err := g.users().HasPassword(ctx, self)
	if err != nil {
		return err
	}
	u, ok, err := g.accounts.Identities.User(ctx, i.Issuer, i.Subject)
	switch {
	case err != nil:
		return err
	case !ok || u.ID != self.ID:
		return postern.Errorf(
			postern.ResourceNotAllowed,
			"you signed in there as a different person; use the account that is connected to yours",
		)
	case has:
		return postern.Errorf(postern.ResourceNotAllowed, "you have a password here; enter it instead")
	}
	return nil
}

// Confirm refuses a member who has not entered the password again. A member without a
// password must have signed in at the provider again instead.
func (g Users) Confirm(ctx context.Context, c access.Caller, password string) error {
	if c.Member.UserID == "" {
		return postern.Errorf(postern.MissingScope, "only a member in the dashboard can confirm this by a password")
	}
	return g.confirm(ctx, c.Member.UserID, c.Address, c.Sure, password)
}

// confirm requires the password of a person, or of one who has none that they have just shown who they are.
func (g Users) confirm(ctx context.Context, id postern.UserID, address string, sure bool, password string) error {
	if sure {
		has, err := g.hasPassword(ctx, id)
		if err != nil || !has {
			return err
		}
	}
	_, _, err := g.reenter(ctx, address, id, "/password", password)
	return err
}

// HasPassword tells whether a person can sign in with a password.
func (g Users) HasPassword(ctx context.Context, self access.Self) (bool, error) {
	if err := self.Needs(); err != nil {
		return false, err
	}
	return g.hasPassword(ctx, self.ID)
}

func (g Users) hasPassword(ctx context.Context, id postern.UserID) (bool, error) {
	_, hash, _, err := g.accounts.Users.Get(ctx, id)
	return hash != "", err
}

// ChoosePassword sets the first password of a person and ends all of the person's
// sessions. It returns the user as changed.
func (g Users) ChoosePassword(ctx context.Context, self access.Self, password string) (postern.User, error) {
	if err := self.NeedsSure(); err != nil {
		return postern.User{}, err
	}
	u, hash, ok, err := g.accounts.Users.Get(ctx, self.ID)
	if err == nil && (!ok || hash != "") {
		err = postern.Invalid("/current", "this password is not correct")
	}
	if err != nil {
		return u, err
	}
	return g.setPassword(ctx, u, "", password, self.Address)
}

// List lists the identities of a person.
func (g Identities) List(ctx context.Context, self access.Self) ([]accounts.Identity, error) {
	if err := self.Needs(); err != nil {
		return nil, err
	}
	return g.accounts.Identities.List(ctx, self.ID, maxIdentities)
}

// Connect allows an identity to sign the person in.
func (g Identities) Connect(ctx context.Context, self access.Self, i Identity) error {
	if err := self.NeedsSure(); err != nil {
		return err
	}
	now := g.time()
	return g.accounts.Identities.Add(
		ctx, i.of(self.ID, now), maxIdentities, self.Token, userAct(now, self, "user.identity-connected"),
	)
}

func (i Identity) of(id postern.UserID, at postern.Time) accounts.Identity {
	return accounts.Identity{Issuer: i.Issuer, Subject: i.Subject, UserID: id, CreatedAt: at}
}

// Disconnect removes an identity of a person, who must have a password. All other sessions
// end, because the identity may have opened them.
func (g Identities) Disconnect(ctx context.Context, self access.Self, issuer, subject string) error {
	if err := self.NeedsSure(); err != nil {
		return err
	}
	now := g.time()
	return g.accounts.Identities.Remove(
		ctx,
		Identity{Issuer: issuer, Subject: subject}.of(self.ID, now),
		self.Token,
		userAct(now, self, "user.identity-disconnected"),
	)
}

// JoinByIdentity accepts an invitation for an address without an account: it creates a
// user without a password, whom the identity signs in. The provider must have verified the
// address of the invitation.
func (g Invitations) JoinByIdentity(
	ctx context.Context, token, address string, i Identity,
) (postern.User, postern.WorkspaceID, error) {
	l, err := g.Get(ctx, token)
	switch {
	case err != nil:
		return postern.User{}, "", err
	case l.Known:
		return postern.User{}, "", postern.Errorf(
			postern.ResourceNotAllowed, "there is already an account with this address; sign in with it",
		)
	case !i.Verified || !sameEmail(i.Email, l.Email):
		return postern.User{}, "", postern.Errorf(
			postern.ResourceNotAllowed,
			"the invitation is for %s, and the provider does not confirm that this is your address; "+
				"choose a password instead, or ask for another invitation",
			l.Email,
		)
	}
	now := g.time()
	u := postern.User{ID: postern.NewUserID(), Email: l.Email, CreatedAt: now}
	return u, l.Invitation.WorkspaceID, g.accounts.Invitations.Join(ctx, accounts.Join{
		TokenHash: hashToken(token), User: u, Identity: i.of(u.ID, now),
		Act: store.Act{At: now, UserID: u.ID, Act: "invitation.accepted", Address: address},
	})
}

// sameEmail tells whether a provider's address is the same as one of ours, which are in
// lower case. Some letters outside ASCII become ASCII letters in lower case; an address
// with such a letter is a different one.
func sameEmail(theirs, ours string) bool {
	foreign := strings.ContainsFunc(theirs, func(r rune) bool { return r > 0x7f })
	return theirs == ours || !foreign && strings.ToLower(theirs) == ours
}
