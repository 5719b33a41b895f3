package people

import (
	"context"

	"postern/internal/access"
	"postern/internal/store/accounts"
)

// SignIn is the login session of a browser. Its token is a hash of the one in the
// browser's cookie.
type SignIn = accounts.SignIn

// Create stores a new login session. It is refused if all sessions of its user were ended
// after the password was checked.
func (g SignIns) Create(ctx context.Context, s SignIn) error {
	return g.accounts.SignIns.Create(ctx, s)
}

// Update stores the data of a login session. A session that another request has ended
// stays ended.
func (g SignIns) Update(ctx context.Context, s SignIn) error {
	return g.accounts.SignIns.Update(ctx, s)
}

// Get finds a login session; ok is false if it has ended.
func (g SignIns) Get(ctx context.Context, token string) (s SignIn, ok bool, err error) {
	return g.accounts.SignIns.Get(ctx, token, g.time())
}

// End ends a login session.
func (g SignIns) End(ctx context.Context, token string) error {
	return g.accounts.SignIns.End(ctx, token)
}

// List lists the person's login sessions.
func (g SignIns) List(ctx context.Context, self access.Self) (list []SignIn, err error) {
	if err := self.Needs(); err != nil {
		return nil, err
	}
	return g.accounts.SignIns.List(ctx, self.ID, g.time(), maxSessions)
}

// EndOthers ends all login sessions of the person except this one.
func (g SignIns) EndOthers(ctx context.Context, self access.Self) error {
	return g.endAll(ctx, self, self.Token)
}

// EndAll ends all login sessions of the person, this one included.
func (g SignIns) EndAll(ctx context.Context, self access.Self) error {
	return g.endAll(ctx, self, "")
}

func (g SignIns) endAll(ctx context.Context, self access.Self, but string) error {
	if err := self.Needs(); err != nil {
		return err
	}
	return g.accounts.SignIns.EndAll(ctx, self.ID, but, userAct(g.time(), self, "user.signed-out-everywhere"))
}
