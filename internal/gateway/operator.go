package gateway

import (
	"context"
	"fmt"
	"strings"

	"postern/internal/postern"
	"postern/internal/store"
)

// Actor is the actor that a user is on the pages of operators. To all others
// there are no such pages.
func (g Operators) Actor(ctx context.Context, id postern.UserID, address string) (Actor, error) {
	u, _, ok, err := g.db.Users.Get(ctx, id)
	if err == nil && (!ok || !u.Operator) {
		err = errNoPage
	}
	if err != nil {
		return Actor{}, err
	}
	return Actor{Member: postern.Member{UserID: u.ID, Email: u.Email, Operator: true}, Address: address, operator: true}, nil
}

var errNoPage = postern.Errorf(postern.NotFound, "there is no such page")

// needsOperator refuses whoever is none.
func (a Actor) needsOperator() error {
	if !a.operator {
		return errNoPage
	}
	return nil
}

// stillOperator is asked in the transaction of a change.
func (a Actor) stillOperator(s store.Standing) bool {
	return a.operator && (a.Member.UserID == "" || s.Operator)
}

// OperatorChange makes a user an operator, or takes that back.
type OperatorChange struct {
	Email  string `json:"email"`
	Remove bool   `json:"remove"`
}

// Set changes who is an operator. Nobody does it in the dashboard: whoever
// takes over the account of an operator must not make others.
func (g Operators) Set(ctx context.Context, in OperatorChange) (postern.User, error) {
	email, err := checkEmail(in.Email)
	if err != nil {
		return postern.User{}, err
	}
	act := "user.made-operator"
	if in.Remove {
		act = "user.no-operator"
	}
	return g.db.Users.SetOperator(ctx, email, !in.Remove, Operator().act(g.time(), "", act, ""))
}

// NewWorkspace describes a workspace to make.
type NewWorkspace struct {
	Name  string
	Plan  string
	Owner string // the e-mail address of whom to invite as its owner; "": nobody
}

// OpenWorkspace makes a workspace, and an invitation to own it when somebody is
// named, whose token is in the answer and nowhere else.
func (g Operators) OpenWorkspace(ctx context.Context, by Actor, in NewWorkspace) (ws postern.Workspace, token string, err error) {
	if err := by.needsOperator(); err != nil {
		return ws, "", err
	}
	if err := checkName("/name", in.Name); err != nil {
		return ws, "", err
	}
	if err := checkPlan(in.Plan); err != nil {
		return ws, "", err
	}
	if in.Owner != "" {
		if _, err := checkEmail(in.Owner); err != nil {
			return ws, "", err
		}
	}
	ws = postern.Workspace{ID: postern.NewWorkspaceID(), Name: in.Name, Plan: in.Plan, CreatedAt: g.time()}
	if err := g.db.Workspaces.Create(ctx, ws, by.actOn(ws.CreatedAt, ws.ID, "workspace.created", in.Name)); err != nil || in.Owner == "" {
		return ws, "", err
	}
	_, token, err = g.invitations().Create(ctx, by, ws.ID, NewInvitation{Email: in.Owner, Role: postern.Owner})
	return ws, token, err
}

// actOn is what the audit log keeps of an operator's act on a workspace; what says
// to what it was changed.
func (a Actor) actOn(at postern.Time, ws postern.WorkspaceID, act, what string) store.Act {
	o := a.act(at, ws, act, string(ws))
	o.Name = what
	return o
}

// SetPlan changes what a workspace is entitled to.
func (g Operators) SetPlan(ctx context.Context, by Actor, id postern.WorkspaceID, plan string) error {
	if err := by.needsOperator(); err != nil {
		return err
	}
	if err := checkPlan(plan); err != nil {
		return err
	}
	p, _ := postern.PlanByName(plan)
	now := g.time()
	return g.db.Workspaces.SetPlan(ctx, id, p, now, by.actOn(now, id, "workspace.plan-changed", plan))
}

// ChangeLimits gives a workspace figures of its own in place of those of its
// plan and of the server: nil leaves one as it is, a negative one gives it
// back.
func (g Operators) ChangeLimits(ctx context.Context, by Actor, id postern.WorkspaceID, change postern.Limits) (postern.Workspace, error) {
	if err := by.needsOperator(); err != nil {
		return postern.Workspace{}, err
	}
	if err := checkLimits(change); err != nil {
		return postern.Workspace{}, err
	}
	now := g.time()
	return g.db.Workspaces.ChangeLimits(ctx, id, change, now, by.actOn(now, id, "workspace.limits-changed", limitWords(change)))
}

func checkLimits(change postern.Limits) error {
	for pointer, n := range map[string]*int{"/messages": change.Messages, "/devices": change.Devices} {
		if n != nil && *n > maxLimit {
			return postern.Invalid(pointer, "at most %d", maxLimit)
		}
	}
	for pointer, n := range map[string]*int{"/eventDays": change.EventDays, "/messageDays": change.MessageDays} {
		if n != nil && (*n == 0 || *n > maxDays) {
			return postern.Invalid(pointer, "from 1 to %d days", maxDays)
		}
	}
	return nil
}

// limitWords says for the audit log what was changed.
func limitWords(change postern.Limits) string {
	var list []string
	for _, c := range []struct {
		name string
		n    *int
	}{{"messages", change.Messages}, {"devices", change.Devices}, {"days of events", change.EventDays}, {"days of messages", change.MessageDays}} {
		switch {
		case c.n == nil:
		case *c.n < 0:
			list = append(list, c.name+" given back")
		default:
			list = append(list, fmt.Sprint(c.name, " ", *c.n))
		}
	}
	return strings.Join(list, ", ")
}
