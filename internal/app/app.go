// Package app assembles the server from its parts. It is the only package that imports all
// of them.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"postern/internal/access"
	"postern/internal/alert"
	"postern/internal/api"
	"postern/internal/blackbox"
	"postern/internal/config"
	"postern/internal/dash"
	"postern/internal/egress"
	"postern/internal/gateway"
	"postern/internal/health"
	"postern/internal/lease"
	"postern/internal/linkpage"
	"postern/internal/mail"
	"postern/internal/media/library"
	"postern/internal/metrics"
	"postern/internal/network/whatsapp"
	"postern/internal/obs"
	"postern/internal/oidc"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/session"
	"postern/internal/store"
	"postern/internal/store/accounts"
	"postern/internal/store/apilog"
	"postern/internal/trace"
	"postern/internal/web"
	"postern/internal/webhook"
	"postern/vendorsim"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

const (
	drainTimeout = 10 * time.Second // for requests in flight when the server stops
	firstCode    = 5 * time.Second  // that the response to a new link attempt waits for the code to show
	streamGrace  = 2 * time.Second  // for streams, which never end by themselves, when the server stops

	// sandboxLedger is how many messages the simulated vendor of a sandbox remembers for each workspace.
	sandboxLedger = 5000

	// The default retention.
	keepEvents   = 30 * 24 * time.Hour
	alertAfter   = 5 * time.Minute // see POSTERN_ALERT_AFTER
	keepAudit    = 365 * 24 * time.Hour
	keepMessages = 90 * 24 * time.Hour
	keepMedia    = 30 * 24 * time.Hour
)

// App is an open server. It holds the data directory and its ports until Run has returned
// or Close is called.
type App struct {
	cfg       config.Server
	log       *slog.Logger
	version   string
	shared    bool // other servers may use the database
	keepStart bool // see Options
	compare   bool // see Options.ComparePasskeys

	db         *store.Store
	gateway    *gateway.Gateway
	people     *people.People
	library    *library.Library
	keys       *secretKeys
	leases     *lease.Holder // says what this server works for
	engine     *session.Engine
	dispatcher *webhook.Dispatcher
	vendor     *vendorsim.Spaces // nil outside of the sandbox
	health     *health.State
	checked    []health.Check // see Run
	alerts     alert.Options  // who is told what is wrong
	requests   *apilog.Log
	registry   *prometheus.Registry
	counts     *metrics.Metrics
	tracer     *trace.Tracer // nil without traces
	servers    []*server
	front      *web.Door          // of the public port
	endStreams func()             // of the API
	abort      context.CancelFunc // ends the requests that are still in flight
	later      sync.WaitGroup     // work that continues after its request and needs the database
	closers    []func() error
}

type server struct {
	http     *http.Server
	listener net.Listener
}

// Options configure [New] in addition to the settings of the server.
type Options struct {
	Log     *slog.Logger // required
	Version string       // version of the program
	// Vendor is a simulated vendor to use instead of the one that the sandbox opens in the
	// data directory. The caller closes it.
	Vendor *vendorsim.Spaces
	// Shared lets other sandboxes use the PostgreSQL database at the same time, with the same
	// Vendor. Servers for a real network always share it.
	Shared bool
	// KeepStart leaves in memory what only the start needs. Tests set it, because they start many
	// servers in a process, and each would have all memory collected several times.
	KeepStart bool
	// ComparePasskeys lets owners compare a code whenever they link with a passkey. Without it that happens only if five
	// minutes went by before the network got the passkey.
	ComparePasskeys bool
}

