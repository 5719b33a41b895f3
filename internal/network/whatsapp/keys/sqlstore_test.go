package keys

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	wastore "go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
	waLog "go.mau.fi/whatsmeow/util/log"
)

// TestAnswersLikeWhatsmeowsOwnStore makes the same calls on whatsmeow's SQL
// store and on ours, in any order, with transactions that fail and connections
// that end between them, and compares the answers.
func TestAnswersLikeWhatsmeowsOwnStore(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			p := newPair(t, seed)
			for range 400 {
				p.step(t)
			}
		})
	}
}

// pair is one account in both stores.
type pair struct {
	rnd       *rand.Rand
	shelf     *shelf
	account   types.JID
	container *sqlstore.Container
	theirs    *wastore.Device
	ours      *wastore.Device

	made     uint32            // prekeys
	versions map[string]uint64 // of the app state
	hashes   byte
	clock    int64
	log      []string
}

func newPair(t *testing.T, seed uint64) *pair {
	t.Helper()
	p := &pair{
		rnd:      rand.New(rand.NewPCG(seed, 1)),
		shelf:    newShelf(t),
		versions: map[string]uint64{},
		clock:    1_700_000_000,
	}
	p.account = p.shelf.link(t, accountA)
	db, err := sql.Open(
		"sqlite",
		"file:"+filepath.Join(t.TempDir(), "theirs.db")+"?_pragma=foreign_keys(1)&_txlock=immediate",
	)
	must(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { closing(t, db.Close) })
	p.container = sqlstore.NewWithDB(db, "sqlite", waLog.Noop)
	must(t, p.container.Upgrade(t.Context()))
	device := p.container.NewDevice()
	device.ID, device.Account = &p.account, signature()
	must(t, device.Save(t.Context()))
	p.reopen(t)
	return p
}

// reopen ends both connections and begins others.
func (p *pair) reopen(t *testing.T) {
	t.Helper()
	if p.ours != nil {
		p.ring(t).Close(t.Context())
	}
	var err error
	p.ours, err = p.shelf.keys.Load(t.Context(), p.account.String())
	must(t, err)
	p.theirs, err = p.container.GetDevice(t.Context(), p.account)
	must(t, err)
}

func (p *pair) ring(t *testing.T) *Ring {
	t.Helper()
	r, ok := RingOf(p.ours)
	if !ok {
		t.Fatal("the device has no ring")
	}
	return r
}

// call is one call, ready to be made on either device; it gives what is compared.
type call func(context.Context, *wastore.Device) (any, error)

func (p *pair) step(t *testing.T) {
	t.Helper()
	switch p.rnd.IntN(40) {
	case 0:
		p.log = append(p.log, "reopen")
		p.reopen(t)
	case 1:
		p.transaction(t)
	case 2:
		must(t, p.ring(t).Flush(t.Context()))
	default:
		p.compare(t.Context(), t, p.any())
	}
}

func (p *pair) compare(ctx context.Context, t *testing.T, c call) {
	t.Helper()
	ours, err := c(ctx, p.ours)
	theirs, theirErr := c(ctx, p.theirs)
	if (err == nil) != (theirErr == nil) || fmt.Sprint(ours) != fmt.Sprint(theirs) {
		t.Fatalf("after\n%s\nours = %v, %v\ntheirs = %v, %v", strings.Join(p.log, "\n"), ours, err, theirs, theirErr)
	}
}

var errRollback = errors.New("roll back")

