package oidc

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

const (
	knownTime = 24 * time.Hour   // how long the configuration of a provider is used
	downTime  = 10 * time.Second // how long a provider that did not answer is not asked again
)

// known is the configuration of the provider, as it was read last.
type known struct {
	turn chan struct{} // its holder may ask the provider, and use the fields below

	site  *site
	err   error
	until time.Time
}

// site returns the configuration of the provider, and reads it when the last one is
// too old. One caller asks the provider while others wait. When the provider does not
// answer, the last configuration stays in use.
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

// discover reads the configuration. It outlives the request that asks, because
// others wait for the answer too.
func (p *Provider) discover(ctx context.Context) (*site, error) {
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), p.client) // which has a time-out
	provider, err := oidc.NewProvider(ctx, p.opts.Issuer)
	if err != nil {
		return nil, err
	}
	return newSite(provider, p.opts)
}
