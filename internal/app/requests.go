package app

import (
	"regexp"
	"strings"
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
		ID: s.ID, At: postern.TimeOf(time.Now()), Method: s.Method, Path: withoutPeople(s.Path), Status: s.Status,
		Reason: s.Reason, Millis: s.Took.Milliseconds(), Key: postern.KeyID(s.KeyID),
	}
	if s.Client.IsValid() {
		r.Client = s.Client.String()
	}
	a.requests.Add(postern.WorkspaceID(s.Workspace), r)
}

// plain is a part of a path that names nobody: a word of a route, or one of our ids.
var plain = regexp.MustCompile(`^([a-z-]*|v1|[a-z]{2,4}_[0-9A-Za-z]{26})$`)

// withoutPeople replaces the parts of a path that may name people, such as numbers of chats.
func withoutPeople(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if !plain.MatchString(p) {
			parts[i] = "…"
		}
	}
	return strings.Join(parts, "/")
}
