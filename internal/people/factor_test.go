package people

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/postern"
)

// codeOf is the code of an app at a time (RFC 6238).
func codeOf(t *testing.T, secret string, at time.Time) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	h := hmac.New(sha1.New, key)
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(at.Unix()/30)))
	sum := h.Sum(nil)
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[sum[19]&15:])&0x7fffffff%1_000_000)
}

// An attacker who knows the password tries few codes in a day, from however many networks and across
// restarts, and leaves the user every other way in.
func TestT16CodesOfADayAreFew(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		u, _ := first(t, g)
		noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
		p := g.People
		at := func(when time.Time) { p.now = func() time.Time { return when } }
		at(noon)
		self := access.Self{ID: u.ID, Sure: true}
		if err := p.SecondFactors.BeginApp(t.Context(), self); err != nil {
			t.Fatal(err)
		}
		app, err := p.SecondFactors.AppSecret(t.Context(), self)
		if err != nil {
			t.Fatal(err)
		}
		recovery, err := p.SecondFactors.ConfirmApp(t.Context(), self, codeOf(t, app.Text, noon))
		if err != nil {
			t.Fatal(err)
		}
		cookie, _, err := p.SignIns.Remember(t.Context(), self, "")
		if err != nil {
			t.Fatal(err)
		}
		networks := 0
		enter := func(code, cookie string) error {
			networks++
			who := access.Pending{ID: u.ID, Address: fmt.Sprintf("198.51.%d.%d", networks/250, networks%250), Browser: cookie}
			return p.SecondFactors.UseCode(t.Context(), who, code)
		}
		at(noon.Add(time.Minute))
		if err := enter(codeOf(t, app.Text, noon.Add(time.Minute)), ""); err != nil {
			t.Fatalf("the right code, which is no guess: %v", err)
		}
		at(noon.Add(time.Hour))
		right := codeOf(t, app.Text, noon.Add(time.Hour))
		wrong := "000000"
		if right == wrong {
			wrong = "000001"
		}
		for i := range codesPerDay {
			if err := enter(wrong, ""); postern.ReasonOf(err) != postern.ValidationFailed {
				t.Fatalf("wrong code %d is answered %v", i+1, err)
			}
		}
		for range 2 {
			if e, _ := errors.AsType[*postern.Error](enter(right, "")); e == nil ||
				e.Reason != postern.RateLimited || e.RetryAfter != 11*time.Hour {
				t.Errorf("after %d wrong codes the right one is answered %v", codesPerDay, e)
			}
			p = New(Options{DB: p.db, Box: p.box, PasswordMemory: 64}) // a restart
			at(noon.Add(time.Hour))
		}
		if err := enter(right, cookie); err != nil {
			t.Errorf("the right code in the user's own browser: %v", err)
		}
		if err := enter(recovery[0], ""); err != nil {
			t.Errorf("a recovery code: %v", err)
		}
		at(noon.Add(24 * time.Hour))
		if err := enter(codeOf(t, app.Text, noon.Add(24*time.Hour)), ""); err != nil {
			t.Errorf("the right code on the next day: %v", err)
		}
	})
}
