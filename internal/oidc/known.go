package oidc

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

const (
	knownTime = 24 * time.Hour   // how long the provider's configuration is used before it is read again
	downTime  = 10 * time.Second // pause after the provider did not answer
)

// known caches the configuration of the provider, or the error of reading it.
type known struct {
	turn chan struct{} // a lock of capacity 1 that guards the fields below

	site  *site
	err   error
	until time.Time // when to read the configuration again
}

// site returns the configuration of the provider. It reads it again if the cached one is
// too old; other callers wait meanwhile. If the provider does not answer, site returns
// the last configuration, or an error that wraps [ErrDown] if none was ever read.
func (p *Provider) site(ctx context.Context) (*site, error) {
	select {
	case p.known.turn <- struct{}{}:
		defer func() { <-p.known.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if time.Now().Before(p.known.until) {
		return p.known.site, p.known.err
	}
	s, err := p.discover(ctx)
	switch {
	case err == nil:
		p.known.site, p.known.err, p.known.until = s, nil, time.Now().Add(knownTime)
	case p.known.site != nil:
		p.known.until = time.Now().Add(downTime)
	default:
		p.known.err, p.known.until = fmt.Errorf("%w: %w", ErrDown, err), time.Now().Add(downTime)
	}
	return p.known.site, p.known.err
}

// discover reads the configuration. It continues if ctx is canceled, because other
// requests wait for the answer too.
func (p *Provider) discover(ctx context.Context) (*site, error) {
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), p.client) // the client has a time-out
	provider, err := oidc.NewProvider(ctx, p.opts.Issuer)
	if err != nil {
		return nil, err
	}
	return newSite(provider, p.opts)
}
