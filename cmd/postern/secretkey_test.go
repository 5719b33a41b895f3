package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
)

const manyKeys = 3000 // values, so that encrypting them again takes a while

// withKeys opens the database of a directory, in which no server runs, and calls do with its values' places.
func withKeys(t *testing.T, dir string, do func(s *store.Store, name, place string) error) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for i := range manyKeys {
		name := fmt.Sprint(i)
		err = errors.Join(err, do(s, name, postern.SessionKeyPlace("a", "k", name)))
	}
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
}

// killWhen starts a server, and kills it as soon as its log says something.
func killWhen(t *testing.T, dir, says string) {
	t.Helper()
	var errs output
	cmd := program(t.Context(), &errs, &errs, "serve", "--data-dir", dir, "--sandbox", "--addr", "127.0.0.1:0",
		"--ops-addr", "127.0.0.1:0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitText(t, &errs, says)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
		t.Errorf("the server ended by itself: %v", err)
	}
}

// A server that is killed at any point of a rotation goes on with it, and no value is lost.
func TestKilledRotationGoesOn(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	at, file := "--data-dir="+dir, filepath.Join(dir, "secret.key")
	mustRun(t, "workspace", "create", "--name", "X", at)
	before, err := seal.LoadKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	first := before.IDs()[0]
	box, err := seal.NewBoxOf(before, first, first)
	if err != nil {
		t.Fatal(err)
	}
	withKeys(t, dir, func(s *store.Store, name, place string) error {
		_, err := s.SessionKeys.StartWrite(t.Context(), store.WriteSessionKeys{
			Account: "a", Keys: []store.SessionKey{{Kind: "k", Name: name, Value: box.Seal([]byte(name), place)}},
		})
		return err
	})
	mustRun(t, "secret-key", "rotate", at)
	if exit, _, errs := command(t, "secret-key", "rotate", at); exit != 1 || !strings.Contains(errs, "has not ended") {
		t.Errorf("a second rotation = %d %s", exit, errs)
	}
	killWhen(t, dir, "a new secret key encrypts")
	killWhen(t, dir, "values of earlier secret keys are encrypted again")
	if exit, _, errs := command(t, "secret-key", "prune", at); exit != 1 || !strings.Contains(errs, "nothing to remove") {
		t.Errorf("prune while the first key is needed = %d %s", exit, errs)
	}
	killWhen(t, dir, "no value needs an earlier secret key any more")
	t.Run("server", func(t *testing.T) {
		serve(t, dir, "--sandbox", "on")
		for timeout := untilTimeout(t); ; {
			if strings.Contains(mustRun(t, "secret-key", "list", at), "retired") {
				break
			}
			if timeout.Err() != nil {
				t.Fatal("the first key is not retired")
			}
		}
		mustRun(t, "secret-key", "prune", at)
	})
	after, err := seal.LoadKeys(file)
	if err != nil || len(after.IDs()) != 1 || after.Has(first) {
		t.Fatalf("left = %v, %v", after.IDs(), err)
	}
	if box, err = seal.NewBoxOf(after, "", after.IDs()[0]); err != nil {
		t.Fatal(err)
	}
	withKeys(t, dir, func(s *store.Store, name, place string) error {
		k, err := s.SessionKeys.Get(t.Context(), "a", "k", name)
		if err != nil {
			return err
		}
		plain, err := box.Open(k.Value, place)
		if err == nil && string(plain) != name {
			err = fmt.Errorf("the value is %q, want %q", plain, name)
		}
		return err
	})
	text := []byte("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	want := "lacks the secret key " + string(after.IDs()[0])
	if exit, _, errs := command(t, "workspace", "list", at); exit != 1 || !strings.Contains(errs, want) {
		t.Errorf("with another key = %d %s, want %q", exit, errs, want)
	}
	if _, out, errs := command(t, "doctor", at); !strings.Contains(out, want) {
		t.Errorf("doctor says %s%s, want %q", out, errs, want)
	}
}
