package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"postern/internal/postern"
)

func writeKeys(t *testing.T, db *Store, account string, list ...SessionKey) {
	t.Helper()
	if err := db.SessionKeys.Write(t.Context(), WriteSessionKeys{Account: account, Keys: list}); err != nil {
		t.Fatal(err)
	}
}

func keyNames(t *testing.T, db *Store, account, kind, prefix string) []string {
	t.Helper()
	list, err := db.SessionKeys.List(t.Context(), account, kind, prefix)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, k := range list {
		names = append(names, k.Name+"="+string(k.Value))
	}
	return names
}

func TestSessionKeysBelongToTheirAccount(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		writeKeys(t, db, "a", SessionKey{Kind: "session", Name: "1:0", Value: []byte("x")})
		writeKeys(t, db, "b", SessionKey{Kind: "session", Name: "1:0", Value: []byte("y")})
		if k, err := db.SessionKeys.Get(t.Context(), "a", "session", "1:0"); err != nil || string(k.Value) != "x" {
			t.Errorf("key = %q, %v, want x", k.Value, err)
		}
		if k, err := db.SessionKeys.Get(t.Context(), "a", "session", "2:0"); err != nil || k.Value != nil {
			t.Errorf("key = %q, %v, want none", k.Value, err)
		}
		if err := db.SessionKeys.Remove(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		sameText(t, "keys of a", keyNames(t, db, "a", "session", ""))
		sameText(t, "keys of b", keyNames(t, db, "b", "session", ""), "1:0=y")
	})
}

func TestSessionKeysAreWrittenAllOrNone(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		writeKeys(t, db, "a", SessionKey{Kind: "k", Name: "1", Value: []byte("old")},
			SessionKey{Kind: "k", Name: "2", Value: []byte("old")})
		writeKeys(t, db, "b", SessionKey{Kind: "k", Name: "in the way", Value: []byte("new")})
		if err := db.db.Do(t.Context(), opFunc(func(tx *tx) error {
			return tx.Exec(`CREATE UNIQUE INDEX broken ON session_key (value) WHERE name IN ('3', 'in the way')`)
		})); err != nil {
			t.Fatal(err)
		}
		err := db.SessionKeys.Write(t.Context(), WriteSessionKeys{Account: "a", Keys: []SessionKey{
			{Kind: "k", Name: "1", Value: []byte("new")}, {Kind: "k", Name: "2"}, {Kind: "k", Name: "3", Value: []byte("new")},
		}})
		if err == nil {
			t.Error("the write succeeded")
		}
		sameText(t, "keys", keyNames(t, db, "a", "k", ""), "1=old", "2=old")
	})
}

func TestStartedSessionKeysComeFirst(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		var waits []func() error
		for i := range 100 {
			wait, err := db.SessionKeys.StartWrite(t.Context(),
				WriteSessionKeys{Account: "a", Keys: []SessionKey{{Kind: "k", Name: "n", Value: fmt.Append(nil, i)}}})
			if err != nil {
				t.Fatal(err)
			}
			waits = append(waits, wait)
		}
		writeKeys(t, db, "a") // waits for all before
		sameText(t, "keys", keyNames(t, db, "a", "k", ""), "n=99")
		for _, wait := range waits {
			if err := wait(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestSessionKeysByPrefixAndTime(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		for i, name := range []string{"12:0", "12:1", "123:0", "12_1:0", "2:0", ""} {
			writeKeys(t, db, "a", SessionKey{Kind: "k", Name: name, At: postern.Time(i), Value: []byte("x")})
		}
		sameText(t, "names", keyNames(t, db, "a", "k", "12:"), "12:0=x", "12:1=x")
		before, err := db.SessionKeys.Before(t.Context(), "a", "k", 3)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(before)
		sameText(t, "before 3", before, "123:0", "12:1")
		if n, err := db.SessionKeys.Count(t.Context(), "a", "k"); err != nil || n != 5 {
			t.Errorf("count = %d, %v, want the 5 with a time", n, err)
		}
	})
}

func TestSessionAccounts(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		var want []string
		for i := range 5 {
			account := strings.Repeat("1", i+1) + ":1@net"
			want = append(want, account)
			for j := range 3 {
				writeKeys(t, db, account, SessionKey{Kind: "k", Name: fmt.Sprint(j), Value: []byte("x")})
			}
		}
		got, err := db.SessionKeys.Accounts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		sameText(t, "accounts", got, want...)

		ws := newWorkspace(t, db)
		d := newDevice(t, db, ws, postern.Connected)
		linkTo(t, db, d, want[0])
		attempt := openLinkOf(newDevice(t, db, ws, postern.Unlinked), 5)
		for _, err := range []error{
			db.Links.Open(t.Context(), attempt), db.Links.Scanned(t.Context(), LinkRow{Link: attempt.Link}, want[1], "+15550002222"),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got, err = db.SessionKeys.Abandoned(t.Context()); err != nil {
			t.Fatal(err)
		}
		sameText(t, "accounts of no device", got, want[2:]...)
	})
}

func TestManySessionKeysAreForgottenInChunks(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		for i := range 3 {
			var list []SessionKey
			for j := range 400 {
				list = append(list, SessionKey{Kind: fmt.Sprint(i), Name: fmt.Sprint(j), Value: []byte("x")})
			}
			writeKeys(t, db, "a", list...)
		}
		if err := db.SessionKeys.Remove(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if accounts, err := db.SessionKeys.Accounts(t.Context()); err != nil || len(accounts) != 0 {
			t.Errorf("accounts = %v, %v, want none", accounts, err)
		}
	})
}

func TestSessionKeysAfterClose(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.SessionKeys.Write(t.Context(), WriteSessionKeys{Account: "a"}); !errors.As(err, new(*postern.Error)) {
		t.Errorf("write = %v, want that the server is stopping", err)
	}
}
