package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/people"
	"postern/internal/postern"
)

// The commands talk to a running server over a socket in the data directory. Only the
// owner of the directory can open the socket, so every caller has the operator's rights.

// maxSocketPath is the kernel's limit (unix(7): sun_path has 108 bytes).
const maxSocketPath = 107

// listenSocket creates the socket. The caller holds the directory's lock, so an existing
// socket was left by a process that has ended.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of the data directory is too long for its socket: %d bytes, at most %d",
			len(path), maxSocketPath)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove an old socket: %w", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on the command socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// adminHandler serves the commands. base is the URL at which browsers reach the server,
// or "" if only a command runs.
func adminHandler(g *gateway.Gateway, p *people.People, base string) *http.ServeMux {
	mux := http.NewServeMux()
	userCommands(mux, p, base)
	mux.HandleFunc("POST /workspaces", admin(func(r *http.Request, in newWorkspace) (any, error) {
		return g.Workspaces.Create(r.Context(), access.Operator(), gateway.NewWorkspace{Name: in.Name, Plan: in.Plan})
	}))
	mux.HandleFunc("GET /workspaces", admin(func(r *http.Request, _ none) (any, error) {
		return g.Workspaces.List(r.Context(), access.Operator())
	}))
	mux.HandleFunc("PUT /workspaces/{ws}/plan", admin(func(r *http.Request, in newPlan) (any, error) {
		return none{}, g.Workspaces.SetPlan(r.Context(), access.Operator(), workspaceOf(r), in.Plan)
	}))
	mux.HandleFunc("PUT /workspaces/{ws}/limits", admin(func(r *http.Request, in postern.Limits) (any, error) {
		return g.Workspaces.ChangeLimits(r.Context(), access.Operator(), workspaceOf(r), in)
	}))
	rotate := func(r *http.Request, in gateway.Rotation) (any, error) {
		id := postern.KeyID(r.PathValue("key"))
		key, secret, err := g.Keys.Rotate(r.Context(), access.Operator(), workspaceOf(r), id, in)
		if err != nil {
			return nil, err
		}
		old, err := g.Keys.Get(r.Context(), access.Operator(), workspaceOf(r), id)
		if err != nil { // the secret is shown all the same
			old.ExpiresAt = key.CreatedAt.Add(in.Overlap)
		}
		return NewKey{Key: key, Secret: secret, OldExpiresAt: old.ExpiresAt}, nil
	}
	mux.HandleFunc("POST /workspaces/{ws}/keys/{key}/rotate", admin(rotate))
	mux.HandleFunc("POST /workspaces/{ws}/keys", admin(func(r *http.Request, in gateway.NewKey) (any, error) {
		key, secret, err := g.Keys.Create(r.Context(), access.Operator(), workspaceOf(r), in)
		return NewKey{Key: key, Secret: secret}, err
	}))
	mux.HandleFunc("GET /workspaces/{ws}/keys", admin(func(r *http.Request, _ none) (any, error) {
		return g.Keys.ListForOperator(r.Context(), access.Operator(), workspaceOf(r))
	}))
	mux.HandleFunc("DELETE /workspaces/{ws}/keys/{key}", admin(func(r *http.Request, _ none) (any, error) {
		return none{}, g.Keys.Revoke(r.Context(), access.Operator(), workspaceOf(r), postern.KeyID(r.PathValue("key")))
	}))
	mux.HandleFunc("GET /workspaces/{ws}/devices", admin(func(r *http.Request, _ none) (any, error) {
		return g.Devices.ListForOperator(r.Context(), access.Operator(), workspaceOf(r))
	}))
	deviceCommands(mux, g, base)
	webhookCommands(mux, g)
	messageCommands(mux, g)
	return mux
}

func secretKeyCommands(mux *http.ServeMux, k *secretKeys) {
	mux.HandleFunc("GET /secret-keys", admin(func(r *http.Request, _ none) (any, error) {
		err := k.refresh(r.Context())
		return k.show(), err
	}))
	mux.HandleFunc("POST /secret-keys/unneeded", admin(func(r *http.Request, in unneededIn) (any, error) {
		return k.unneeded(r.Context(), in.Lost)
	}))
}

// LinkPage is the address of a page that leads through a link attempt.
type LinkPage struct {
	URL string `json:"url"`
}

func deviceCommands(mux *http.ServeMux, g *gateway.Gateway, base string) {
	create := func(r *http.Request, c access.Caller, in newDevice) (any, error) {
		made, err := g.Devices.Create(r.Context(), c, gateway.NewDevice{Name: in.Name}, nil)
		return made.Value, err
	}
	get := func(r *http.Request, c access.Caller, _ none) (any, error) {
		return g.Devices.Get(r.Context(), c, deviceOf(r))
	}
	openLink := func(r *http.Request, c access.Caller, in gateway.NewLink) (any, error) {
		made, err := g.Links.Open(r.Context(), c, deviceOf(r), in, nil)
		return made.Value, err
	}
	openLinkPage := func(r *http.Request, c access.Caller, _ none) (any, error) {
		made, err := g.LinkPages.Open(r.Context(), c, deviceOf(r), nil)
		return LinkPage{base + "/link/" + made.Value.Token}, err
	}
	getLink := func(r *http.Request, c access.Caller, _ none) (any, error) {
		return g.Links.Get(r.Context(), c, deviceOf(r))
	}
	mux.HandleFunc("POST /workspaces/{ws}/devices", admin(operator(g, create)))
	mux.HandleFunc("GET /workspaces/{ws}/devices/{id}", admin(operator(g, get)))
	drop := func(r *http.Request, c access.Caller, _ none) (any, error) {
		return none{}, g.Devices.Delete(r.Context(), c, deviceOf(r))
	}
	mux.HandleFunc("DELETE /workspaces/{ws}/devices/{id}", admin(operator(g, drop)))
	mux.HandleFunc("POST /workspaces/{ws}/devices/{id}/link", admin(operator(g, openLink)))
	mux.HandleFunc("GET /workspaces/{ws}/devices/{id}/link", admin(operator(g, getLink)))
	mux.HandleFunc("POST /workspaces/{ws}/devices/{id}/link/page", admin(operator(g, openLinkPage)))
}

