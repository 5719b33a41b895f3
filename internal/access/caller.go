// Package access says who makes a request and what they may do: callers with scopes
// and device lists, actors with roles. The packages with the rules, gateway and
// people, call its checks; the entry points only establish who the caller is.
package access

import (
	"slices"

	"postern/internal/postern"
)

// Caller is the maker of a request: a key and what its workspace is entitled to. A
// member in the dashboard is a caller too, with a key that has the scopes of the role
// and no secret.
type Caller struct {
	Key     postern.Key
	Plan    postern.Plan
	Member  postern.Member // zero for an API key
	Address string         // of the member's browser
	Sure    bool           // the member has just signed in again at the identity provider

	operator bool // every scope, on every plan
}

// OperatorIn is the caller for an operator in a workspace: every scope and every
// device, on every plan.
func OperatorIn(ws postern.WorkspaceID, plan postern.Plan) Caller {
	return Caller{Key: postern.Key{WorkspaceID: ws, Scopes: postern.Scopes()}, Plan: plan, operator: true}
}

// Workspace is the workspace that the caller belongs to.
func (c Caller) Workspace() postern.WorkspaceID { return c.Key.WorkspaceID }

// Permit checks that there is a caller, then the plan, then the scopes: it returns
// Unauthorized, PlanWithoutAPI or MissingScope.
func (c Caller) Permit(scopes ...postern.Scope) error {
	if c.Key.WorkspaceID == "" {
		return errNobody
	}
	if !c.Plan.API && c.Member.UserID == "" && !c.operator {
		return errPlanWithoutAPI
	}
	for _, s := range scopes {
		if !c.Key.Has(s) {
			return c.lacks(s)
		}
	}
	return nil
}

// PermitWebhooks is [Caller.Permit] for what makes the server post to an endpoint. Only
// plans with the API have webhooks, for members and operators too.
func (c Caller) PermitWebhooks(scopes ...postern.Scope) error {
	if c.Key.WorkspaceID != "" && !c.Plan.API {
		return errPlanWithoutAPI
	}
	return c.Permit(scopes...)
}

var (
	errNobody         = postern.Errorf(postern.Unauthorized, "sign in, or send an API key")
	errPlanWithoutAPI = postern.Errorf(
		postern.PlanWithoutAPI, "the workspace's plan does not include the API; change the plan",
	)
)

func (c Caller) lacks(s postern.Scope) error {
	if c.Member.UserID != "" {
		return postern.Errorf(postern.MissingScope,
			"your role in this workspace, %s, does not allow this; ask an admin", c.Member.Role)
	}
	return postern.Errorf(postern.MissingScope, "this key lacks the scope %s; create a key that has it", s)
}

// PermitWhole is [Caller.Permit] for figures about all devices together. A key that
// is limited to devices is refused.
func (c Caller) PermitWhole(scopes ...postern.Scope) error {
	if err := c.Permit(scopes...); err != nil {
		return err
	}
	if c.Key.Devices != nil {
		return postern.Errorf(
			postern.ResourceNotAllowed,
			"this key is limited to certain devices; "+
				"figures of the whole workspace need a key without a device list",
		)
	}
	return nil
}

// Allow checks the key's list of devices.
func (c Caller) Allow(id postern.DeviceID) error {
	if !c.Key.Allows(id) {
		return postern.Errorf(postern.ResourceNotAllowed, "this key may not use that device")
	}
	return nil
}

// Covers tells whether the caller may use all of a list of devices; nil is every
// device of the workspace.
func (c Caller) Covers(devices []postern.DeviceID) bool {
	if c.Key.Devices == nil {
		return true
	}
	return devices != nil && !slices.ContainsFunc(devices, func(id postern.DeviceID) bool { return !c.Key.Allows(id) })
}

// Actor is the actor that a member in the dashboard is. An API key is no actor.
func (c Caller) Actor() Actor { return Actor{Member: c.Member, Address: c.Address} }
