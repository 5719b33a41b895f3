package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"postern/internal/egress"
	"postern/internal/mail"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store/alerts"
)

// Post returns a way to tell: a POST of JSON to a URL of the operator, which may be in a private network.
func Post(url seal.Secret) Tell {
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

// PostBy returns a way to tell: a POST of JSON to a URL that a workspace has chosen.
func PostBy(client *egress.Client, ws postern.WorkspaceID, url seal.Secret) Tell {
	return func(ctx context.Context, n News) error {
		body, err := json.Marshal(formOf(n))
		if err != nil {
			return err
		}
		header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Postern"}}
		_, err = client.Post(ctx, string(ws), url.Reveal(), header, body)
		if err != nil {
			return &RefusedError{reason: egressReason(err)}
		}
		return nil
	}
}

// RefusedError is returned if an alert could not be posted to the address of a workspace.
type RefusedError struct{ reason string }

func (e *RefusedError) Error() string { return "post alerts: " + e.reason }

// Reason is why: one of the reasons for which an attempt to deliver a webhook fails.
func (e *RefusedError) Reason() string { return e.reason }

func egressReason(err error) string {
	if e, ok := errors.AsType[*egress.Error](err); ok {
		return string(e.Reason)
	}
	return string(egress.Timeout)
}

// reasonOf returns the reason of a [RefusedError], "" if there is no error.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*RefusedError](err); ok {
		return e.reason
	}
	return ""
}

// Test is what an admin of a workspace sends to see that alerts arrive.
func Test(workspace string, at postern.Time) News {
	return News{At: at, Note: fmt.Sprintf("This is a test. Postern tells here what is wrong with devices and webhook "+
		"endpoints of the workspace %q, and when it is over.", workspace)}
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

// Mail returns a way to tell: a mail to the operator, or to a member of a workspace. Its text ends with a footer.
func Mail(server *mail.Server, to, footer string) Tell {
	return func(ctx context.Context, n News) error {
		err := server.Send(ctx, mail.Message{
			To: to, Subject: "Postern: " + n.Title(), Text: n.Text() + "\n" + footer + "\n",
		})
		if err != nil {
			return fmt.Errorf("mail alerts: %w", err)
		}
		return nil
	}
}