// transaction makes some calls of decryption, and fails half of the times.
func (p *pair) transaction(t *testing.T) {
	t.Helper()
	var verdict error
	if p.rnd.IntN(2) == 0 {
		verdict = errRollback
	}
	p.log = append(p.log, fmt.Sprintf("begin, to end with %v", verdict))
	err := p.theirs.EventBuffer.DoDecryptionTxn(t.Context(), func(ctx context.Context) error {
		err := p.ours.EventBuffer.DoDecryptionTxn(ctx, func(ctx context.Context) error {
			for range 1 + p.rnd.IntN(6) {
				p.compare(ctx, t, p.inTransaction())
			}
			return verdict
		})
		if !errors.Is(err, verdict) {
			t.Fatalf("our transaction = %v, want %v", err, verdict)
		}
		return verdict
	})
	if !errors.Is(err, verdict) {
		t.Fatal(err)
	}
	p.log = append(p.log, "end")
}

func (p *pair) inTransaction() call {
	return []func() call{p.identity, p.session, p.usePreKey, p.senderKey, p.event}[p.rnd.IntN(5)]()
}

func (p *pair) any() call {
	all := []func() call{
		p.identity,
		p.session,
		p.session,
		p.manySessions,
		p.usePreKey,
		p.makePreKeys,
		p.senderKey,
		p.migrate,
		p.syncKey,
		p.appState,
		p.mac,
		p.contact,
		p.contacts,
		p.chat,
		p.secret,
		p.token,
		p.salt,
		p.event,
		p.lid,
		p.lids,
	}
	return all[p.rnd.IntN(len(all))]()
}

// do notes what a call is, for the report.
func (p *pair) do(what string, c call) call {
	p.log = append(p.log, what)
	return c
}

func (p *pair) number() types.JID {
	return types.NewJID(fmt.Sprintf("1555000%d", p.rnd.IntN(4)), types.DefaultUserServer)
}

func (p *pair) lidOf() types.JID {
	return types.NewJID(fmt.Sprintf("777000%d", p.rnd.IntN(4)), types.HiddenUserServer)
}

func (p *pair) person() types.JID {
	if p.rnd.IntN(2) == 0 {
		return p.number()
	}
	return p.lidOf()
}

func (p *pair) address() string {
	jid := p.person()
	jid.Device = uint16(p.rnd.IntN(2))
	return jid.SignalAddress().String()
}

func (p *pair) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(p.rnd.Uint32())
	}
	return b
}

func (p *pair) later() time.Time {
	p.clock++
	return time.Unix(p.clock, 0)
}

func (p *pair) identity() call {
	at, key := p.address(), [32]byte{byte(p.rnd.IntN(2))}
	switch p.rnd.IntN(8) {
	case 0:
		return p.do("delete identity "+at, func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.Identities.DeleteIdentity(ctx, at)
		})
	case 1:
		user := strings.Split(at, ":")[0]
		return p.do("delete identities "+user, func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.Identities.DeleteAllIdentities(ctx, user)
		})
	case 2, 3, 4:
		return p.do(fmt.Sprint("put identity ", at, key[0]), func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.Identities.PutIdentity(ctx, at, key)
		})
	}
	return p.do(fmt.Sprint("is trusted ", at, key[0]), func(ctx context.Context, d *wastore.Device) (any, error) {
		return d.Identities.IsTrustedIdentity(ctx, at, key)
	})
}

func (p *pair) session() call {
	at, value := p.address(), p.bytes(20)
	switch p.rnd.IntN(8) {
	case 0:
		return p.do("delete session "+at, func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.Sessions.DeleteSession(ctx, at)
		})
	case 1:
		user := strings.Split(at, ":")[0]
		return p.do("delete sessions "+user, func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.Sessions.DeleteAllSessions(ctx, user)
		})
	case 2, 3, 4:
		return p.do("put session "+at, func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.Sessions.PutSession(ctx, at, value)
		})
	case 5:
		return p.do("has session "+at, func(ctx context.Context, d *wastore.Device) (any, error) {
			return d.Sessions.HasSession(ctx, at)
		})
	}
	return p.do("get session "+at, func(ctx context.Context, d *wastore.Device) (any, error) {
		return d.Sessions.GetSession(ctx, at)
	})
}

