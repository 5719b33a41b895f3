package app

import (
	"cmp"
	"context"
	"fmt"

	"postern/internal/alert"
	"postern/internal/egress"
	"postern/internal/mail"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store/alerts"
)

// openAlerts prepares how the people of workspaces are told what is wrong.
func (a *App) openAlerts(box *seal.Box, client *egress.Client) {
	a.alerts = alert.Options{
		Table: alerts.Of(a.db), Box: box, Now: a.db.Now, Log: a.log, After: cmp.Or(a.cfg.AlertAfter, alertAfter),
		Operator: map[alerts.Way]alert.Tell{},
		Post:     func(ws postern.WorkspaceID, url seal.Secret) alert.Tell { return alert.PostBy(client, ws, url) },
	}
}

// tellAlerts sets how the operator is told, and the mail of alerts, which names the dashboard.
func (a *App) tellAlerts() error {
	if a.cfg.AlertURL != "" {
		a.alerts.Operator[alerts.URL] = alert.Post(a.cfg.AlertURL)
	}
	if a.cfg.SMTPURL == "" {
		return nil
	}
	server, err := mail.New(a.cfg.SMTPURL)
	if err != nil {
		return fmt.Errorf("POSTERN_SMTP_URL: %w", err)
	}
	look := "Look at the dashboard: " + a.cfg.BaseURL
	if a.cfg.AlertMail != "" {
		a.alerts.Operator[alerts.Mail] = alert.Mail(server, a.cfg.AlertMail, look)
	}
	footer := fmt.Sprintf("%s\nAn admin of the workspace chose you to get this mail: %s/people/alerts", look, a.cfg.BaseURL)
	a.alerts.Mail = func(to string) alert.Tell { return alert.Mail(server, to, footer) }
	return nil
}

// testAlert posts a test to an address of a workspace.
func (a *App) testAlert(ctx context.Context, ws postern.Workspace, url seal.Secret) error {
	return a.alerts.Post(ws.ID, url)(ctx, alert.Test(ws.Name, a.db.Now()))
}
