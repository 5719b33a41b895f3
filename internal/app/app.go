// Package app wires the parts into a server. It is the only place that knows
// them all.
package app

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"postern/internal/access"
	"postern/internal/api"
	"postern/internal/config"
	"postern/internal/dash"
	"postern/internal/egress"
	"postern/internal/gateway"
	"postern/internal/linkpage"
	"postern/internal/mail"
	"postern/internal/network/whatsapp"
	"postern/internal/obs"
	"postern/internal/oidc"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/session"
	"postern/internal/store"
	"postern/internal/web"
	"postern/internal/webhook"
	"postern/vendorsim"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

const (
	drainTimeout = 10 * time.Second // for requests in flight when the server stops
	keepEvents   = 30 * 24 * time.Hour
	keepAudit    = 365 * 24 * time.Hour
	keepMessages = 90 * 24 * time.Hour
	streamGrace  = 2 * time.Second // then streams, which never finish, are cut
)

// App is a server that was opened: it holds the data directory and its ports.
type App struct {
	cfg     config.Server
	log     *slog.Logger
	version string

	db         *store.Store
	gateway    *gateway.Gateway
	people     *people.People
	engine     *session.Engine
	dispatcher *webhook.Dispatcher
	vendor     *vendorsim.Vendor // in the sandbox
	health     *obs.Health
	registry   *prometheus.Registry
	servers    []*server
	streams    context.CancelFunc // ends requests that would never end
	later      sync.WaitGroup     // what goes on after its request, and needs the database
	closers    []func() error
}

type server struct {
	http     *http.Server
	listener net.Listener
}

// Options are what the environment gives a server beside its settings.
type Options struct {
	Log     *slog.Logger
	Version string
	// Vendor is an in-process vendor to use instead of the one that the sandbox
	// would keep in the data directory. It stays the caller's to close.
	Vendor *vendorsim.Vendor
}

// New opens everything a server needs and takes its ports, so that what is
// wrong shows at start. Close or Run must follow.
func New(ctx context.Context, cfg config.Server, opts Options) (*App, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	a := &App{cfg: cfg, log: opts.Log, version: opts.Version, health: obs.NewHealth(), vendor: opts.Vendor}
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *App) open(ctx context.Context) error {
	core, err := openCore(ctx, a.cfg.Data, a.log)
	if err != nil {
		return err
	}
	a.db = core.db
	a.onClose(core.db.Close)
	a.onClose(func() error { a.later.Wait(); return nil })
	if err := a.openVendor(); err != nil {
		return err
	}
	client := egress.NewClient(egress.Options{AllowPrivate: bool(a.cfg.AllowPrivateWebhooks), Networks: a.cfg.PrivateNetworks})
	a.onClose(func() error { client.Close(); return nil })
	driver, err := a.openDriver(ctx, core.box, client)
	if err != nil {
		return err
	}
	a.people = people.New(people.Options{DB: a.db, Box: core.box, BaseURL: a.cfg.BaseURL})
	a.gateway = gateway.New(gateway.Options{
		DB: a.db, Box: core.box, Log: a.log, Sandbox: a.sandbox(), CheckURL: client.CheckURL, CheckProxy: client.CheckProxy,
		Confirm: a.people.Users.Confirm,
	})
	pace := a.cfg.DefaultPace()
	a.engine = session.New(session.Options{
		DB: a.db, Gateway: a.gateway, Driver: hooked(driver), Log: a.log,
		Pace: postern.Pace{PerMinute: postern.Rate(pace.PerMinute), NewChatsPerMinute: postern.Rate(pace.NewChatsPerMinute)},
	})
	if err := a.engine.Prepare(ctx); err != nil {
		return err
	}
	a.registry = obs.NewRegistry()
	a.dispatcher = webhook.New(webhook.Options{DB: a.db, Client: client, Box: core.box, Log: a.log, Version: a.version, Registerer: a.registry})
	return a.listen(ctx, obs.OpsHandler(a.health, a.registry))
}

