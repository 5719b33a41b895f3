// Package dash serves the dashboard, on which people do what programs do with the API, under
// the same rules. Pages call package gateway with the scopes of the member's role, and package
// people for accounts.
package dash

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/mail"
	"postern/internal/oidc"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/ratelimit"

	"github.com/alexedwards/scs/v2"
)

const (
	idleTime    = 12 * time.Hour     // an idle browser is signed out after it
	sessionTime = 7 * 24 * time.Hour // and every browser after this one
	maxForm     = 64 << 10           // bytes
	maxTextForm = 1 << 20            // a text of 65,536 characters takes up to 12 bytes for each
	formsEach   = 32                 // forms that are read at the same time, of a network
	formsAll    = 512

	visitsPerMinute = 600     // requests of one network without a sign-in
	throttledNames  = 100_000 // people, workspaces and networks whose rate is remembered
)

// Options configure the dashboard.
type Options struct {
	Gateway *gateway.Gateway
	People  *people.People
	Log     *slog.Logger
	BaseURL string                     // where callers reach the API
	Secure  bool                       // browsers use HTTPS
	Kept    gateway.Retention          // how long the server keeps data
	Address func(*http.Request) string // the IP address of a request
	// Saw is called for the request log with the route and, once it is known, the member.
	Saw func(ctx context.Context, pattern string, m postern.Member)
	// Server returns figures of the process; nil hides them.
	Server func() Server
	// SignOn is the provider for single sign-on; nil turns it off.
	SignOn *oidc.Provider
	// Mail sends the dashboard's mail; without it, pages show links to pass on.
	Mail *mail.Server
	// Later runs work after the response was written; nil starts a goroutine that nothing waits
	// for.
	Later func(func())
	// Stopping is closed when the server stops, and ends the streams that are open; nil: they do not end.
	Stopping <-chan struct{}

	requests *ratelimit.Limiter // counts the requests; nil for a new one
}

// dash is the dashboard, one member for each noun.
type dash struct {
	*core

	account     account
	alerts      alerts
	chats       chats
	contacts    contacts
	deliveries  deliveries
	devices     devices
	events      events
	exports     exports
	factors     factors
	files       files
	invitations invitations
	keys        keys
	members     members
	messages    messages
	operator    operator
	overview    overview
	phones      phones
	replays     replays
	signIns     signIns
	signOns     signOns
	webhooks    webhooks
	workspaces  workspaces
}

// The nouns. Each has the pages of one kind of thing.
type (
	account     struct{ *core }
	alerts      struct{ *core }
	chats       struct{ *core }
	contacts    struct{ *core }
	deliveries  struct{ *core }
	devices     struct{ *core }
	events      struct{ *core }
	exports     struct{ *core }
	factors     struct{ *core }
	files       struct{ *core }
	invitations struct{ *core }
	keys        struct{ *core }
	members     struct{ *core }
	messages    struct{ *core }
	operator    struct{ *core }
	overview    struct{ *core }
	phones      struct{ *core }
	replays     struct{ *core }
	signIns     struct{ *core }
	signOns     struct{ *core }
	webhooks    struct{ *core }
	workspaces  struct{ *core }
)

func newDash(c *core) *dash {
	return &dash{
		core:        c,
		account:     account{c},
		alerts:      alerts{c},
		chats:       chats{c},
		contacts:    contacts{c},
		deliveries:  deliveries{c},
		devices:     devices{c},
		events:      events{c},
		exports:     exports{c},
		factors:     factors{c},
		files:       files{c},
		invitations: invitations{c},
		keys:        keys{c},
		members:     members{c},
		messages:    messages{c},
		operator:    operator{c},
		overview:    overview{c},
		phones:      phones{c},
		replays:     replays{c},
		signIns:     signIns{c},
		signOns:     signOns{c},
		webhooks:    webhooks{c},
		workspaces:  workspaces{c},
	}
}

// core is what all nouns share.
type core struct {
	g         *gateway.Gateway
	p         *people.People
	log       *slog.Logger
	base      string
	retention gateway.Retention
	address   func(*http.Request) string
	saw       func(context.Context, string, postern.Member)
	server    func() Server
	sessions  *scs.SessionManager
	secure    bool // browsers use HTTPS
	signOn    *oidc.Provider
	mux       *http.ServeMux
	mail      *mail.Server
	later     func(func())
	mailing   chan struct{} // one slot for each mail in the background
	noticing  chan struct{} // the same for notices
	requests  *ratelimit.Limiter
	uploads   *uploads
	exporting sync.Map // the exports that are being written, by user
	streams   *ratelimit.Places
	forms     *ratelimit.Places
	stopping  <-chan struct{}
}

