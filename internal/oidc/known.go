package oidc

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

const (
	knownTime = 24 * time.Hour   // that what a provider says about itself counts
	downTime  = 10 * time.Second // that a provider that did not answer is left alone
)

// known is what the provider said about itself when it was asked last.
type known struct {
	turn chan struct{} // who holds it may ask, and read and write what follows

	site  *site
	err   error
	until time.Time
}

// site asks the provider about itself, unless it was asked a short time ago. One asks
// while others wait. What was known goes on when the provider does not answer.
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

// discover outlives the request that asks: others wait for the answer too.
func (p *Provider) discover(ctx context.Context) (*site, error) {
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), p.client) // which has a time-out
	provider, err := oidc.NewProvider(ctx, p.opts.Issuer)
	if err != nil {
		return nil, err
	}
	return newSite(provider)
}