// New opens everything that a server needs, including its ports, so that errors are
// reported at the start. The caller must call Run or Close afterwards.
func New(ctx context.Context, cfg config.Server, opts Options) (*App, error) {
	if err := errors.Join(cfg.Validate(), cfg.CheckFiles()); err != nil {
		return nil, err
	}
	cfg.BaseURL = strings.TrimRight(cfg.BaseURL, "/") // paths are appended to it
	a := &App{
		cfg: cfg, log: opts.Log, version: opts.Version, health: health.New(opts.Log), vendor: opts.Vendor,
		shared: opts.Shared || cfg.DatabaseURL != "" && !bool(cfg.Sandbox), keepStart: opts.KeepStart,
		compare: opts.ComparePasskeys,
	}
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *App) open(ctx context.Context) error {
	a.registry = obs.NewRegistry()
	if err := a.openTraces(ctx); err != nil {
		return err
	}
	a.counts = metrics.New(a.registry, metrics.Options{
		Version: a.version, Workspaces: bool(a.cfg.MetricsWorkspaces),
	})
	core, err := openCore(ctx, a.cfg.Data, store.Options{
		Log: a.log, Nodes: a.shared, Observe: a.counts.Changed, Committed: a.counts.Committed,
		Step: a.traceCommit(),
	})
	if err != nil {
		return err
	}
	a.db, a.keys, a.requests = core.db, core.keys, apilog.New(core.db)
	a.onClose(core.db.Close)
	a.onClose(func() error { a.later.Wait(); return nil })
	if err := a.warnOfRestore(ctx); err != nil {
		return err
	}
	if a.leases, err = a.joinNodes(ctx); err != nil {
		return err
	}
	a.keys.leases, a.keys.log = a.leases, a.log
	a.keys.measure(a.registry)
	if err := a.keys.refresh(ctx); err != nil { // another key may have begun to encrypt before this server joined
		return err
	}
	box, left := a.openBox()
	if err := a.openVendor(ctx); err != nil {
		return err
	}
	client := egress.NewClient(egress.Options{
		AllowPrivate: bool(a.cfg.AllowPrivateWebhooks), Networks: a.cfg.PrivateNetworks,
	})
	a.onClose(func() error { client.Close(); return nil })
	a.openAlerts(core.box, client)
	driver, err := a.openDriver(ctx, core.box, client)
	if err != nil {
		return err
	}
	if a.library, err = a.openLibrary(); err != nil {
		return err
	}
	if a.library != nil && a.shared {
		a.library.Share()
	}
	a.people = people.New(people.Options{
		DB: a.db, Box: core.box, BaseURL: a.cfg.BaseURL, CheckURL: client.CheckURL, TestAlert: a.testAlert,
	})
	a.gateway = gateway.New(gateway.Options{
		DB: a.db, Box: core.box, Library: a.library, Log: a.log, Sandbox: a.sandbox(), CheckURL: client.CheckURL,
		CheckProxy: client.CheckProxy, Confirm: a.people.Users.Confirm, Shared: a.shared,
	})
	pace := a.cfg.DefaultPace()
	a.engine = session.New(session.Options{
		DB: a.db, Gateway: a.gateway, Driver: hooked(driver), Log: a.log, Box: box, Left: left,
		Library: a.library, Fetch: client.Fetch, Leases: a.leases,
		Pace: postern.Pace{
			PerMinute:         postern.Rate(pace.PerMinute),
			NewChatsPerMinute: postern.Rate(pace.NewChatsPerMinute),
		},
		ConnectRate: a.cfg.ConnectRate, Tracer: a.tracer, Received: a.counts.Received, Live: a.counts.Live,
	})
	if err := a.engine.Prepare(ctx); err != nil {
		return err
	}
	a.dispatcher = webhook.New(webhook.Options{
		DB: a.db, Client: client, Box: core.box, Log: a.log, Version: a.version, Registerer: a.registry,
		Leases: a.leases, Tracer: a.tracer,
	})
	a.checked = a.checks()
	metrics.Watch(a.registry, metrics.Source{
		System: func(ctx context.Context) (store.SystemStatus, error) { return a.db.System.Get(ctx, a.db.Now()) },
		Health: a.health.Report,
		Disk:   func() (int64, error) { return health.FreeSpace(a.cfg.Dir) },
		Store:  a.db.System.Figures,
	})
	return a.listen(ctx, obs.OpsHandler(a.health.Report, a.registry))
}

// openBox starts the record for crashes. Without it the server works, but cannot tell which
// device a crash is due to.
func (a *App) openBox() (*blackbox.Box, blackbox.Left) {
	box, left, err := blackbox.Open(a.cfg.Dir)
	if err != nil {
		a.log.Warn("no record for crashes", "error", err)
		return nil, left
	}
	a.onClose(box.Close)
	return box, left
}

// onClose registers a function for Close, which calls the functions in reverse order.
func (a *App) onClose(f func() error) { a.closers = append(a.closers, f) }