// onClose registers what Close does, last first.
func (a *App) onClose(f func() error) { a.closers = append(a.closers, f) }

// openVendor starts the simulated vendor of a sandbox.
func (a *App) openVendor() (err error) {
	if !bool(a.cfg.Sandbox) || a.vendor != nil {
		return nil
	}
	a.vendor, err = vendorsim.Open(vendorsim.Options{Dir: filepath.Join(a.cfg.Dir, "vendor"), Log: a.log})
	if err != nil {
		return fmt.Errorf("open the simulated vendor: %w", err)
	}
	a.onClose(a.vendor.Close)
	return nil
}

func (a *App) openDriver(ctx context.Context, box *seal.Box, proxies *egress.Client) (*whatsapp.Driver, error) {
	network, err := a.network()
	if err != nil {
		return nil, err
	}
	if err := rememberVendor(ctx, a.db, network.RootKey); err != nil {
		return nil, err
	}
	driver, err := whatsapp.New(whatsapp.Options{Store: a.db, Seal: box, Network: network, DeviceName: a.cfg.DeviceName, Log: a.log, Proxies: proxies})
	if err != nil {
		return nil, fmt.Errorf("prepare the network driver: %w", err)
	}
	return driver, nil
}

func (a *App) network() (whatsapp.Network, error) {
	if a.vendor != nil {
		root := a.vendor.RootKey()
		return whatsapp.Network{RootKey: root[:], Dial: a.vendor.DialContext}, nil
	}
	root, err := a.cfg.RootKey()
	if err != nil {
		return whatsapp.Network{}, err
	}
	ca, err := a.cfg.CA()
	return whatsapp.Network{URL: a.cfg.NetworkURL, RootKey: root, CA: ca}, err
}

// listen takes the ports and the socket.
func (a *App) listen(ctx context.Context, ops http.Handler) error {
	var lc net.ListenConfig
	public, err := lc.Listen(ctx, "tcp", a.cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen on POSTERN_ADDR: %w; stop what uses the port or choose another", err)
	}
	a.onClose(ignoreClosed(public.Close))
	opsL, err := lc.Listen(ctx, "tcp", a.cfg.OpsAddr)
	if err != nil {
		return fmt.Errorf("listen on POSTERN_OPS_ADDR: %w; stop what uses the port or choose another", err)
	}
	a.onClose(ignoreClosed(opsL.Close))
	sock, err := listenSocket(ctx, a.cfg.SocketPath())
	if err != nil {
		return err
	}
	a.onClose(ignoreClosed(sock.Close))
	if a.cfg.BaseURL == "" {
		a.cfg.BaseURL = a.scheme() + public.Addr().String()
	}
	door, err := a.door()
	if err != nil {
		return err
	}
	if public, err = a.secured(public, door.PlainRefusal); err != nil {
		return err
	}
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a.streams = cancel
	a.serve(requests, public, door)
	a.serve(requests, opsL, ops)
	a.serve(requests, sock, adminHandler(a.gateway, a.people, a.URL()))
	return nil
}

// door is the front door, with the API, the link pages and the dashboard behind it.
func (a *App) door() (*web.Door, error) {
	secure := strings.HasPrefix(a.cfg.BaseURL, "https://")
	from := web.Transport{Proxies: a.cfg.TrustedProxies, Insecure: bool(a.cfg.InsecureHTTP)}
	pages := dash.Options{
		Gateway: a.gateway, People: a.people, Log: a.log, BaseURL: a.cfg.BaseURL, Secure: secure, Kept: a.retention(),
		Address: func(r *http.Request) string { return from.Client(r).String() }, Saw: web.NoteVisit,
		Server: a.vitals, Later: a.later.Go,
	}
	if err := a.connect(&pages); err != nil {
		return nil, err
	}
	rest, err := api.New(api.Options{Gateway: a.gateway, Log: a.log, BaseURL: a.cfg.BaseURL, Sandbox: a.vendor != nil})
	if err != nil {
		return nil, err
	}
	return web.New(web.Options{
		Log: a.log, BaseURL: a.cfg.BaseURL, Transport: from, API: rest.Handler(), Announce: rest.TellRate,
		LinkPages: linkpage.Handler(linkpage.Options{Gateway: a.gateway, Log: a.log, Secure: secure}),
		Dashboard: dash.Handler(pages),
	})
}

