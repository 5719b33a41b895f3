package lease

import "sync"

// Box gathers values by key until they are taken. Put never blocks.
type Box[K comparable, V any] struct {
	c chan struct{}

	mu     sync.Mutex
	values map[K]V
}

func newBox[K comparable, V any]() *Box[K, V] {
	return &Box[K, V]{c: make(chan struct{}, 1), values: map[K]V{}}
}

// C is readable while there is something to take.
func (b *Box[K, V]) C() <-chan struct{} { return b.c }

// Put adds a value, or replaces that of the same key.
func (b *Box[K, V]) Put(key K, value V) {
	b.mu.Lock()
	b.values[key] = value
	b.mu.Unlock()
	select {
	case b.c <- struct{}{}:
	default:
	}
}

// Take returns what was put since the last call.
func (b *Box[K, V]) Take() map[K]V {
	b.mu.Lock()
	defer b.mu.Unlock()
	values := b.values
	b.values = map[K]V{}
	return values
}