func (p *pair) manySessions() call {
	list := []string{p.address(), p.address(), p.address()}
	value := p.bytes(20)
	return p.do(fmt.Sprint("use sessions ", list), func(ctx context.Context, d *wastore.Device) (any, error) {
		got, err := d.Sessions.GetManySessions(ctx, list)
		if err != nil {
			return nil, err
		}
		return got, d.Sessions.PutManySessions(ctx, map[string][]byte{list[0]: value, list[1]: value})
	})
}

func (p *pair) migrate() call {
	pn, lid := p.number(), p.lidOf()
	return p.do(fmt.Sprint("migrate ", pn, lid), func(ctx context.Context, d *wastore.Device) (any, error) {
		return nil, d.Sessions.MigratePNToLID(ctx, pn, lid)
	})
}

// makePreKeys compares ids, since the keys are random.
func (p *pair) makePreKeys() call {
	count := uint32(1 + p.rnd.IntN(5))
	switch p.rnd.IntN(4) {
	case 0:
		p.made++
		return p.do("generate one prekey", func(ctx context.Context, d *wastore.Device) (any, error) {
			return idsOf(d.PreKeys.GenOnePreKey(ctx))
		})
	case 1:
		upTo := p.rnd.Uint32N(p.made + 1)
		return p.do(
			fmt.Sprint("mark uploaded up to ", upTo),
			func(ctx context.Context, d *wastore.Device) (any, error) {
				return nil, d.PreKeys.MarkPreKeysAsUploaded(ctx, upTo)
			},
		)
	case 2:
		return p.do("count uploaded", func(ctx context.Context, d *wastore.Device) (any, error) {
			return d.PreKeys.UploadedPreKeyCount(ctx)
		})
	}
	return p.do(
		fmt.Sprintf("get or generate %d prekeys", count),
		func(ctx context.Context, d *wastore.Device) (any, error) {
			list, err := d.PreKeys.GetOrGenPreKeys(ctx, count)
			for _, key := range list {
				p.made = max(p.made, key.KeyID)
			}
			return idsOfAll(list, err)
		},
	)
}

func idsOf(key *keys.PreKey, err error) (any, error) {
	if key == nil {
		return nil, err
	}
	return idsOfAll([]*keys.PreKey{key}, err)
}

func idsOfAll(list []*keys.PreKey, err error) (any, error) {
	var ids []uint32
	for _, key := range list {
		ids = append(ids, key.KeyID)
	}
	return ids, err
}

// usePreKey never removes the newest one, whose id their store would use again.
func (p *pair) usePreKey() call {
	id := p.rnd.Uint32N(p.made + 2)
	if p.rnd.IntN(2) == 0 && id < p.made {
		return p.do(fmt.Sprint("remove prekey ", id), func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.PreKeys.RemovePreKey(ctx, id)
		})
	}
	return p.do(fmt.Sprint("get prekey ", id), func(ctx context.Context, d *wastore.Device) (any, error) {
		key, err := d.PreKeys.GetPreKey(ctx, id)
		return idsOf(key, err)
	})
}

func (p *pair) senderKey() call {
	group, user, value := fmt.Sprintf("1203630%d@g.us", p.rnd.IntN(2)), p.address(), p.bytes(20)
	if p.rnd.IntN(2) == 0 {
		return p.do("put sender key "+group+user, func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.SenderKeys.PutSenderKey(ctx, group, user, value)
		})
	}
	return p.do("get sender key "+group+user, func(ctx context.Context, d *wastore.Device) (any, error) {
		return d.SenderKeys.GetSenderKey(ctx, group, user)
	})
}