// Handler serves every path of the dashboard, and a "not found" page for all others.
func Handler(opts Options) http.Handler {
	c := &core{
		g: opts.Gateway, p: opts.People, log: opts.Log, base: opts.BaseURL, retention: opts.Kept, address: opts.Address,
		saw:    opts.Saw,
		server: opts.Server, sessions: newSessions(opts), secure: opts.Secure, signOn: opts.SignOn,
		mux: http.NewServeMux(), mail: opts.Mail, later: opts.Later, mailing: make(chan struct{}, mailsAtOnce),
		noticing: make(chan struct{}, noticesAtOnce),
		streams:  ratelimit.NewPlaces(streamsEach, streamsAll, errStreams, errStreams), stopping: opts.Stopping,
		forms:   ratelimit.NewPlaces(formsEach, formsAll, errForms, errForms),
		uploads: &uploads{of: map[postern.UserID]int{}, each: uploadsEach, all: uploadsAll},
	}
	if c.saw == nil {
		c.saw = func(context.Context, string, postern.Member) {}
	}
	if c.requests = opts.requests; c.requests == nil {
		c.requests = ratelimit.New(throttledNames)
	}
	if c.later == nil {
		c.later = func(f func()) { go f() }
	}
	newDash(c).routes()
	h := remembering(c.sessions.LoadAndSave(http.NewCrossOriginProtection().Handler(c.mux)))
	outer := http.NewServeMux() // files need no session
	outer.Handle("/assets/", page.Assets())
	outer.Handle("/", headed(opts.Secure, c.formed(h)))
	return outer
}

// headed sets the headers of every page.
func headed(secure bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": page.Policy, "Cache-Control": "no-store", "Referrer-Policy": "same-origin",
			"X-Robots-Tag":           "noindex, nofollow",
			"X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin", "X-Frame-Options": "DENY",
		} {
			w.Header().Set(name, value)
		}
		if secure {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		h.ServeHTTP(w, r)
	})
}

var errForms = errors.New("too many forms are being sent; wait a moment and try again")

// formed reads the form of a request. The whole form is read before the sender is authenticated, so that a request that
// is held open does not keep rights that were revoked meanwhile. A file is the exception: see takeFile.
func (d *core) formed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, formLimit(r))
		r, err := d.readForm(r)
		switch {
		case errors.Is(err, errForms):
			w.Header().Set("Retry-After", "1")
			http.Error(w, err.Error(), http.StatusTooManyRequests)
		case err != nil:
			http.Error(w, "the form is too large or malformed", http.StatusBadRequest)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

func (d *core) readForm(r *http.Request) (*http.Request, error) {
	read, err := d.takeForm(r)
	if err != nil {
		return r, err
	}
	defer read()
	return readForm(r)
}

// takeForm takes a place for a form until it was read: nobody is known yet who could be counted, and one connection can
// send hundreds of forms at a time. As in admitVisitor, this machine may stand for many networks.
func (d *core) takeForm(r *http.Request) (read func(), err error) {
	if !hasForm(r) {
		return func() {}, nil
	}
	ip, err := netip.ParseAddr(d.address(r))
	if err != nil || ip.Unmap().IsLoopback() {
		return d.forms.Take(r.RemoteAddr)
	}
	return d.forms.Take(ratelimit.Network(ip))
}

func hasForm(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.ContentLength != 0
}

// formLimit returns how many bytes the form of a page may have.
func formLimit(r *http.Request) int64 {
	switch path := r.URL.Path; {
	case takesFile(r):
		return maxFileForm
	case strings.HasPrefix(path, "/messages") || strings.HasSuffix(path, "/phone/write"):
		return maxTextForm
	}
	return maxForm
}

// readForm reads the fields of a form.
func readForm(r *http.Request) (*http.Request, error) {
	if takesFile(r) {
		return readParts(r)
	}
	if hasForm(r) && r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return r, errors.New("no form")
	}
	return r, r.ParseForm()
}
