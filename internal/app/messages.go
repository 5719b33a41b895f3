package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
)

// NewMessage is a message that an operator sends.
type NewMessage struct {
	DeviceID postern.DeviceID
	To       string
	Kind     postern.Kind
	Text     string
	Media    postern.MediaID // of an uploaded file; "" for none
	Filename string          // of the file in the message; "" for its own
	Priority postern.Priority
}

func messageCommands(mux *http.ServeMux, g *gateway.Gateway) {
	send := func(r *http.Request, c access.Caller, in NewMessage) (any, error) {
		m := gateway.NewMessage{
			DeviceID: in.DeviceID, To: in.To, Content: postern.Content{Kind: in.Kind, Text: in.Text}, WhenDisconnected: "queue",
			Priority: in.Priority,
		}
		if in.Media != "" {
			m.Media = &gateway.NewMedia{ID: in.Media, Filename: in.Filename}
		}
		made, err := g.Messages.Send(r.Context(), c, m, nil)
		if m.Media != nil && isRefusal(err) {
			err = errors.Join(err, g.Media.Delete(r.Context(), c, in.Media)) // it was uploaded for this message
		}
		return made.Value, err
	}
	mux.HandleFunc("POST /workspaces/{ws}/messages", admin(operator(g, send)))
	mux.HandleFunc("POST /workspaces/{ws}/media", func(w http.ResponseWriter, r *http.Request) {
		c, err := g.Workspaces.Caller(r.Context(), access.Operator(), workspaceOf(r))
		if err != nil {
			adminResult(w, nil, err)
			return
		}
		file, err := g.Media.Upload(r.Context(), c, r.Body, r.URL.Query().Get("filename"), nil)
		adminResult(w, file.Value, err)
	})
}

// isRefusal reports that nothing happened, and not that the outcome is unknown.
func isRefusal(err error) bool {
	reason := postern.ReasonOf(err)
	return err != nil && reason != postern.Internal && reason != postern.Unavailable
}

// Upload stores a file for messages of a workspace.
func (c *Commands) Upload(ctx context.Context, ws, filename string, r io.Reader) (m postern.Media, err error) {
	err = c.post(ctx, "/workspaces/"+ws+"/media?filename="+url.QueryEscape(filename), r, &m)
	return m, err
}

// Send sends a message.
func (c *Commands) Send(ctx context.Context, ws string, in NewMessage) (id postern.MessageID, err error) {
	var m struct{ ID postern.MessageID }
	err = c.call(ctx, http.MethodPost, "/workspaces/"+ws+"/messages", in, &m)
	return m.ID, err
}

// post sends a body that is not JSON.
func (c *Commands) post(ctx context.Context, path string, body io.Reader, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://postern"+path, body)
	if err != nil {
		return err
	}
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return readError(res)
	}
	return json.NewDecoder(res.Body).Decode(out)
}
