package vendorsim_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"go.mau.fi/whatsmeow/util/keys"
	waLog "go.mau.fi/whatsmeow/util/log"
)

// memStore keeps what a whatsmeow client needs in memory, so that the benchmarks measure the
// network and not a database.
type memStore struct {
	*store.NoopStore

	mu       sync.Mutex
	sessions map[string][]byte
	prekeys  map[uint32]*keys.PreKey
	lids     map[types.JID]types.JID
}

func (m *memStore) IsTrustedIdentity(context.Context, string, [32]byte) (bool, error) {
	return true, nil
}

func (m *memStore) GetSession(_ context.Context, address string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[address], nil
}

func (m *memStore) HasSession(ctx context.Context, address string) (bool, error) {
	s, err := m.GetSession(ctx, address)
	return s != nil, err
}

func (m *memStore) GetManySessions(_ context.Context, addresses []string) (map[string][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string][]byte)
	for _, a := range addresses {
		out[a] = m.sessions[a]
	}
	return out, nil
}

func (m *memStore) PutSession(ctx context.Context, address string, s []byte) error {
	return m.PutManySessions(ctx, map[string][]byte{address: s})
}

func (m *memStore) PutManySessions(_ context.Context, sessions map[string][]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.Copy(m.sessions, sessions)
	return nil
}

func (m *memStore) GetOrGenPreKeys(_ context.Context, n uint32) ([]*keys.PreKey, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*keys.PreKey
	for range n {
		k := keys.NewPreKey(uint32(len(m.prekeys) + 1))
		m.prekeys[k.KeyID] = k
		out = append(out, k)
	}
	return out, nil
}

func (m *memStore) GetPreKey(_ context.Context, id uint32) (*keys.PreKey, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.prekeys[id], nil
}

func (m *memStore) UploadedPreKeyCount(context.Context) (int, error) { return len(m.prekeys), nil }

func (m *memStore) PutManyLIDMappings(_ context.Context, mappings []store.LIDMapping) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range mappings {
		m.lids[x.PN.ToNonAD()] = x.LID.ToNonAD()
	}
	return nil
}

func (m *memStore) GetLIDForPN(_ context.Context, pn types.JID) (types.JID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lids[pn.ToNonAD()], nil
}

func newMemDevice() *store.Device {
	m := &memStore{
		NoopStore: new(store.NoopStore), sessions: map[string][]byte{},
		prekeys: map[uint32]*keys.PreKey{}, lids: map[types.JID]types.JID{},
	}
	id := keys.NewKeyPair()
	var secret [32]byte
	rand.Read(secret[:])
	return &store.Device{
		NoiseKey: keys.NewKeyPair(), IdentityKey: id, RegistrationID: 1, SignedPreKey: id.CreateSignedPreKey(1),
		AdvSecretKey: secret[:], Initialized: true,
		Identities: m, Sessions: m, PreKeys: m, SenderKeys: m, AppStateKeys: m, AppState: m, Contacts: m,
		ChatSettings: m, MsgSecrets: m, PrivacyTokens: m, NCTSalt: m, EventBuffer: m, LIDs: m, Container: m,
	}
}

// linkInMemory links a client without a database and waits until it is connected.
func linkInMemory(b *testing.B, v *vendorsim.Vendor, number string, handler func(any)) *whatsmeow.Client {
	b.Helper()
	c := whatsmeow.NewClient(newMemDevice(), waLog.Noop)
	c.SetPreLoginHTTPClient(v.HTTPClient())
	c.SetWebsocketHTTPClient(v.HTTPClient())
	connected := make(chan struct{}, 1)
	c.AddEventHandler(func(evt any) {
		if _, ok := evt.(*events.Connected); ok {
			connected <- struct{}{}
		}
		if handler != nil {
			handler(evt)
		}
	})
	b.Cleanup(c.Disconnect)
	qr, err := c.GetQRChannel(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Connect(); err != nil {
		b.Fatal(err)
	}
	if err := v.Scan(b.Context(), (<-qr).Code, number); err != nil {
		b.Fatal(err)
	}
	<-connected
	return c
}

func openBench(b *testing.B, dir string) *vendorsim.Vendor {
	b.Helper()
	v, err := vendorsim.Open(vendorsim.Options{Dir: dir, Keys: testKeys})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = v.Close() })
	return v
}

func BenchmarkLink(b *testing.B) {
	v := openBench(b, "")
	for i := 0; b.Loop(); i++ {
		linkInMemory(b, v, fmt.Sprintf("+1555%07d", i), nil).Disconnect()
	}
}

// BenchmarkOutbound has clients send texts to a phone, in memory and with every message on the disk
// before it is acknowledged.
func BenchmarkOutbound(b *testing.B) {
	for _, clients := range []int{1, 50} {
		for _, kept := range []bool{false, true} {
			b.Run(fmt.Sprintf("clients=%d/disk=%v", clients, kept), func(b *testing.B) {
				dir := ""
				if kept {
					dir = b.TempDir()
				}
				benchmarkOutbound(b, openBench(b, dir), clients)
			})
		}
	}
}

func benchmarkOutbound(b *testing.B, v *vendorsim.Vendor, clients int) {
	b.Helper()
	all := make([]*whatsmeow.Client, clients)
	for i := range all {
		all[i] = linkInMemory(b, v, fmt.Sprintf("+1555%07d", i), nil)
	}
	work := make(chan struct{})
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(func() {
			for range work {
				if _, err := c.SendMessage(b.Context(), jid(bob), textOf("hello")); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

func BenchmarkInbound(b *testing.B) {
	v := openBench(b, "")
	got := make(chan string, 1)
	linkInMemory(b, v, alice, func(evt any) {
		if m, ok := evt.(*events.Message); ok {
			got <- m.Message.GetConversation()
		}
	})
	want := []string{"hello"}
	for b.Loop() {
		if _, err := v.Send(b.Context(), alice, bob, want[0]); err != nil {
			b.Fatal(err)
		}
		if body := <-got; !slices.Contains(want, body) {
			b.Fatalf("message is %q", body)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}
