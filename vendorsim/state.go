package vendorsim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.mau.fi/whatsmeow/util/keys"
)

// The names of the journal's records. Numbers are written without the plus:
//
//	keys                               Keys
//	account/<number>                   account: last device, ban, restriction
//	companion/<number>/<device>        companion: its public keys
//	prekey/<number>/<device>/<id>      one unused prekey of a companion
//	queue/<number>/<device>/<position> one node that a companion has not acknowledged
//	phone/<number>                     phone: how many prekeys it has handed out
//	session/<number>/<address>         one Signal session of a phone
//	ledger/<position>                  Entry
//	shown/<number>/<position>          Shown
//	state/<number>/<collection>/<version> one patch of the app state
//	profile/<number>                   profile: what others see of an account
//	channel/<id>                       channel
const keysRecord = "keys"

// put writes a value to the journal. The caller holds the lock that guards the value.
func (v *core) put(key string, value any) {
	if v.journal == nil {
		return
	}
	raw, err := json.Marshal(value)
	if err != nil { // only for a type that JSON cannot represent
		v.log.Error("encode journal record", "key", key, "error", err)
		return
	}
	v.journal.put(key, raw)
}

func (v *core) putRaw(key string, value []byte) {
	if v.journal != nil {
		v.journal.put(key, value)
	}
}

func (v *core) remove(key string) {
	if v.journal != nil {
		v.journal.remove(key)
	}
}

// load reads the state directory and sets the Vendor's keys.
func (v restorer) load(dir string) error {
	if dir == "" {
		if v.keys == nil {
			v.keys = NewKeys()
		}
		return nil
	}
	var values map[string][]byte
	var err error
	if v.journal, values, err = openJournal(dir); err != nil {
		return err
	}
	if err = v.loadKeys(values[keysRecord]); err == nil {
		err = v.restore(values)
	}
	if err != nil {
		_ = v.journal.close() // the first error is more useful
		return fmt.Errorf("open vendor: %w", err)
	}
	return nil
}

func (v restorer) loadKeys(raw []byte) error {
	if raw == nil {
		if v.keys == nil {
			v.keys = NewKeys()
		}
		v.put(keysRecord, v.keys.save())
		return v.sync()
	}
	var saved savedKeys
	if err := json.Unmarshal(raw, &saved); err != nil {
		return fmt.Errorf("record %q: %w", keysRecord, err)
	}
	if v.keys != nil && v.keys.save() != saved {
		return ErrOtherKeys
	}
	v.keys = saved.keys()
	return nil
}

// restore applies the records in the order of their names. The records of an account's companions
// sort after the account, and the records of a companion sort after the companion.
func (v restorer) restore(values map[string][]byte) error {
	restorers := map[string]func([]string, []byte) error{
		"account":   v.restoreAccount,
		"companion": v.restoreCompanion,
		"prekey":    v.restorePreKey,
		"queue":     v.restoreDelivery,
		"phone":     v.restorePhone,
		"session":   v.restoreSession,
		"group":     v.restoreGroup,
		"channel":   v.restoreChannel,
		"ledger":    v.restoreEntry,
		"shown":     v.restoreShown,
		"profile":   v.restoreProfile,
		"state":     v.restorePatch,
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		kind, rest, _ := strings.Cut(key, "/")
		restorer := restorers[kind]
		if restorer == nil {
			continue
		}
		if err := restorer(strings.Split(rest, "/"), values[key]); err != nil {
			return fmt.Errorf("record %q: %w", key, err)
		}
	}
	return nil
}

// companionNamed returns the companion that the first two parts of a record's name identify.
func (v restorer) companionNamed(name []string) (*companion, error) {
	if len(name) < 3 {
		return nil, fmt.Errorf("name of %d parts", len(name))
	}
	device, err := strconv.ParseUint(name[1], 10, 16)
	if err != nil {
		return nil, err
	}
	cp := v.devices.companion(number(name[0]), uint16(device))
	if cp == nil {
		return nil, errUnknownCompanion
	}
	return cp, nil
}

func (v restorer) restoreAccount(name []string, raw []byte) error {
	a := &account{number: number(name[0])}
	if err := json.Unmarshal(raw, &a.saved); err != nil {
		return err
	}
	v.accounts[a.number] = a
	return nil
}

func (v restorer) restoreCompanion(name []string, raw []byte) error {
	a := v.accounts[number(name[0])]
	if a == nil {
		return errUnknownCompanion
	}
	cp := &companion{account: a}
	if err := json.Unmarshal(raw, &cp.saved); err != nil {
		return err
	}
	a.add(cp)
	return nil
}

func (v restorer) restorePreKey(name []string, raw []byte) error {
	cp, err := v.companionNamed(name)
	if err != nil {
		return err
	}
	id, err := strconv.ParseUint(name[2], 10, 32)
	if err != nil || len(raw) != 32 {
		return fmt.Errorf("prekey of %d bytes: %w", len(raw), err)
	}
	pub := [32]byte(raw)
	cp.prekeys = append(cp.prekeys, &keys.PreKey{KeyPair: keys.KeyPair{Pub: &pub}, KeyID: uint32(id)})
	return nil
}

func (v restorer) restoreDelivery(name []string, raw []byte) error {
	cp, err := v.companionNamed(name)
	if err != nil {
		return err
	}
	d := new(delivery)
	if err := json.Unmarshal(raw, d); err != nil {
		return err
	}
	cp.queue = append(cp.queue, d)
	cp.nextPosition = d.Position + 1
	return nil
}

func (v restorer) restorePhone(name []string, raw []byte) error {
	p, err := v.phone(number(name[0]))
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, &p.saved)
}

func (v restorer) restoreSession(name []string, raw []byte) error {
	p, err := v.phone(number(name[0]))
	if err != nil || len(name) < 2 {
		return fmt.Errorf("session of %d parts: %w", len(name), err)
	}
	p.sessions[name[1]] = raw
	return nil
}

func (v restorer) restoreGroup(_ []string, raw []byte) error {
	g := &group{}
	if err := json.Unmarshal(raw, &g.saved); err != nil {
		return err
	}
	v.groups[g.saved.ID] = g
	return nil
}

func (v restorer) restoreProfile(name []string, raw []byte) error {
	var p profile
	err := json.Unmarshal(raw, &p)
	v.profiles[number(name[0])] = p
	return err
}

func (v restorer) restoreEntry(_ []string, raw []byte) error {
	e := new(Entry)
	if err := json.Unmarshal(raw, e); err != nil {
		return err
	}
	v.ledger.add(e)
	return nil
}

func (v restorer) restoreShown(name []string, raw []byte) error {
	var m Shown
	if err := json.Unmarshal(raw, &m); err != nil || len(name) < 2 {
		return fmt.Errorf("message of %d parts: %w", len(name), err)
	}
	position, err := strconv.ParseInt(name[1], 10, 64)
	if err != nil {
		return err
	}
	n := number(name[0])
	if v.screens[n] == nil {
		v.screens[n] = &screen{}
	}
	v.screens[n].messages = append(v.screens[n].messages, m)
	v.screens[n].next = position + 1
	return nil
}
