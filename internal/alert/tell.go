package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"postern/internal/mail"
	"postern/internal/seal"
	"postern/internal/store/alerts"
)

// Post returns a way to tell: a POST of JSON to a URL of the operator.
func Post(url seal.Secret) func(context.Context, News) error {
	client := &http.Client{
		Timeout:       15 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, n News) error {
		body, err := json.Marshal(formOf(n))
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url.Reveal(), bytes.NewReader(body))
		if err != nil {
			return errors.New("POSTERN_ALERT_URL is not a URL")
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("User-Agent", "Postern")
		resp, err := client.Do(req)
		if err != nil {
			return errors.New("post alerts: the address in POSTERN_ALERT_URL cannot be reached") // err has the address
		}
		defer resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			return fmt.Errorf("post alerts: the address in POSTERN_ALERT_URL responds with %d", resp.StatusCode)
		}
		return nil
	}
}

// form is the body of a POST. Chat systems that take webhooks show text.
type form struct {
	Text   string      `json:"text"`
	At     string      `json:"at"`
	Alerts []alertForm `json:"alerts"`
}

type alertForm struct {
	State       string `json:"state"` // began or ended
	Kind        string `json:"kind"`
	Since       string `json:"since"`
	WorkspaceID string `json:"workspaceId"`
	Workspace   string `json:"workspace"`
	SubjectID   string `json:"subjectId"`
	Subject     string `json:"subject"`
	Detail      string `json:"detail"`
	Summary     string `json:"summary"`
}

func formOf(n News) form {
	f := form{Text: n.Text(), At: n.At.String(), Alerts: []alertForm{}}
	add := func(state string, list []alerts.Alert) {
		for _, a := range list {
			f.Alerts = append(f.Alerts, alertForm{
				state, string(a.Kind), a.Since.String(), string(a.WorkspaceID), a.Workspace, a.Subject, a.Name, a.Detail,
				sentence(a),
			})
		}
	}
	add("began", n.Began)
	add("ended", n.Ended)
	return f
}

// Mail returns a way to tell: a mail to an address of the operator.
func Mail(server *mail.Server, to, url string) func(context.Context, News) error {
	return func(ctx context.Context, n News) error {
		err := server.Send(ctx, mail.Message{
			To: to, Subject: "Postern: " + n.Title(),
			Text: n.Text() + "\nLook at the dashboard: " + url + "\n",
		})
		if err != nil {
			return fmt.Errorf("mail alerts: %w", err)
		}
		return nil
	}
}