// connect gives the dashboard the servers of others that are set: where people sign
// in, and what takes its mail.
func (a *App) connect(pages *dash.Options) (err error) {
	if a.cfg.SignOn.On() {
		if pages.SignOn, err = a.signOn(); err != nil {
			return err
		}
	}
	if a.cfg.SMTPURL != "" {
		if pages.Mail, err = mail.New(a.cfg.SMTPURL); err != nil {
			return fmt.Errorf("POSTERN_SMTP_URL: %w", err)
		}
	}
	return nil
}

// vitals is what operators see of the process in the dashboard.
func (a *App) vitals() dash.Server {
	v, err := obs.VitalsOf(a.registry)
	if err != nil {
		a.log.Warn("the figures of the process cannot be read", "error", err)
	}
	return dash.Server{Version: a.version, Started: v.Started, Memory: v.Memory, Goroutines: v.Goroutines}
}

// signOn is the provider at which people may sign in.
func (a *App) signOn() (*oidc.Provider, error) {
	s := a.cfg.SignOn
	secret, err := s.Secret()
	if err != nil {
		return nil, err
	}
	return oidc.New(oidc.Options{
		Issuer: s.Issuer, ClientID: s.ClientID, ClientSecret: secret, Name: cmp.Or(s.Name, "single sign-on"),
		Redirect: strings.TrimSuffix(a.cfg.BaseURL, "/") + dash.SignOnPath,
	}), nil
}

// SetUpURL is where the first user sets the dashboard up, once; "" when somebody
// has. Whoever knows it owns the server: it belongs to the operator's terminal and
// not into a log.
func (a *App) SetUpURL(ctx context.Context) (string, error) {
	token, err := a.people.Users.OpenSetUp(ctx, access.Operator())
	if err != nil || token == "" {
		return "", err
	}
	return a.URL() + "/setup/" + token, nil
}

func (a *App) scheme() string {
	if a.cfg.TLS() {
		return "https://"
	}
	return "http://"
}

// secured speaks TLS on a listener when the server has a certificate.
func (a *App) secured(l net.Listener, refuse func() []byte) (net.Listener, error) {
	if !a.cfg.TLS() {
		return l, nil
	}
	return web.SecureListener(l, a.cfg.TLSCertFile, a.cfg.TLSKeyFile, a.log, refuse)
}

