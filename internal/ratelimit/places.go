package ratelimit

import "sync"

// Places bounds how many requests of a kind that takes long are served at a time, for each of
// many names.
type Places struct {
	each, most         int   // of a name, and of all names
	eachTaken, allGone error // what a request beyond them is told

	mu   sync.Mutex
	all  int
	open map[string]int
}

// NewPlaces returns places for at most each requests of a name and most in all. A request beyond them gets the
// error eachTaken or allGone.
func NewPlaces(each, most int, eachTaken, allGone error) *Places {
	return &Places{each: each, most: most, eachTaken: eachTaken, allGone: allGone, open: map[string]int{}}
}

// SetMost changes how many there may be in all.
func (p *Places) SetMost(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = n
}

// Take counts one more request until done is called, or refuses it.
func (p *Places) Take(name string) (done func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.open[name] >= p.each:
		return nil, p.eachTaken
	case p.all >= p.most:
		return nil, p.allGone
	}
	p.all++
	p.open[name]++
	return func() { p.give(name) }, nil
}

func (p *Places) give(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.open[name]--; p.open[name] == 0 {
		delete(p.open, name)
	}
}
