package app

import (
	"cmp"
	"fmt"

	"postern/internal/alert"
	"postern/internal/mail"
	"postern/internal/store/alerts"
)

// tellAlerts sets how the operator is told what is wrong.
func (a *App) tellAlerts() error {
	if a.cfg.AlertURL != "" {
		a.alerts = append(a.alerts, alert.Post(a.cfg.AlertURL))
	}
	if a.cfg.AlertMail != "" {
		server, err := mail.New(a.cfg.SMTPURL)
		if err != nil {
			return fmt.Errorf("POSTERN_SMTP_URL: %w", err)
		}
		a.alerts = append(a.alerts, alert.Mail(server, a.cfg.AlertMail, a.cfg.BaseURL))
	}
	return nil
}

// watcher returns what tells the operator.
func (a *App) watcher() *alert.Watcher {
	return alert.New(alert.Options{
		Table: alerts.Of(a.db), Now: a.db.Now, Log: a.log, After: cmp.Or(a.cfg.AlertAfter, alertAfter), Tell: a.alerts,
	})
}
