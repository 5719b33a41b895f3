package people

import (
	"context"
	"encoding/hex"
	"strings"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
)

// Actor is the actor that a user is on the pages of operators. To all others
// there are no such pages.
func (g Operators) Actor(ctx context.Context, self access.Self) (access.Actor, error) {
	if err := self.Needs(); err != nil {
		return access.Actor{}, err
	}
	u, _, ok, err := g.db.Users.Get(ctx, self.ID)
	if err == nil && (!ok || !u.Operator) {
		err = access.NoPage()
	}
	if err != nil {
		return access.Actor{}, err
	}
	return access.AsOperator(u, self.Address), nil
}

// OperatorChange makes a user an operator, or takes that back.
type OperatorChange struct {
	Email  string `json:"email"`
	Remove bool   `json:"remove"`
}

// Set changes who is an operator. It takes the server's own socket: someone who takes
// over the account of an operator must not make others.
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
	return g.db.Users.SetOperator(ctx, email, !in.Remove, act(by, g.time(), "", name, ""))
}

// User shows operators one user, with the second factors.
func (g Operators) User(
	ctx context.Context, by access.Actor, id postern.UserID,
) (u postern.User, f Factors, err error) {
	if err := by.NeedsOperator(); err != nil {
		return u, f, err
	}
	u, _, ok, err := g.db.Users.Get(ctx, id)
	if err == nil && !ok {
		err = postern.Errorf(postern.NotFound, "there is no such user")
	}
	if err != nil {
		return u, f, err
	}
	f, err = SecondFactors(g).of(ctx, id)
	return u, f, err
}

// Person is a user with what operators see of one.
type Person = store.Person

const everywhere = postern.WorkspaceID("operators") // whose cursors are those of lists of the whole server

// Users lists to operators the users that have a text in their address.
func (g Operators) Users(
	ctx context.Context, by access.Actor, text string, p paging.Page,
) (paging.List[Person], error) {
	if err := by.NeedsOperator(); err != nil {
		return paging.List[Person]{}, err
	}
	sp, err := g.open(everywhere, "persons", p)
	if err != nil {
		return paging.List[Person]{}, err
	}
	after, err := hex.DecodeString(sp.After) // an address has points, and a cursor's place has none
	if err != nil {
		return paging.List[Person]{}, err
	}
	rows, err := g.db.Users.List(
		ctx, strings.ToLower(strings.TrimSpace(text)), namesShown, store.Page{After: string(after), Limit: sp.Limit},
	)
	return paging.Cut(
		g.cursors,
		everywhere,
		"persons",
		rows,
		sp.Limit,
		func(u Person) string { return hex.EncodeToString([]byte(u.Email)) },
	), err
}
