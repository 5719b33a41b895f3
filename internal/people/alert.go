package people

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store/alerts"
)

const (
	alertTests = 20 // of a workspace in an hour
	alertMails = 20 // members of a workspace who get its alerts by mail
)

// AlertSettings say who in a workspace is told what is wrong with its devices and webhook endpoints.
type AlertSettings struct {
	Host     string       // of the address that alerts are posted to; "": none
	FailedAt postern.Time // since when alerts cannot be posted; 0 once one could
	Reason   string       // why they cannot: one of the reasons of attempts to deliver
	Members  []postern.UserID
}

// Get returns the settings of a workspace. The address is not shown again: in chat systems it is a secret. Members need
// the role admin.
func (g Alerts) Get(ctx context.Context, by access.Actor, ws postern.WorkspaceID) (s AlertSettings, err error) {
	if err := by.Needs(ws, postern.Admin); err != nil {
		return s, err
	}
	a, err := g.table().Address(ctx, ws)
	if err != nil {
		return s, err
	}
	s = AlertSettings{Host: a.Host, FailedAt: a.FailedAt, Reason: a.Reason}
	s.Members, err = g.table().Members(ctx, ws)
	return s, err
}

// SetURL changes where alerts of a workspace are posted to; "" removes it. Members need the role admin.
func (g Alerts) SetURL(ctx context.Context, by access.Actor, ws postern.WorkspaceID, raw string) error {
	if err := by.Needs(ws, postern.Admin); err != nil {
		return err
	}
	raw, a, name := strings.TrimSpace(raw), alerts.Address{}, "workspace.alert-url-removed"
	if raw != "" {
		if err := g.checkURL(raw); err != nil {
			return postern.Invalid("/url", "%s", err)
		}
		u, err := url.Parse(raw)
		if err != nil {
			return postern.Invalid("/url", "write a URL such as https://hooks.example.com/postern")
		}
		a = alerts.Address{URL: g.box.Seal([]byte(raw), ws.AlertPlace()), Host: u.Host}
		name = "workspace.alert-url-changed"
	}
	return g.table().SetAddress(ctx, a, by.Holds(postern.Admin), act(by, g.time(), ws, name, string(ws)))
}

// SetMembers changes which members get the alerts of a workspace by mail. Members need the role admin.
func (g Alerts) SetMembers(ctx context.Context, by access.Actor, ws postern.WorkspaceID, list []postern.UserID) error {
	if err := by.Needs(ws, postern.Admin); err != nil {
		return err
	}
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	if len(list) > alertMails {
		return postern.Invalid("/members", "choose at most %d members", alertMails)
	}
	return g.table().SetMembers(ctx, list, by.Holds(postern.Admin),
		act(by, g.time(), ws, "workspace.alert-mails-changed", string(ws)))
}

// Test posts a test to the address of a workspace, and returns the reason if that fails, one of those of attempts to
// deliver. Members need the role admin.
func (g Alerts) Test(ctx context.Context, by access.Actor, ws postern.WorkspaceID) (reason string, err error) {
	if err := by.Needs(ws, postern.Admin); err != nil {
		return "", err
	}
	err = g.alertTests.Take(ctx, string(ws), "too many tests; wait a few minutes")
	if err != nil {
		return "", err
	}
	a, err := g.table().Address(ctx, ws)
	if err != nil {
		return "", err
	}
	if a.URL == nil {
		return "", postern.Invalid("/url", "enter the address first")
	}
	url, err := g.box.Open(a.URL, ws.AlertPlace())
	if err != nil {
		return "", err
	}
	w, err := g.db.Workspaces.Get(ctx, ws)
	if err != nil {
		return "", err
	}
	return g.post(ctx, w, a, seal.Secret(url))
}

// post posts a test, and notes the result.
func (g Alerts) post(
	ctx context.Context, ws postern.Workspace, a alerts.Address, url seal.Secret,
) (reason string, err error) {
	err = g.testAlert(ctx, ws, url)
	if refused, ok := errors.AsType[interface {
		error
		Reason() string
	}](err); ok {
		reason, err = refused.Reason(), nil
	}
	if err != nil {
		return "", err
	}
	return reason, g.table().Posted(ctx, ws.ID, a.URL, g.time(), reason)
}

func (g Alerts) table() alerts.Table { return alerts.Of(g.db) }
