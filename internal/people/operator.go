package people

import (
	"context"
	"encoding/hex"
	"strings"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/accounts"
)

// Actor returns the actor for a person on the operators' pages. For everybody else these
// pages do not exist.
func (g Operators) Actor(ctx context.Context, self access.Self) (access.Actor, error) {
	if err := self.Needs(); err != nil {
		return access.Actor{}, err
	}
	u, _, ok, err := g.accounts.Users.Get(ctx, self.ID)
	if err == nil && (!ok || !u.Operator) {
		err = access.NoPage()
	}
	if err != nil {
		return access.Actor{}, err
	}
	a := access.AsOperator(u, self.Address)
	a.Sure = self.Sure
	return a, nil
}

// OperatorChange sets or removes a user's operator flag.
type OperatorChange struct {
	Email  string `json:"email"`
	Remove bool   `json:"remove"`
}

// Set changes who is an operator. It needs the server's own socket: someone who takes over
// the account of an operator must not be able to create more.
func (g Operators) Set(ctx context.Context, by access.Actor, in OperatorChange) (postern.User, error) {
	if err := by.NeedsSocket(); err != nil {
		return postern.User{}, err
	}
	email, err := CheckEmail(in.Email)
	if err != nil {
		return postern.User{}, err
	}
	name := "user.made-operator"
	if in.Remove {
		name = "user.no-operator"
	}
	return g.accounts.Users.SetOperator(ctx, email, !in.Remove, act(by, g.time(), "", name, ""))
}

// User shows operators one user and the user's second factors.
func (g Operators) User(
	ctx context.Context, by access.Actor, id postern.UserID,
) (u postern.User, f Factors, err error) {
	if err := by.NeedsOperator(); err != nil {
		return u, f, err
	}
	u, _, ok, err := g.accounts.Users.Get(ctx, id)
	if err == nil && !ok {
		err = postern.Errorf(postern.NotFound, "there is no such user")
	}
	if err != nil {
		return u, f, err
	}
	f, err = SecondFactors(g).of(ctx, id)
	return u, f, err
}

// Person is a user as shown to operators.
type Person = accounts.Person

// Users lists to operators the users whose email address contains a text. A page may be
// short although there is a next one.
func (g Operators) Users(
	ctx context.Context, by access.Actor, text string, p paging.Page,
) (paging.List[Person], error) {
	if err := by.NeedsOperator(); err != nil {
		return paging.List[Person]{}, err
	}
	sp, err := g.open(paging.Everywhere, "persons", p)
	if err != nil {
		return paging.List[Person]{}, err
	}
	after, err := hex.DecodeString(sp.After) // hexadecimal, because a cursor's place must not contain dots
	if err != nil {
		return paging.List[Person]{}, err
	}
	f, err := g.accounts.Users.List(
		ctx, strings.ToLower(strings.TrimSpace(text)), namesShown,
		store.Page{After: string(after), Limit: sp.Limit - 1},
	)
	if err != nil || !f.More {
		return paging.List[Person]{Data: f.List}, err
	}
	next := g.cursors.At(paging.Everywhere, "persons", hex.EncodeToString([]byte(f.Last)))
	return paging.List[Person]{Data: f.List, Next: next}, nil
}