// openVendor starts the simulated vendor of a sandbox.
func (a *App) openVendor(ctx context.Context) error {
	if !bool(a.cfg.Sandbox) || a.vendor != nil {
		return nil
	}
	owners, err := a.db.Workspaces.SandboxNumbers(ctx)
	if err != nil {
		return fmt.Errorf("read the numbers of the sandbox: %w", err)
	}
	opts := vendorsim.Options{Dir: filepath.Join(a.cfg.Dir, "vendor"), Log: a.log, Ledger: sandboxLedger}
	if a.vendor, err = vendorsim.OpenSpaces(opts, owners); err != nil {
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
	driver, err := whatsapp.New(whatsapp.Options{
		Store: a.db, Seal: box, Network: network, DeviceName: a.cfg.DeviceName, Log: a.log, Proxies: proxies,
		Compare: a.compare,
	})
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

// listen opens the ports and the socket.
func (a *App) listen(ctx context.Context, ops http.Handler) error {
	var lc net.ListenConfig
	public, err := lc.Listen(ctx, "tcp", a.cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen on POSTERN_ADDR (--addr): %w; stop what uses the port or choose another", err)
	}
	a.onClose(ignoreClosed(public.Close))
	opsL, err := lc.Listen(ctx, "tcp", a.cfg.OpsAddr)
	if err != nil {
		return fmt.Errorf("listen on POSTERN_OPS_ADDR (--ops-addr): %w; stop what uses the port or choose another", err)
	}
	a.onClose(ignoreClosed(opsL.Close))
	obs.WarnIfPublic(ctx, a.log, opsL.Addr())
	sock, err := listenSocket(ctx, a.cfg.SocketPath())
	if err != nil {
		return err
	}
	a.onClose(ignoreClosed(sock.Close))
	if a.cfg.BaseURL == "" {
		a.cfg.BaseURL = a.scheme() + reachable(public.Addr())
		a.warnOfBaseURL(ctx)
	}
	late, lateOps, lateCommands := web.NewSpares(), web.NewSpares(), web.NewSpares()
	a.onClose(late.Close)
	a.onClose(lateOps.Close)
	a.onClose(lateCommands.Close)
	door, err := a.door(late)
	if err != nil {
		return err
	}
	a.front = door
	public = web.Bound(late.Listen(public), a.transport())
	if public, err = a.secured(public, door.PlainRefusal); err != nil {
		return err
	}
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a.abort = cancel
	a.serve(requests, door.Listen(public), door)
	a.serve(requests, lateOps.Listen(opsL), obs.OwnHost(a.cfg.OpsAddr, ops))
	commands := adminHandler(a.gateway, a.people, a.URL())
	commands.HandleFunc("GET /status", admin(a.status))
	secretKeyCommands(commands, a.keys)
	a.serve(requests, lateCommands.Listen(sock), commands)
	return nil
}

// door returns the handler of the public port: the API, the link pages and the dashboard.
func (a *App) door(late *web.Spares) (*web.Door, error) {
	secure := strings.HasPrefix(a.cfg.BaseURL, "https://")
	from := a.transport()
	stopping := make(chan struct{})
	pages := dash.Options{
		Gateway: a.gateway, People: a.people, Log: a.log, BaseURL: a.cfg.BaseURL, Secure: secure, Kept: a.retention(),
		Address: func(r *http.Request) string { return from.Client(r).String() }, Saw: web.NoteVisit,
		Server: a.vitals, Later: a.later.Go, Stopping: stopping,
	}
	if err := a.tellAlerts(); err != nil {
		return nil, err
	}
	if err := a.connect(&pages); err != nil {
		return nil, err
	}
	rest, err := api.New(api.Options{
		Gateway: a.gateway, Log: a.log, BaseURL: a.cfg.BaseURL, Sandbox: a.vendor != nil, FirstCode: firstCode,
	})
	if err != nil {
		return nil, err
	}
	a.endStreams = sync.OnceFunc(func() {
		rest.EndStreams()
		close(stopping)
	})
	return web.New(web.Options{
		Log: a.log, BaseURL: a.cfg.BaseURL, Transport: from, API: rest.Handler(), Announce: rest.TellRate, Document: rest.OpenAPI,
		Observe: a.counts.Requested,
		Record:  a.record,
		Trace:   a.traceRequest(),
		Late:    late.Late,
		LinkPages: linkpage.Handler(linkpage.Options{
			Gateway: a.gateway, Log: a.log, Secure: secure, BaseURL: a.cfg.BaseURL,
		}),
		Dashboard: dash.Handler(pages),
	}), nil
}

// transport says which requests may come in plain text, and who may name their clients.
func (a *App) transport() web.Transport {
	return web.Transport{Proxies: a.cfg.TrustedProxies, Insecure: bool(a.cfg.InsecureHTTP)}
}

// connect sets the external servers that the dashboard uses, if they are configured: the
// sign-in provider and the mail server.
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

// vitals returns the process metrics that operators see in the dashboard.
func (a *App) vitals() dash.Server {
	v, err := obs.VitalsOf(a.registry)
	if err != nil {
		a.log.Warn("cannot read the metrics of the process", "error", err)
	}
	return dash.Server{Version: a.version, Started: v.Started, Memory: v.Memory, Goroutines: v.Goroutines}
}

// signOn returns the single sign-on provider.
func (a *App) signOn() (*oidc.Provider, error) {
	s := a.cfg.SignOn
	secret, err := s.Secret()
	if err != nil {
		return nil, err
	}
	return oidc.New(oidc.Options{
		Issuer: s.Issuer, ClientID: s.ClientID, ClientSecret: secret, Name: cmp.Or(s.Name, "single sign-on"),
		Redirect: a.cfg.BaseURL + dash.SignOnPath,
	}), nil
}

// NeedsSetUp reports whether there are no users yet.
func (a *App) NeedsSetUp(ctx context.Context) (bool, error) { return accounts.Of(a.db).Users.None(ctx) }

// SetUpURL returns the link with which the first user sets up the dashboard, or "" if the
// dashboard is set up. Anyone who knows the link can take over the server, so print it to
// the operator's terminal and never log it.
func (a *App) SetUpURL(ctx context.Context) (string, error) {
	token, err := a.people.Users.OpenSetUp(ctx, access.Operator())
	if err != nil || token == "" {
		return "", err
	}
	return a.URL() + "/setup/" + token, nil
}

// reachable returns an address as this machine reaches it.
func reachable(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	return addr.String()
}

// warnOfBaseURL warns if others reach the server at an address that it does not know.
func (a *App) warnOfBaseURL(ctx context.Context) {
	if a.cfg.MissesBaseURL() {
		a.log.WarnContext(ctx, "POSTERN_BASE_URL is not set, so links in mail and on pages lead to this machine; "+
			"set it to the address at which people reach the server", "links", a.cfg.BaseURL)
	}
}

func (a *App) scheme() string {
	if a.cfg.TLS() {
		return "https://"
	}
	return "http://"
}

// secured adds TLS to a listener if the server has a certificate. refuse returns the
// answer to plain HTTP requests.
func (a *App) secured(l net.Listener, refuse func() []byte) (net.Listener, error) {
	if !a.cfg.TLS() {
		return l, nil
	}
	return web.SecureListener(l, a.cfg.TLSCertFile, a.cfg.TLSKeyFile, a.log, refuse)
}

// ignoreClosed returns a function that calls f and ignores net.ErrClosed.
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

// URL returns the address at which clients reach the API and the dashboard.
func (a *App) URL() string { return a.cfg.BaseURL }

// OpsURL returns the address of metrics and health.
func (a *App) OpsURL() string { return "http://" + a.servers[1].listener.Addr().String() }

// Gateway returns the gateway for code inside the process, such as the demo.
func (a *App) Gateway() *gateway.Gateway { return a.gateway }

// People returns the operations on users for code inside the process, such as the demo.
func (a *App) People() *people.People { return a.people }

// startGC is the garbage collector's percentage while the devices connect. What is collected then leaves gaps between
// what stays, and the heap keeps them: with 100 percent, they were 20 MB of 500 devices.
const startGC = 50

// forgetStart gives back the memory that only the start needed: at once, and again while the devices
// connect, for about a minute.
func (a *App) forgetStart(ctx context.Context) error {
	usual := debug.SetGCPercent(startGC)
	defer debug.SetGCPercent(usual)
	if usual < startGC { // chosen by the operator
		debug.SetGCPercent(usual)
	}
	for wait := time.Duration(0); wait < time.Minute; wait = max(2*wait, 2*time.Second) {
		if postern.Sleep(ctx, wait) != nil {
			return nil //nolint:nilerr // the server stops
		}
		debug.FreeOSMemory()
		if err := dropStartPages(); err != nil {
			a.log.DebugContext(ctx, "the pages that the start used stay mapped", "error", err)
		}
	}
	return nil
}

// Run serves until ctx is done or a part of the server fails. It then finishes first the
// requests in flight, then the sends and deliveries in flight, and closes the server. It
// returns nil after an orderly stop.
func (a *App) Run(ctx context.Context) error {
	release := a.holdLease(ctx)
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	sessions, stopSessions := context.WithCancel(work)
	defer stopSessions()
	group, failed := errgroup.WithContext(work)
	group.Go(func() error { return a.keepDatabase(work) })
	group.Go(func() error { return a.engine.Run(sessions) })
	group.Go(func() error { return a.dispatcher.Run(work) })
	group.Go(func() error {
		return a.whileLeading(work, func(ctx context.Context) error { return a.gateway.Maintenance.Run(ctx, a.retention()) })
	})
	group.Go(func() error { return a.whileLeading(work, a.gateway.Maintenance.IndexWords) })
	group.Go(func() error { return a.keys.run(work) })
	group.Go(func() error { return a.requests.Run(work, a.log) })
	group.Go(func() error { return a.whileLeading(work, alert.New(a.alerts).Run) })
	group.Go(func() error { return a.whileLeading(work, a.keys.reseal) })
	for _, s := range a.servers {
		group.Go(func() error { return serveUntilShutdown(s) })
	}
	group.Go(func() error { return a.health.Monitor(work, a.checked...) })
	a.log.InfoContext(ctx, "serving",
		"url", a.URL(), "ops_url", a.OpsURL(), "version", a.version, "sandbox", a.vendor != nil)
	if !a.keepStart {
		group.Go(func() error { return a.forgetStart(work) })
	}
	select {
	case <-ctx.Done():
	case <-failed.Done(): // a goroutine of the group has returned an error
	}
	begun := time.Now()
	step := func(done string) { a.log.InfoContext(work, done, "after_ms", time.Since(begun).Milliseconds()) }
	a.log.InfoContext(failed, "stopping")
	handedOver := a.handOver(failed, stopSessions)
	a.leave(failed)
	a.drain(work)
	<-handedOver
	step("the requests in flight have ended")
	stopWork()
	err := group.Wait()
	step("the sends and deliveries in flight have ended")
	err = errors.Join(err, release(), a.Close())
	step("stopped")
	return err
}

// leave reports that the server stops, and still accepts requests for as long as load balancers need to
// notice, unless a part of it has failed.
func (a *App) leave(failed context.Context) {
	a.health.Drain()
	a.front.Leave()
	if a.cfg.ShutdownDelay > 0 && failed.Err() == nil {
		a.log.InfoContext(failed, "requests are still accepted for a while", "delay", a.cfg.ShutdownDelay.String())
		_ = postern.Sleep(failed, a.cfg.ShutdownDelay) // a failure ends it
	}
}

// keepDatabase ends the server if another server has taken its database, because two
// servers must not hold the connection of one device.
func (a *App) keepDatabase(ctx context.Context) error {
	select {
	case <-a.db.Taken():
		return errors.New("another server has taken the database while this one was cut off from it")
	case <-ctx.Done():
		return nil
	}
}

// retention returns the retention settings. A setting that is 0, as in the demo and in
// tests, has its default.
func (a *App) retention() gateway.Retention {
	return gateway.Retention{
		Events:   cmp.Or(time.Duration(a.cfg.RetentionEvents), keepEvents),
		Messages: cmp.Or(time.Duration(a.cfg.RetentionMessages), keepMessages),
		Media:    cmp.Or(time.Duration(a.cfg.RetentionMedia), keepMedia),
		Audit:    cmp.Or(time.Duration(a.cfg.RetentionAudit), keepAudit),
	}
}

func serveUntilShutdown(s *server) error {
	err := s.http.Serve(s.listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// drain finishes the requests in flight, and ends those that take longer than drainTimeout.
// Streams would never finish, so it ends them after streamGrace; their clients reconnect.
func (a *App) drain(ctx context.Context) {
	defer a.abort()
	defer time.AfterFunc(streamGrace, a.endStreams).Stop()
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	var group errgroup.Group // without a context, so that a failing server does not stop the others
	for _, s := range a.servers {
		group.Go(func() error { return s.http.Shutdown(ctx) })
	}
	if err := group.Wait(); err != nil {
		a.log.WarnContext(ctx, "requests did not end in time", "error", err)
	}
}

// Close closes the server. Run calls it, so call it only for a server that never ran.
func (a *App) Close() error {
	if a.abort != nil {
		a.abort()
	}
	var errs []error
	for _, closer := range slices.Backward(a.closers) {
		errs = append(errs, closer())
	}
	a.closers = nil
	return errors.Join(errs...)
}
