package people

import (
	"context"

	"postern/internal/postern"
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
func (g SignIns) List(ctx context.Context, user postern.UserID) (list []SignIn, err error) {
	return g.db.SignIns.List(ctx, user, g.time(), maxSessions)
}

// EndAll ends all sessions of a user but the one with a token, "" for none.
func (g SignIns) EndAll(ctx context.Context, address string, user postern.UserID, but string) error {
	return g.db.SignIns.EndAll(ctx, user, but, store.Act{At: g.time(), UserID: user, Act: "user.signed-out-everywhere", Subject: string(user), Address: address})
}