func webhookCommands(mux *http.ServeMux, g *gateway.Gateway) {
	create := func(r *http.Request, c access.Caller, in gateway.NewEndpoint) (any, error) {
		made, err := g.Webhooks.Create(r.Context(), c, in, nil)
		return made.Value, err
	}
	list := func(r *http.Request, c access.Caller, _ none) (any, error) {
		list, err := g.Webhooks.List(r.Context(), c, paging.Page{Limit: maxEndpointsShown})
		return list.Data, err
	}
	mux.HandleFunc("POST /workspaces/{ws}/webhooks", admin(operator(g, create)))
	mux.HandleFunc("GET /workspaces/{ws}/webhooks", admin(operator(g, list)))
}

func userCommands(mux *http.ServeMux, p *people.People, base string) {
	answer := func(u postern.User, token string, err error) (any, error) {
		made := NewUser{ID: u.ID, Email: u.Email}
		if token != "" {
			made.Link = base + "/join/" + token
		}
		return made, err
	}
	mux.HandleFunc("POST /workspaces/{ws}/users", admin(func(r *http.Request, in people.NewUser) (any, error) {
		return answer(p.Users.Create(r.Context(), access.Operator(), workspaceOf(r), in))
	}))
	mux.HandleFunc("GET /workspaces/{ws}/users", admin(func(r *http.Request, _ none) (any, error) {
		return p.Members.List(r.Context(), access.Operator(), workspaceOf(r))
	}))
	mux.HandleFunc("POST /users/setup", admin(func(r *http.Request, _ none) (any, error) {
		token, err := p.Users.OpenSetUp(r.Context(), access.Operator())
		if token == "" {
			return NewUser{}, err
		}
		return NewUser{Link: base + "/setup/" + token}, err
	}))
	mux.HandleFunc("PUT /users/operator", admin(func(r *http.Request, in people.OperatorChange) (any, error) {
		return p.Operators.Set(r.Context(), access.Operator(), in)
	}))
	mux.HandleFunc("POST /users/reset-password", admin(func(r *http.Request, in people.Reset) (any, error) {
		return answer(p.PasswordLinks.Reset(r.Context(), access.Operator(), in))
	}))
}

// operator calls do with a caller that has every right in the workspace of the path.
func operator[In any](
	g *gateway.Gateway, do func(*http.Request, access.Caller, In) (any, error),
) func(*http.Request, In) (any, error) {
	return func(r *http.Request, in In) (any, error) {
		c, err := g.Workspaces.Caller(r.Context(), access.Operator(), workspaceOf(r))
		if err != nil {
			return nil, err
		}
		return do(r, c, in)
	}
}

const maxEndpointsShown = 200 // the endpoints of the largest plan

type (
	none         struct{}
	newWorkspace struct{ Name, Plan string }
	newPlan      struct{ Plan string }
	newDevice    struct{ Name string }
	unneededIn   struct{ Lost bool }
)

// NewUser is a user and the link at which the user chooses a password. The link is shown
// only once. It is "" if the user already has a password, and a path without a host if no
// server is running.
type NewUser struct {
	ID    postern.UserID `json:"id"`
	Email string         `json:"email"`
	Link  string         `json:"link,omitempty"`
}

// NewKey is an API key with its secret, which is shown only once.
type NewKey struct {
	postern.Key
	Secret       string       `json:"key"`
	OldExpiresAt postern.Time `json:"oldExpiresAt"` // when the key that it replaces stops working
}

func workspaceOf(r *http.Request) postern.WorkspaceID {
	return postern.WorkspaceID(r.PathValue("ws"))
}

func deviceOf(r *http.Request) postern.DeviceID { return postern.DeviceID(r.PathValue("id")) }

// admin adapts a function to a handler: it decodes the request and encodes the result.
func admin[In any](do func(*http.Request, In) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		if r.Method == http.MethodPost || r.Method == http.MethodPut {
			dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&in); err != nil {
				adminAnswer(w, http.StatusBadRequest,
					postern.Errorf(postern.MalformedRequest, "the command's request cannot be read"))
				return
			}
		}
		out, err := do(r, in)
		adminResult(w, out, err)
	}
}

func adminResult(w http.ResponseWriter, out any, err error) {
	var e *postern.Error
	switch {
	case err == nil:
		adminAnswer(w, http.StatusOK, out)
	case errors.As(err, &e):
		adminAnswer(w, http.StatusConflict, e)
	default:
		adminAnswer(w, http.StatusInternalServerError, postern.Errorf(postern.Internal, "%v", err))
	}
}

func adminAnswer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) //nolint:errcheck,gosec // an error means that the command has ended
}
