// Package dash serves the dashboard: people sign in, and do by pages what
// programs do by the API, under the same rules. What a page shows and changes goes
// through package gateway as a caller with the scopes of the member's role.
package dash

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/mail"
	"postern/internal/oidc"
	"postern/internal/people"
	"postern/internal/postern"

	"github.com/alexedwards/scs/v2"
)

const (
	idleTime    = 12 * time.Hour     // a browser that asks for nothing is signed out after it
	sessionTime = 7 * 24 * time.Hour // and every browser after this
	maxForm     = 64 << 10           // bytes
)

// Options configure the dashboard.
type Options struct {
	Gateway *gateway.Gateway
	People  *people.People
	Log     *slog.Logger
	BaseURL string                     // where callers reach the API
	Secure  bool                       // browsers come by HTTPS
	Kept    gateway.Retention          // how long the server keeps things
	Address func(*http.Request) string // where a request comes from
	// Saw is told for the log which page a request is for, and, once that is known,
	// who asks for it.
	Saw func(ctx context.Context, pattern string, m postern.Member)
	// Server is asked for what the process knows of itself; nil when it tells nothing.
	Server func() Server
	// SignOn is where people may sign in beside here; nil is nowhere.
	SignOn *oidc.Provider
	// Mail takes the mail of the dashboard; without it links are shown, to be passed on.
	Mail *mail.Server
	// Later runs what goes on after its request was answered; nil is a goroutine that
	// nobody waits for.
	Later func(func())
}

// dash is the dashboard.
type dash struct {
	g        *gateway.Gateway
	p        *people.People
	log      *slog.Logger
	base     string
	kept     gateway.Retention
	address  func(*http.Request) string
	saw      func(context.Context, string, postern.Member)
	server   func() Server
	sessions *scs.SessionManager
	signOn   *oidc.Provider
	mux      *http.ServeMux
	mail     *mail.Server
	later    func(func())
	mailing  chan struct{} // has a place for each mail that nobody waits for
	exports  sync.Map      // by their readers: the files that are being written
}

// Handler serves every path of the dashboard, and a page that says so for those
// that are none.
func Handler(opts Options) http.Handler {
	d := &dash{g: opts.Gateway, p: opts.People, log: opts.Log, base: opts.BaseURL, kept: opts.Kept, address: opts.Address, saw: opts.Saw, server: opts.Server, sessions: newSessions(opts), signOn: opts.SignOn, mux: http.NewServeMux(), mail: opts.Mail, later: opts.Later, mailing: make(chan struct{}, mailsAtOnce)}
	if d.saw == nil {
		d.saw = func(context.Context, string, postern.Member) {}
	}
	if d.later == nil {
		d.later = func(f func()) { go f() }
	}
	d.routes()
	h := remembering(d.sessions.LoadAndSave(http.NewCrossOriginProtection().Handler(d.mux)))
	outer := http.NewServeMux() // files need no session
	outer.Handle("/assets/", page.Assets())
	outer.Handle("/", headed(opts.Secure, h))
	return outer
}

// headed sets the headers of every page.
func headed(secure bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": page.Policy, "Cache-Control": "no-store", "Referrer-Policy": "same-origin", "X-Robots-Tag": "noindex, nofollow",
			"X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin", "X-Frame-Options": "DENY",
		} {
			w.Header().Set(name, value)
		}
		if secure {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		// All of a form is read before anybody asks who sends it: a request that is
		// held open keeps no rights.
		if err := readForm(r); err != nil {
			http.Error(w, "the form is too long, or is none", http.StatusBadRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func readForm(r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.ContentLength != 0 && r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return errors.New("no form")
	}
	return r.ParseForm()
}

// routes names for each page who may see it. What is not named is not served.
func (d *dash) routes() {
	d.enterRoutes()
	d.overviewRoutes()
	d.member("GET /devices", d.devices, postern.DevicesRead)
	d.member("GET /devices/new", d.newDevice, postern.DevicesWrite)
	d.member("POST /devices", d.createDevice, postern.DevicesWrite)
	d.member("GET /devices/{id}", d.device, postern.DevicesRead)
	d.member("POST /devices/{id}/link", d.openLink, postern.DevicesWrite)
	d.member("POST /devices/{id}/link/cancel", d.cancelLink, postern.DevicesWrite)
	d.member("POST /devices/{id}/link/page", d.shareLink, postern.DevicesWrite)
	d.member("POST /devices/{id}/pause", d.pauseDevice, postern.DevicesWrite)
	d.member("POST /devices/{id}/resume", d.resumeDevice, postern.DevicesWrite)
	d.member("POST /devices/{id}/unlink", d.unlinkDevice, postern.DevicesWrite)
	d.member("GET /devices/{id}/phone", d.phone, postern.SandboxWrite, postern.MessagesRead)
	d.member("POST /devices/{id}/phone/scan", d.phoneScans, postern.SandboxWrite)
	d.member("POST /devices/{id}/phone/write", d.contactWrites, postern.SandboxWrite, postern.MessagesRead)
	d.member("POST /devices/{id}/phone/read/{message}", d.contactReads, postern.SandboxWrite)
	d.member("POST /devices/{id}/phone/fault", d.phoneFails, postern.SandboxWrite)
	d.messageRoutes()
	d.deviceRoutes()
	d.webhookRoutes()
	d.member("GET /keys", d.keys) // these ask for a role, not for a scope: see gateway.Keys
	d.member("GET /keys/new", d.newKey)
	d.member("POST /keys", d.createKey)
	d.member("POST /keys/{id}/rotate", d.rotateKey)
	d.member("POST /keys/{id}/revoke", d.revokeKey)
	d.member("GET /people", d.people) // these too
	d.member("GET /people/audit", d.audit)
	d.member("POST /people/invitations", d.invite)
	d.member("POST /people/invitations/{id}/revoke", d.revokeInvitation)
	d.member("POST /people/{id}/role", d.changeRole)
	d.member("POST /people/{id}/remove", d.removeMember)
	d.member("GET /account", d.account)
	d.member("POST /account/password", d.changePassword)
	d.member("POST /account/sessions", d.endSessions)
	d.factorRoutes()
	d.workspaceRoutes()

	d.open("/", func(w http.ResponseWriter, r *http.Request) error {
		return postern.Errorf(postern.NotFound, "there is no such page")
	})
}
