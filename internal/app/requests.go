package app

import (
	"time"

	"postern/internal/obs"
	"postern/internal/postern"
	"postern/internal/store/apilog"
)

// record keeps an API request for the log of its workspace. One without a valid key belongs to none.
func (a *App) record(s obs.Served) {
	if s.KeyID == "" || s.Workspace == "" {
		return
	}
	r := apilog.Request{
		ID: s.ID, At: postern.TimeOf(time.Now()), Method: s.Method, Path: s.Path, Status: s.Status, Reason: s.Reason,
		Millis: s.Took.Milliseconds(), Key: postern.KeyID(s.KeyID),
	}
	if s.Client.IsValid() {
		r.Client = s.Client.String()
	}
	a.requests.Add(postern.WorkspaceID(s.Workspace), r)
}
