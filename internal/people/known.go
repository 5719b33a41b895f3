package people

import (
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/seal"
)

// A browser that has signed in keeps a cookie by which it is known afterwards: its own
// random id, and for each account a proof that only this server can make. The cookie opens
// nothing. It has its own attempts at the sign-in, and no mail reports its sign-ins.
//
// The cookie is ID.PROOF.PROOF…, and each proof is EXPIRY~MAC.

// Remember returns the cookie by which a browser is known to the account of the person who
// has just signed in with it, and how long it is valid. cookie is the browser's present one.
func (g SignIns) Remember(
	ctx context.Context, self access.Self, cookie string,
) (value string, life time.Duration, err error) {
	if err := self.Needs(); err != nil {
		return "", 0, err
	}
	u, _, _, err := g.accounts.Users.Get(ctx, self.ID)
	if err != nil {
		return "", 0, err
	}
	parts := strings.Split(cookie, ".")
	id, proofs := parts[0], parts[1:]
	if !g.knows(cookie) {
		id, proofs = seal.NewToken(), nil
	}
	proofs = slices.DeleteFunc(proofs, func(p string) bool { return g.proves(p, id, u.Email) })
	proofs = append(proofs, g.proof(id, u.Email, g.time().Add(knownTime)))
	proofs = proofs[max(0, len(proofs)-knownAccounts):]
	return id + "." + strings.Join(proofs, "."), knownTime, nil
}

// knows tells whether a cookie may be one of ours. The id is as long as those that we make,
// so that no browser brings a long one.
func (g *core) knows(cookie string) bool {
	id, proofs, ok := strings.Cut(cookie, ".")
	return ok && len(id) == len(seal.NewToken()) && strings.Count(proofs, ".") < knownAccounts
}

// IsKnown tells whether a browser with a cookie has signed in to the person's account before.
func (g SignIns) IsKnown(ctx context.Context, self access.Self, cookie string) (bool, error) {
	if err := self.Needs(); err != nil {
		return false, err
	}
	u, _, _, err := g.accounts.Users.Get(ctx, self.ID)
	return err == nil && g.browser(cookie, u.Email) != "", err
}

// browser returns the id of a browser that has signed in to the account with an address;
// "" for all others.
func (g *core) browser(cookie, email string) string {
	if !g.knows(cookie) {
		return ""
	}
	parts := strings.Split(cookie, ".")
	if slices.ContainsFunc(parts[1:], func(p string) bool { return g.proves(p, parts[0], email) }) {
		return parts[0]
	}
	return ""
}

func (g *core) proof(id, email string, expires postern.Time) string {
	until := strconv.FormatInt(int64(expires), 36)
	return until + "~" + base64.RawURLEncoding.EncodeToString(g.box.MAC(proofOf(id, until), email))
}

// proofOf is what the code in a proof is for.
func proofOf(id, until string) string { return "known browser " + id + " " + until }

// proves tells whether a part of a cookie was made for a browser and an address.
func (g *core) proves(part, id, email string) bool {
	until, text, _ := strings.Cut(part, "~")
	expires, err := strconv.ParseInt(until, 36, 64)
	if err != nil || postern.Time(expires) <= g.time() {
		return false
	}
	code, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && g.box.Verify(code, proofOf(id, until), email)
}
