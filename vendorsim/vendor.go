package vendorsim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
)

// ErrClosed is returned by the methods of a Vendor after Close.
var ErrClosed = errors.New("vendor is closed")

// ErrOtherKeys is returned by [Open] for a directory that belongs to a vendor with other keys.
var ErrOtherKeys = errors.New("directory belongs to a vendor with other keys")

// Options configure a Vendor. With the zero value, the Vendor has new keys, keeps its state in
// memory and writes no log.
type Options struct {
	// Dir is the state directory, which is created if it does not exist. Only one Vendor may have
	// it open. "" keeps everything in memory.
	Dir string
	// Log gets a message for each connection, login and fault. nil discards the messages.
	Log *slog.Logger
	// Keys are the vendor's secrets. If Keys is nil, the Vendor uses those in Dir, or makes new
	// ones. All Vendors of a process must share one Keys, because whatsmeow trusts one root key
	// per process.
	Keys *Keys
	// Ledger is how many of the newest entries of the ledger are kept; 0 means 1,048,576. Each takes
	// some hundred bytes of memory. A message that is no longer in the ledger gets no receipts, and a
	// second copy of it counts as a new message.
	Ledger int
	// Shown is how many of the newest messages the phone of a number shows; 0 means 1,000. Of an older message the
	// phone knows nothing any more, so that it cannot read votes and sealed edits of it.
	Shown int
}

// Vendor is a simulated messaging network: the vendor's servers and all phones. Its methods
// may be called from several goroutines.
type Vendor struct{ *core }

// The subjects. Each one has the rules for one part of the network.
type (
	channels     struct{ *core } // channels and their posts
	statusPosts  struct{ *core } // posts that contacts see for a day
	codes        struct{ *core } // links by a code that is entered on a phone
	devices      struct{ *core } // accounts and the companions linked to them
	directory    struct{ *core } // lookups of numbers, hidden addresses and devices
	faults       struct{ *core } // failures on request
	groupChats   struct{ *core } // groups and their messages
	histories    struct{ *core } // what phones had before companions were linked
	links        struct{ *core } // links by a QR code, and the link that both ways offer
	logins       struct{ *core } // logins of linked companions
	mediaHost    struct{ *core } // uploads and downloads of files
	messages     struct{ *core } // messages of companions and of phones
	people       struct{ *core } // what the network tells of numbers
	prekeys      struct{ *core } // the keys that begin Signal sessions
	queries      struct{ *core } // iq nodes
	queues       struct{ *core } // nodes that a companion has to acknowledge
	receipts     struct{ *core } // receipts and acknowledgements
	records      struct{ *core } // the ledger, and the messages that phones show
	restorer     struct{ *core } // the state directory, read at the start
	reuploads    struct{ *core } // files that a phone uploads again
	retries      struct{ *core } // new copies of messages that could not be decrypted
	sockets      struct{ *core } // listeners and connections
	states       struct{ *core } // the app state, which an account's phone and companions share
	passkeyLinks struct{ *core } // links for which the account asks for its passkey
)

// subjects lets each subject call the others.
type subjects struct {
	channels     channels
	statusPosts  statusPosts
	codes        codes
	devices      devices
	directory    directory
	faults       faults
	groupChats   groupChats
	histories    histories
	links        links
	logins       logins
	mediaHost    mediaHost
	messages     messages
	people       people
	prekeys      prekeys
	queries      queries
	queues       queues
	receipts     receipts
	records      records
	restorer     restorer
	reuploads    reuploads
	retries      retries
	sockets      sockets
	states       states
	passkeyLinks passkeyLinks
}

// core is shared by all subjects.
type core struct {
	subjects

	log     *slog.Logger
	keys    *Keys
	certs   []byte
	journal *journal // nil if the state is in memory only
	blobs   *blobs

	ctx    context.Context // ends with the Vendor; connections outlive the requests that opened them
	cancel context.CancelFunc
	wg     sync.WaitGroup // counts the goroutines that the Vendor starts
	pipes  *pipeListener
	server *http.Server
	client *http.Client

	mu            sync.Mutex // guards the fields below; taken after a phone's lock, before a connection's
	closed        bool
	changed       chan struct{} // closed at the next change; nil if Watch was not called
	phones        map[number]*phone
	accounts      map[number]*account
	pairings      map[string]*pairing // by the companion's identity key
	conns         map[*conn]struct{}
	ledger        ledger
	maxShown      int // see Options.Shown
	screens       map[number]*screen
	groups        map[string]*group // by id
	channelsByID  map[string]*channel
	passkeys      map[number]*Passkey // of numbers that ask for them before they are linked
	profiles      map[number]profile
	persons       map[number]person
	moments       []Moment
	seen          map[number]Seen // who was said to be online or not
	shared        map[number]*appState
	echoed        map[number]*echoes
	withheld      map[number]bool // numbers whose phones do not share the key of the app state
	archives      map[number]*archive
	guarded       map[number]bool         // accounts that need tokens to write to strangers
	passkeyFaults map[number]PasskeyFault // that wait
}