func ignoreClosed(f func() error) func() error {
	return func() error {
		if err := f(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}

func (a *App) serve(requests context.Context, l net.Listener, h http.Handler) {
	a.servers = append(a.servers, &server{listener: l, http: web.NewServer(requests, h, a.log)})
}

// URL is where callers reach the API.
func (a *App) URL() string { return a.cfg.BaseURL }

// OpsURL is where operators look.
func (a *App) OpsURL() string { return "http://" + a.servers[1].listener.Addr().String() }

// Gateway gives the rules to what runs inside the process, such as the demo.
func (a *App) Gateway() *gateway.Gateway { return a.gateway }

// People gives the rules about people to what runs inside the process.
func (a *App) People() *people.People { return a.people }

// Run serves until ctx is done, then drains: requests first, then sends and
// deliveries in flight, then everything is closed.
func (a *App) Run(ctx context.Context) error {
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	group, failed := errgroup.WithContext(work)
	group.Go(func() error { return a.keepDatabase(work) })
	group.Go(func() error { return a.engine.Run(work) })
	group.Go(func() error { return a.dispatcher.Run(work) })
	group.Go(func() error { return a.gateway.Maintenance.Run(work, a.retention()) })
	for _, s := range a.servers {
		group.Go(func() error { return serveUntilShutdown(s) })
	}
	a.health.Set("")
	a.log.InfoContext(ctx, "serving", "url", a.URL(), "ops_url", a.OpsURL(), "version", a.version, "sandbox", a.vendor != nil)
	select {
	case <-ctx.Done():
	case <-failed.Done(): // one of them has ended with an error
	}
	a.health.Set("draining")
	a.drain(work)
	stopWork()
	return errors.Join(group.Wait(), a.Close())
}

// keepDatabase ends the server when another has taken its database: two must
// not hold one device's connection.
func (a *App) keepDatabase(ctx context.Context) error {
	select {
	case <-a.db.Taken():
		return errors.New("another server has taken the database while this one was cut off from it")
	case <-ctx.Done():
		return nil
	}
}

// retention is how long things are kept; a server that is started without
// settings, as the demo and tests are, keeps them as long as others do.
func (a *App) retention() gateway.Retention {
	return gateway.Retention{
		Events: cmp.Or(time.Duration(a.cfg.RetentionEvents), keepEvents), Messages: cmp.Or(time.Duration(a.cfg.RetentionMessages), keepMessages),
		Audit: cmp.Or(time.Duration(a.cfg.RetentionAudit), keepAudit),
	}
}

func serveUntilShutdown(s *server) error {
	err := s.http.Serve(s.listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// drain finishes the requests in flight. Streams would never finish: they are
// ended, and their clients come back.
func (a *App) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	var group errgroup.Group // without a context: a server that is late ends no other
	for _, s := range a.servers {
		s.http.RegisterOnShutdown(func() { time.AfterFunc(streamGrace, a.streams) })
		group.Go(func() error { return s.http.Shutdown(ctx) })
	}
	if err := group.Wait(); err != nil {
		a.log.WarnContext(ctx, "requests did not end in time", "error", err)
	}
}

// Close lets go of everything. Run calls it; only a server that never ran is
// closed by hand.
func (a *App) Close() error {
	if a.streams != nil {
		a.streams()
	}
	var errs []error
	for _, closer := range slices.Backward(a.closers) {
		errs = append(errs, closer())
	}
	a.closers = nil
	return errors.Join(errs...)
}

// core is what every command needs: the data and the key to its secrets.
type core struct {
	db  *store.Store
	box *seal.Box
}

func openCore(ctx context.Context, cfg config.Data, log *slog.Logger) (core, error) {
	if err := cfg.Validate(); err != nil {
		return core{}, err
	}
	db, err := store.Open(ctx, store.Options{Dir: cfg.Dir, URL: cfg.DatabaseURL.Reveal(), Log: log})
	if err != nil {
		return core{}, err
	}
	key, err := cfg.LoadKey()
	if err != nil {
		return core{}, errors.Join(err, db.Close())
	}
	box, err := seal.NewBox(key)
	if err == nil {
		err = checkKey(ctx, db, box)
	}
	if err != nil {
		return core{}, errors.Join(err, db.Close())
	}
	return core{db, box}, nil
}

// checkKey refuses a secret key that is not the one this database was sealed
// with: nothing in it could be opened.
func checkKey(ctx context.Context, db *store.Store, box *seal.Box) error {
	const setting = "secret_key_check"
	now := hex.EncodeToString(box.MAC("key check", "postern"))
	before, err := db.Settings.Get(ctx, setting)
	switch {
	case err != nil:
		return err
	case before == "":
		return db.Settings.Set(ctx, setting, now)
	case before != now:
		return errors.New("the secret key is not the one this database was sealed with; restore secret.key, or name it by POSTERN_SECRET_KEY_FILE")
	}
	return nil
}
