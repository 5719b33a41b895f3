package egress

import (
	"container/list"
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// pools holds the transports of the tenants. It closes transports without a running
// exchange if there are too many of them or too many connections, the least recently
// used first. It also closes those that were not used for idleTimeout.
type pools struct {
	dialer   dialer
	perHost  int          // idle connections of a tenant to one host
	maxIdle  int          // limit of connections beyond those that exchanges use
	maxPools int          // limit of transports that are not in use
	open     atomic.Int64 // open connections of all transports

	mu     sync.Mutex
	all    map[string]*pool // by tenant
	idle   list.List        // *pool: transports not in use, the least recently used first
	active int              // running exchanges
	sweep  *time.Timer      // calls expire; nil while there are no transports
}

// pool is the transport of one tenant.
type pool struct {
	*pools
	transport *http.Transport
	tenant    string
	conns     *conns // open connections

	exchanges int           // running exchanges
	used      time.Time     // when the last exchange ended
	place     *list.Element // its place in pools.idle; nil while the transport is in use
}

func newPools(d dialer, perHost int) *pools {
	return &pools{dialer: d, perHost: perHost, maxIdle: maxIdle, maxPools: maxIdlePools, all: map[string]*pool{}}
}

func (p *pools) newPool(tenant string) *pool {
	one := &pool{pools: p, tenant: tenant, conns: newConns(p.perHost, maxIdlePerTenant, &p.open)}
	one.transport = &http.Transport{
		DialContext: one.dial, DialTLSContext: one.dialTLS, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: math.MaxInt, IdleConnTimeout: idleTimeout, // conns limits their number
		MaxResponseHeaderBytes: maxHeader, DisableCompression: true,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connWindow,
			SendPingTimeout: pingAfter,
		},
	}
	return one
}

// dial makes a connection for plain HTTP.
func (p *pool) dial(ctx context.Context, network, address string) (net.Conn, error) {
	s, err := p.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	p.conns.ready(s)
	return &h1Conn{Conn: s, sock: s}, nil
}

// dialTLS makes a connection for HTTP/2, or for HTTP/1 if the host does not support
// HTTP/2.
func (p *pool) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	s, err := p.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn, err := p.dialer.handshake(ctx, s, address, "h2", "http/1.1")
	if err != nil {
		return nil, err
	}
	p.conns.ready(s)
	if conn.ConnectionState().NegotiatedProtocol == "h2" {
		return conn, nil // net/http requires a *tls.Conn for HTTP/2
	}
	return &h1Conn{Conn: conn, sock: s}, nil
}

// connect makes a connection within the limits of the tenant.
func (p *pool) connect(ctx context.Context, network, address string) (*socket, error) {
	if err := p.conns.reserve(address); err != nil {
		return nil, err
	}
	conn, err := p.dialer.dial(ctx, network, address)
	if err != nil {
		p.conns.count(address, -1)
		return nil, err
	}
	s := newSocket(conn, p.conns, address)
	if !p.conns.connected(s) {
		return nil, &Error{Connect, errors.Join(net.ErrClosed, s.Close())}
	}
	return s, nil
}

// close closes all connections of a transport that is not in use. It closes the
// sockets directly, because net/http would wait for hosts that do not read.
func (p *pool) close() {
	p.conns.abandon()
	p.transport.CloseIdleConnections()
}

// acquire returns the transport of a tenant for one exchange. The caller must release
// it afterwards.
func (p *pools) acquire(tenant string) *pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.all[tenant]
	if one == nil {
		one = p.newPool(tenant)
		p.all[tenant] = one
	}
	if one.place != nil {
		p.idle.Remove(one.place)
		one.place = nil
	}
	one.exchanges++
	p.active++
	return one
}

// release ends an exchange and closes transports while a limit is exceeded.
func (p *pools) release(one *pool) {
	for old := p.releaseAndEvict(one); old != nil; old = p.evict() {
		old.close()
	}
}

func (p *pools) releaseAndEvict(one *pool) (old *pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active--
	one.exchanges--
	if one.exchanges == 0 {
		one.used = time.Now()
		one.place = p.idle.PushBack(one)
	}
	if p.sweep == nil {
		p.sweep = time.AfterFunc(idleTimeout, p.expire)
	}
	return p.excess()
}

func (p *pools) evict() *pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.excess()
}

// excess removes and returns the next transport to close, or returns nil if no limit
// is exceeded. The caller holds the lock.
func (p *pools) excess() *pool {
	connections := p.open.Load() > int64(p.active+p.maxIdle)
	if !connections && p.idle.Len() <= p.maxPools {
		return nil
	}
	for e := p.idle.Front(); e != nil; e = e.Next() {
		if one := poolOf(e); !connections || one.conns.len() > 0 {
			return p.forget(one)
		}
	}
	return nil
}

// forget removes a transport that is not in use, and returns it.
func (p *pools) forget(one *pool) *pool {
	p.idle.Remove(one.place)
	delete(p.all, one.tenant)
	return one
}

func poolOf(e *list.Element) *pool {
	return e.Value.(*pool) //nolint:errcheck,forcetypeassert // the list holds only this type
}

// expire closes the transports that were not used for idleTimeout.
func (p *pools) expire() { p.closeUnused(time.Now().Add(-idleTimeout)) }

// close closes all transports that are not in use.
func (p *pools) close() { p.closeUnused(time.Now()) }

func (p *pools) closeUnused(since time.Time) {
	for _, one := range p.forgetUnused(since) {
		one.close()
	}
}

func (p *pools) forgetUnused(since time.Time) (unused []*pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := p.idle.Front(); e != nil && !poolOf(e).used.After(since); e = p.idle.Front() {
		unused = append(unused, p.forget(poolOf(e)))
	}
	switch {
	case p.sweep == nil: // no exchange has ended yet
	case len(p.all) > 0:
		p.sweep.Reset(idleTimeout / 2)
	default:
		p.sweep.Stop()
		p.sweep = nil
	}
	return unused
}