// Open starts a Vendor with the accounts, phones, keys and ledger that are stored in opts.Dir. The
// caller must call [Vendor.Close].
func Open(opts Options) (*Vendor, error) {
	v := newVendor(opts)
	if err := v.restorer.load(opts.Dir); err != nil {
		return nil, err
	}
	var err error
	if v.blobs, err = openBlobs(opts.Dir); err != nil {
		return nil, errors.Join(err, v.closeJournal())
	}
	if v.certs, err = v.keys.certificates(); err != nil {
		return nil, errors.Join(err, v.closeJournal())
	}
	v.ctx, v.cancel = context.WithCancel(context.Background())
	v.client = v.sockets.pipeClient()
	v.sockets.serve()
	return v, nil
}

// newVendor returns a Vendor that has no state and does not serve yet.
func newVendor(opts Options) *Vendor {
	c := &core{
		log:           opts.Log,
		keys:          opts.Keys,
		pipes:         newPipeListener(),
		phones:        make(map[number]*phone),
		accounts:      make(map[number]*account),
		pairings:      make(map[string]*pairing),
		conns:         make(map[*conn]struct{}),
		screens:       make(map[number]*screen),
		echoed:        make(map[number]*echoes),
		groups:        make(map[string]*group),
		channelsByID:  make(map[string]*channel),
		passkeys:      make(map[number]*Passkey),
		profiles:      make(map[number]profile),
		persons:       make(map[number]person),
		seen:          make(map[number]Seen),
		shared:        make(map[number]*appState),
		withheld:      make(map[number]bool),
		archives:      make(map[number]*archive),
		guarded:       make(map[number]bool),
		ledger:        ledger{limit: cmp.Or(opts.Ledger, defaultLedger)},
		maxShown:      cmp.Or(opts.Shown, defaultShown),
		passkeyFaults: make(map[number]PasskeyFault),
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.subjects = subjects{
		channels:     channels{c},
		statusPosts:  statusPosts{c},
		codes:        codes{c},
		devices:      devices{c},
		directory:    directory{c},
		faults:       faults{c},
		groupChats:   groupChats{c},
		histories:    histories{c},
		links:        links{c},
		logins:       logins{c},
		mediaHost:    mediaHost{c},
		messages:     messages{c},
		people:       people{c},
		prekeys:      prekeys{c},
		queries:      queries{c},
		queues:       queues{c},
		receipts:     receipts{c},
		records:      records{c},
		restorer:     restorer{c},
		reuploads:    reuploads{c},
		retries:      retries{c},
		sockets:      sockets{c},
		states:       states{c},
		passkeyLinks: passkeyLinks{c},
	}
	return &Vendor{c}
}

// Close closes all connections, waits for all goroutines of the Vendor, and writes its state. The
// directory may be opened again afterwards. A second Close does nothing.
func (v *Vendor) Close() error {
	v.mu.Lock()
	if v.closed {
		v.mu.Unlock()
		return nil
	}
	v.closed = true
	if v.changed == nil {
		v.changed = make(chan struct{})
	}
	close(v.changed)
	conns := v.conns
	v.conns = make(map[*conn]struct{})
	v.mu.Unlock()

	v.cancel()
	v.sockets.stopServing()
	for c := range conns {
		c.close()
	}
	v.wg.Wait()
	return v.closeJournal()
}

// RootKey returns the public root key of the certificate chain. Set whatsmeow.WACertPubKey to it
// before a client connects.
func (v *Vendor) RootKey() [32]byte { return v.keys.RootKey() }

// Watch returns a channel that is closed at the next change of the ledger, of the messages that a
// phone shows, or of the accounts. Call it before you read the state, and again after each change.
// After Close the channel is closed.
func (v *Vendor) Watch() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.changed == nil {
		v.changed = make(chan struct{})
	}
	return v.changed
}

// notify closes the channel that Watch returned. The caller holds v.mu.
func (v *core) notify() {
	if v.changed != nil && !v.closed {
		close(v.changed)
		v.changed = nil
	}
}

// start runs f in a goroutine that Close waits for, unless the Vendor is closed.
func (v *core) start(f func()) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return false
	}
	v.wg.Go(f)
	return true
}

// flush writes all changes so far, so that they survive a crash of the process.
func (v *core) flush() error {
	if v.journal == nil {
		return nil
	}
	return v.journal.flush()
}

// sync writes all changes so far to the disk, so that they survive a crash of the machine.
func (v *core) sync() error {
	if v.journal == nil {
		return nil
	}
	return v.journal.sync()
}

func (v *core) closeJournal() error {
	if v.journal == nil {
		return nil
	}
	if err := v.journal.close(); err != nil {
		return fmt.Errorf("close vendor: %w", err)
	}
	return nil
}