func (p *pair) syncKey() call {
	id := []byte{byte(p.rnd.IntN(3))}
	p.clock++
	key := wastore.AppStateSyncKey{Data: p.bytes(8), Fingerprint: p.bytes(8), Timestamp: p.clock}
	if p.rnd.IntN(3) == 0 {
		key.Timestamp -= 1000 // an old one
	}
	switch p.rnd.IntN(4) {
	case 0:
		return p.do("latest sync key", func(ctx context.Context, d *wastore.Device) (any, error) {
			return d.AppStateKeys.GetLatestAppStateSyncKeyID(ctx)
		})
	case 1:
		return p.do("all sync keys", func(ctx context.Context, d *wastore.Device) (any, error) {
			list, err := d.AppStateKeys.GetAllAppStateSyncKeys(ctx)
			var all []wastore.AppStateSyncKey
			for _, key := range list {
				all = append(all, *key)
			}
			return all, err
		})
	case 2:
		return p.do("get sync key", func(ctx context.Context, d *wastore.Device) (any, error) {
			return d.AppStateKeys.GetAppStateSyncKey(ctx, id)
		})
	}
	return p.do("put sync key", func(ctx context.Context, d *wastore.Device) (any, error) {
		return nil, d.AppStateKeys.PutAppStateSyncKey(ctx, id, key)
	})
}

func (p *pair) appState() call {
	name := []string{"regular", "regular_high"}[p.rnd.IntN(2)]
	hash := [128]byte(p.bytes(128))
	switch p.rnd.IntN(6) {
	case 0:
		p.versions[name] = 0
		return p.do("delete version "+name, func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.AppState.DeleteAppStateVersion(ctx, name)
		})
	case 1, 2, 3:
		p.clock++
		version := uint64(p.clock)
		p.versions[name] = version
		return p.do("put version "+name, func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.AppState.PutAppStateVersion(ctx, name, version, hash)
		})
	}
	return p.do("get version "+name, func(ctx context.Context, d *wastore.Device) (any, error) {
		version, hash, err := d.AppState.GetAppStateVersion(ctx, name)
		return fmt.Sprint(version, hash), err
	})
}

// mac only writes what a version belongs to, each index once in a version.
func (p *pair) mac() call {
	name := []string{"regular", "regular_high"}[p.rnd.IntN(2)]
	index := func() []byte { return slices.Repeat([]byte{byte(p.rnd.IntN(4))}, 32) }
	first := index()
	switch p.rnd.IntN(4) {
	case 0:
		return p.do("delete MAC", func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.AppState.DeleteAppStateMutationMACs(ctx, name, [][]byte{first})
		})
	case 1:
		if p.versions[name] == 0 {
			return p.mac()
		}
		p.clock++
		version, hash := uint64(p.clock), [128]byte{1}
		p.versions[name] = version
		list := []wastore.AppStateMutationMAC{{IndexMAC: first, ValueMAC: p.bytes(32)}}
		return p.do("put MAC", func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, errors.Join(
				d.AppState.PutAppStateVersion(ctx, name, version, hash),
				d.AppState.PutAppStateMutationMACs(ctx, name, version, list),
			)
		})
	}
	return p.do("get MAC", func(ctx context.Context, d *wastore.Device) (any, error) {
		return d.AppState.GetAppStateMutationMAC(ctx, name, first)
	})
}

func (p *pair) contact() call {
	who, name := p.person(), fmt.Sprint("name ", p.rnd.IntN(3))
	named := func(changed bool, before string, err error) (any, error) { return fmt.Sprint(changed, before), err }
	switch p.rnd.IntN(5) {
	case 0:
		return p.do("put push name", func(ctx context.Context, d *wastore.Device) (any, error) {
			return named(d.Contacts.PutPushName(ctx, who, name))
		})
	case 1:
		return p.do("put business name", func(ctx context.Context, d *wastore.Device) (any, error) {
			return named(d.Contacts.PutBusinessName(ctx, who, name))
		})
	case 2:
		return p.do("put contact name", func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.Contacts.PutContactName(ctx, who, name, "full")
		})
	}
	return p.do("get contact", func(ctx context.Context, d *wastore.Device) (any, error) {
		return d.Contacts.GetContact(ctx, who)
	})
}

