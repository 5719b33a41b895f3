package people

import (
	"context"

	"postern/internal/access"
	"postern/internal/store"
)

// SignIn is a browser that has a session of the dashboard. Its token is a hash of
// the one that the browser has.
type SignIn = store.SignIn

// Create adds the session of a browser. It is refused when all sessions of
// its user were ended since the password was checked.
func (g SignIns) Create(ctx context.Context, s SignIn) error {
	return g.db.SignIns.Create(ctx, s)
}

// Update writes the session of a browser. One that was ended meanwhile, by
// another request, stays so.
func (g SignIns) Update(ctx context.Context, s SignIn) error {
	return g.db.SignIns.Update(ctx, s)
}

// Get finds the session of a browser; ok is false when it has ended.
func (g SignIns) Get(ctx context.Context, token string) (s SignIn, ok bool, err error) {
	return g.db.SignIns.Get(ctx, token, g.time())
}

// End ends the session of a browser.
func (g SignIns) End(ctx context.Context, token string) error {
	return g.db.SignIns.End(ctx, token)
}

// List lists the sessions of a user by their tokens' hashes.
func (g SignIns) List(ctx context.Context, self access.Self) (list []SignIn, err error) {
	if err := self.Needs(); err != nil {
		return nil, err
	}
	return g.db.SignIns.List(ctx, self.ID, g.time(), maxSessions)
}

// EndOthers ends all sessions of a person but this one.
func (g SignIns) EndOthers(ctx context.Context, self access.Self) error {
	return g.endAll(ctx, self, self.Token)
}

// EndAll ends all sessions of a person, this one too.
func (g SignIns) EndAll(ctx context.Context, self access.Self) error {
	return g.endAll(ctx, self, "")
}

func (g SignIns) endAll(ctx context.Context, self access.Self, but string) error {
	if err := self.Needs(); err != nil {
		return err
	}
	return g.db.SignIns.EndAll(ctx, self.ID, but, userAct(g.time(), self, "user.signed-out-everywhere"))
}
