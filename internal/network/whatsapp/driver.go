package whatsapp

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"postern/internal/egress"
	"postern/internal/network"
	"postern/internal/network/whatsapp/keys"
	"postern/internal/seal"
	"postern/internal/store"

	"go.mau.fi/whatsmeow/socket"
	"go.mau.fi/whatsmeow/types"
)

// Network is the address of the vendor; the zero value is the real one.
type Network struct {
	URL     string         // "wss://host:port/ws/chat" (or ws:// for tests); "" is the vendor's own
	RootKey []byte         // 32 bytes, the root of the certificate chain; nil is the vendor's own
	CA      *x509.CertPool // TLS authority for URL; nil is the system's
	// Dial overrides URL with a vendor in the process, which may have several number
	// spaces; see [network.Host.Space]. No TLS is added to its connections.
	Dial func(ctx context.Context, space string) (net.Conn, error)
}

// Address is the address to which sessions connect.
func (n Network) Address() string { return cmp.Or(n.URL, socket.URL) }

// Options configure a [Driver]. Store and Seal are required.
type Options struct {
	Store      *store.Store // holds the session keys
	Seal       *seal.Box    // seals them
	Network    Network
	DeviceName string       // shown on the phone under linked devices; "" is "Postern"
	Log        *slog.Logger // nil discards
	// Proxies decides which proxies of hosts may be dialled; nil allows public ones.
	Proxies *egress.Client
	// Compare lets owners always compare a code when they link with a passkey, also while the vendor needs no comparison.
	Compare bool
}

// Driver links accounts and opens their sessions. Its methods may be called from
// any goroutine.
type Driver struct {
	keys    *keys.Store
	target  target
	proxies *egress.Client
	log     *slog.Logger
	pace    pace
	compare bool
	panics  tries // of the processing of messages, by account and message
	stars   tries // that could not be set, by account and action
}

var _ network.Driver = (*Driver)(nil)

// New returns a Driver. whatsmeow has some settings in package variables, so a
// second Driver in a process must have the same RootKey and DeviceName; otherwise
// New returns [ErrOtherVendor].
func New(opts Options) (*Driver, error) {
	if opts.Store == nil || opts.Seal == nil {
		return nil, errors.New("whatsapp: Store and Seal are required")
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Proxies == nil {
		opts.Proxies = egress.NewClient(egress.Options{})
	}
	target, err := newTarget(opts.Network)
	if err != nil {
		return nil, err
	}
	if err := claimProcess(opts.Network.RootKey, opts.DeviceName); err != nil {
		return nil, err
	}
	return &Driver{
		keys:   keys.NewStore(opts.Store, opts.Seal, newTap(opts.Log).Sub("Keys")),
		target: target, proxies: opts.Proxies, log: opts.Log, pace: defaultPace(), compare: opts.Compare,
	}, nil
}

// Name is "whatsapp".
func (d *Driver) Name() string { return "whatsapp" }

// Accounts lists the accounts that have keys.
func (d *Driver) Accounts(ctx context.Context) ([]string, error) {
	accounts, err := d.keys.Accounts(ctx)
	if err != nil {
		return nil, fmt.Errorf("list linked accounts: %w", err)
	}
	return accounts, nil
}

// Open prepares a session for a linked account.
func (d *Driver) Open(ctx context.Context, account string) (network.Session, error) {
	jid, ok := parseAccount(account)
	if !ok {
		return nil, network.ErrUnknownAccount
	}
	if err := d.keys.Check(ctx, account); err != nil {
		return nil, fmt.Errorf("open account: %w", err)
	}
	return &session{driver: d, name: account, account: jid}, nil
}

// Forget removes the account's keys.
func (d *Driver) Forget(ctx context.Context, account string) error {
	if _, ok := parseAccount(account); !ok {
		return nil // no account has such a name
	}
	if err := d.keys.Forget(ctx, account); err != nil {
		return fmt.Errorf("forget account: %w", err)
	}
	return nil
}

// prefix begins the names of the accounts of a number space, which may have the same
// addresses as those of another one.
func (d *Driver) prefix(space string) string {
	if d.target.dial == nil || space == "" {
		return ""
	}
	return space + "/"
}

// parseAccount reads the driver's name for a link, which is the address of the
// companion with its device number, after the number space if there is one.
func parseAccount(account string) (types.JID, bool) {
	jid, err := types.ParseJID(account[strings.LastIndex(account, "/")+1:])
	return jid, err == nil && jid.Server == types.DefaultUserServer && isDigits(jid.User) && jid.Device > 0
}