func (p *pair) contacts() call {
	one, other := p.number(), p.lidOf()
	name := fmt.Sprint("name ", p.rnd.IntN(3))
	switch p.rnd.IntN(3) {
	case 0:
		return p.do("put all contact names", func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.Contacts.PutAllContactNames(
				ctx,
				[]wastore.ContactEntry{{JID: one, FirstName: name, FullName: "full"}, {JID: other, FirstName: name}},
			)
		})
	case 1:
		return p.do("put redacted phones", func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.Contacts.PutManyRedactedPhones(
				ctx,
				[]wastore.RedactedPhoneEntry{{JID: one, RedactedPhone: name}},
			)
		})
	}
	return p.do("all contacts", func(ctx context.Context, d *wastore.Device) (any, error) {
		return d.Contacts.GetAllContacts(ctx)
	})
}

func (p *pair) chat() call {
	who, on := p.person(), p.rnd.IntN(2) == 0
	until := []time.Time{{}, wastore.MutedForever, time.Unix(p.clock, 0)}[p.rnd.IntN(3)]
	switch p.rnd.IntN(4) {
	case 0:
		return p.do("mute", func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.ChatSettings.PutMutedUntil(ctx, who, until)
		})
	case 1:
		return p.do("pin", func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.ChatSettings.PutPinned(ctx, who, on)
		})
	case 2:
		return p.do("archive", func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.ChatSettings.PutArchived(ctx, who, on)
		})
	}
	return p.do("get chat", func(ctx context.Context, d *wastore.Device) (any, error) {
		return d.ChatSettings.GetChatSettings(ctx, who)
	})
}

// secret stores each id once: with the same id under both names of a chat, their
// store gives either.
func (p *pair) secret() call {
	chat, sender := p.person(), p.person()
	sender.Device = 3
	value := p.bytes(32)
	switch p.rnd.IntN(3) {
	case 0:
		p.hashes++
		id := fmt.Sprint("3EB0", p.hashes)
		return p.do(
			fmt.Sprint("put secret ", chat, sender, id),
			func(ctx context.Context, d *wastore.Device) (any, error) {
				return nil, errors.Join(
					d.MsgSecrets.PutMessageSecret(ctx, chat, sender, id, value),
					d.MsgSecrets.PutMessageSecret(ctx, chat, sender, id, []byte("not the first")),
				)
			},
		)
	case 1:
		p.hashes++
		id := fmt.Sprint("3EB0", p.hashes)
		return p.do("put secrets", func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.MsgSecrets.PutMessageSecrets(
				ctx,
				[]wastore.MessageSecretInsert{{Chat: chat, Sender: sender, ID: id, Secret: value}},
			)
		})
	}
	id := fmt.Sprint("3EB0", 1+p.rnd.IntN(int(p.hashes)+1))
	return p.do(fmt.Sprint("get secret ", chat, sender, id), func(ctx context.Context, d *wastore.Device) (any, error) {
		secret, from, err := d.MsgSecrets.GetMessageSecret(ctx, chat, sender, id)
		return fmt.Sprintf("%x %s", secret, from), err
	})
}

func (p *pair) token() call {
	who := p.person()
	token := wastore.PrivacyToken{User: who, Token: p.bytes(8), Timestamp: p.later()}
	if p.rnd.IntN(3) == 0 {
		token.Timestamp = token.Timestamp.Add(-1000 * time.Second)
	}
	if p.rnd.IntN(2) == 0 {
		token.SenderTimestamp = p.later()
	}
	cutoff := time.Unix(p.clock-int64(p.rnd.IntN(2000)), 0)
	switch p.rnd.IntN(5) {
	case 0:
		return p.do("delete expired tokens", func(ctx context.Context, d *wastore.Device) (any, error) {
			return d.PrivacyTokens.DeleteExpiredPrivacyTokens(ctx, cutoff)
		})
	case 1, 2:
		return p.do(fmt.Sprint("put token ", who), func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.PrivacyTokens.PutPrivacyTokens(ctx, token)
		})
	}
	return p.do(fmt.Sprint("get token ", who), func(ctx context.Context, d *wastore.Device) (any, error) {
		return d.PrivacyTokens.GetPrivacyToken(ctx, who)
	})
}

func (p *pair) salt() call {
	salt := p.bytes(8)
	switch p.rnd.IntN(3) {
	case 0:
		return p.do("put salt", func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.NCTSalt.PutNCTSalt(ctx, salt)
		})
	case 1:
		return p.do("delete salt", func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.NCTSalt.DeleteNCTSalt(ctx)
		})
	}
	return p.do("get salt", func(ctx context.Context, d *wastore.Device) (any, error) {
		return d.NCTSalt.GetNCTSalt(ctx)
	})
}

// event compares what is still to be handled: of what was handled their store
// keeps the hash, and ours nothing.
func (p *pair) event() call {
	plaintext, sent := p.bytes(8), p.later()
	switch p.rnd.IntN(4) {
	case 0:
		p.hashes++
		hash := [32]byte{p.hashes}
		return p.do(fmt.Sprint("put event ", hash[0]), func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.EventBuffer.PutBufferedEvent(ctx, hash, plaintext, sent)
		})
	case 1:
		hash := [32]byte{byte(p.rnd.IntN(int(p.hashes) + 2))}
		return p.do(fmt.Sprint("clear event ", hash[0]), func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.EventBuffer.ClearBufferedEventPlaintext(ctx, hash)
		})
	}
	hash := [32]byte{byte(p.rnd.IntN(int(p.hashes) + 2))}
	return p.do(fmt.Sprint("get event ", hash[0]), func(ctx context.Context, d *wastore.Device) (any, error) {
		event, err := d.EventBuffer.GetBufferedEvent(ctx, hash)
		if event == nil || event.Plaintext == nil {
			return nil, err
		}
		return fmt.Sprintf("%x %s", event.Plaintext, event.ServerTime), err
	})
}

func (p *pair) lid() call {
	pn, lid := p.number(), p.lidOf()
	pn.Device, lid.Device = 2, 2
	switch p.rnd.IntN(4) {
	case 0:
		return p.do(fmt.Sprint("put LID ", lid, pn), func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.LIDs.PutLIDMapping(ctx, lid, pn)
		})
	case 1:
		return p.do("put no LID", func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.LIDs.PutLIDMapping(ctx, pn, lid)
		})
	case 2:
		return p.do(fmt.Sprint("get LID of ", pn), func(ctx context.Context, d *wastore.Device) (any, error) {
			return d.LIDs.GetLIDForPN(ctx, pn)
		})
	}
	return p.do(fmt.Sprint("get number of ", lid), func(ctx context.Context, d *wastore.Device) (any, error) {
		return d.LIDs.GetPNForLID(ctx, lid)
	})
}

// lids stores mappings that do not contradict each other: their store does not
// keep the order.
func (p *pair) lids() call {
	one, two := wastore.LIDMapping{LID: p.lidOf(), PN: p.number()}, wastore.LIDMapping{LID: p.lidOf(), PN: p.number()}
	if p.rnd.IntN(3) == 0 && one.LID != two.LID && one.PN != two.PN {
		return p.do(fmt.Sprint("put LIDs ", one, two), func(ctx context.Context, d *wastore.Device) (any, error) {
			return nil, d.LIDs.PutManyLIDMappings(ctx, []wastore.LIDMapping{one, two, {LID: one.PN, PN: one.LID}})
		})
	}
	list := []types.JID{p.number(), p.number(), p.lidOf()}
	return p.do(fmt.Sprint("get LIDs of ", list), func(ctx context.Context, d *wastore.Device) (any, error) {
		return d.LIDs.GetManyLIDsForPNs(ctx, list)
	})
}
