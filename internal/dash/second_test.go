package dash

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/people"
)

// app is an authenticator app (RFC 6238). Its clock stands where it was set up, or
// steps of 30 seconds from there: the next two codes are good for a minute at least.
type app struct {
	t      *testing.T
	secret string
	step   int64
}

func (a app) code(steps int64) string {
	a.t.Helper()
	key, err := base32.StdEncoding.DecodeString(a.secret)
	if err != nil {
		a.t.Fatal(err)
	}
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(a.step+steps))
	h := hmac.New(sha1.New, key)
	h.Write(counter[:])
	sum := h.Sum(nil)
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[sum[19]&15:])&0x7fffffff%1_000_000)
}

// withApp sets an authenticator app up, by its first code, and gives it with the
// recovery codes.
func (c *client) withApp() (a app, recovery []string) {
	c.t.Helper()
	c.want(c.post("/account/second/app", nil), http.StatusSeeOther, "/account/second")
	c.want(c.post("/account/second", url.Values{"password": {password}}), http.StatusSeeOther, "/account/second")
	c.want(c.post("/account/second/app", nil), http.StatusSeeOther, "/account/second/app")
	a = app{t: c.t, step: time.Now().Unix() / 30}
	a.secret = regexp.MustCompile(`[A-Z2-7]{32}`).FindString(c.get("/account/second/app").body)
	c.want(c.post("/account/second/app/confirm", url.Values{"code": {"000000"}}), http.StatusUnprocessableEntity, "")
	p := c.want(c.post("/account/second/app/confirm", url.Values{"code": {a.code(0)}}), http.StatusCreated, "")
	for _, m := range regexp.MustCompile(`[>\n]([a-z2-7]{5}-[a-z2-7]{5})`).FindAllStringSubmatch(p.body, -1) {
		recovery = append(recovery, m[1])
	}
	if len(recovery) != 10 {
		c.t.Fatalf("there are %d recovery codes", len(recovery))
	}
	return a, recovery
}

func TestPasswordAloneOpensNothingBesideAnApp(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	other := s.signIn()
	phone, recovery := c.withApp()
	other.want(other.get("/account"), http.StatusSeeOther, "/signin?next=%2Faccount")
	c.want(c.get("/account"), http.StatusOK, "")

	b := s.browser()
	right := url.Values{"email": {email}, "password": {password}, "next": {"/keys"}}
	b.want(b.post("/signin", right), http.StatusSeeOther, "/signin/second?next=%2Fkeys")
	for _, path := range []string{"/", "/keys", "/account", "/account/second"} {
		if p := b.get(path); p.status != http.StatusSeeOther ||
			!strings.HasPrefix(p.header.Get("Location"),
				"/signin") {
			t.Errorf("with the password alone %s is answered %d to %s", path, p.status, p.header.Get("Location"))
		}
	}
	// used at the confirmation
	b.want(b.post("/signin/second", url.Values{"code": {phone.code(0)}}), http.StatusUnprocessableEntity, "")
	before := b.token()
	b.want(b.post("/signin/second", url.Values{"code": {phone.code(1)}, "next": {"/keys"}}), http.StatusSeeOther,
		"/keys")
	if b.token() == before {
		t.Error("the session is the one from before the second step")
	}
	b.want(b.get("/keys"), http.StatusOK, "")

	again := s.browser()
	again.want(again.post("/signin", right), http.StatusSeeOther, "/signin/second?next=%2Fkeys")
	again.want(again.post("/signin/second", url.Values{"code": {phone.code(1)}}), http.StatusUnprocessableEntity, "")
	again.want(
		again.post("/signin/second", url.Values{"code": {strings.ToUpper(recovery[3])}, "next": {"//evil.example"}}),
		http.StatusSeeOther, "/",
	)
	third := s.browser()
	third.want(third.post("/signin", right), http.StatusSeeOther, "/signin/second?next=%2Fkeys")
	third.want(third.post("/signin/second", url.Values{"code": {recovery[3]}}), http.StatusUnprocessableEntity, "")
}

func TestSecondStepWithoutTheFirstIsNone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	phone, _ := s.setUp().withApp()
	c := s.browser()
	c.want(c.get("/signin/second"), http.StatusSeeOther, "/signin")
	c.want(c.post("/signin/second", url.Values{"code": {phone.code(1)}}), http.StatusSeeOther, "/signin")
	c.want(c.post("/signin/second", url.Values{"passkey": {"{}"}}), http.StatusSeeOther, "/signin")
}

// A new password while the second step is open: the step leads nowhere.
func TestSecondStepOfAnOldPasswordLeadsNowhere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	phone, _ := c.withApp()
	b := s.browser()
	b.want(
		b.post("/signin", url.Values{"email": {email}, "password": {password}}), http.StatusSeeOther,
		"/signin/second?next=%2F",
	)
	c.want(
		c.post("/account/password", url.Values{"current": {password}, "password": {"five plain words are here"}}),
		http.StatusSeeOther, "/account",
	)
	b.want(b.post("/signin/second", url.Values{"code": {phone.code(1)}}), http.StatusUnauthorized, "")
	b.want(b.get("/account"), http.StatusSeeOther, "/signin?next=%2Faccount")
}

// Guesses of the second step are as few as those of the first.
func TestSecondStepIsNotGuessed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	phone, _ := s.setUp().withApp()
	c := s.browser()
	c.want(
		c.post("/signin", url.Values{"email": {email}, "password": {password}}), http.StatusSeeOther,
		"/signin/second?next=%2F",
	)
	limited := false
	for range 40 {
		limited = limited || c.post("/signin/second",
			url.Values{"code": {"123456"}}).status == http.StatusTooManyRequests
	}
	if p := c.post("/signin/second", url.Values{"code": {phone.code(1)}}); !limited ||
		p.status != http.StatusTooManyRequests {
		t.Errorf("after forty guesses the right code is answered %d", p.status)
	}
}

// A link for a new password asks for the second step too, unless the operator says
// otherwise.
func TestResetKeepsTheSecondStep(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{false, true} {
		s := newSite(t)
		s.setUp().withApp()
		_, token, err := s.p.PasswordLinks.Reset(t.Context(), access.Operator(),
			people.Reset{Email: email, Alone: alone})
		if err != nil {
			t.Fatal(err)
		}
		c := s.browser()
		to := "/signin/second?next=%2F"
		if alone {
			to = "/"
		}
		c.want(c.post("/join/"+token, url.Values{"password": {"five plain words are here"}}), http.StatusSeeOther, to)
		acts, err := s.p.Audit.List(t.Context(), access.Operator(), "", people.ActQuery{Kind: "user"})
		told := map[string]bool{}
		for _, a := range acts.Data {
			told[a.Act] = true
		}
		if err != nil || told["user.password-reset-alone"] != alone || told["user.second-step-removed"] != alone ||
			told["user.password-reset"] == alone {
			t.Errorf("alone %v: written down are %v, %v", alone, told, err)
		}
	}
}

func TestFactorsAreChangedByWhoEnteredThePasswordAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	for _, path := range []string{
		"/app", "/app/confirm", "/app/remove", "/passkeys", "/passkeys/x/remove",
		"/recovery",
	} {
		c.want(
			c.post("/account/second"+path, url.Values{"code": {"1"}, "name": {"x"}}), http.StatusSeeOther,
			"/account/second",
		)
	}
	c.want(c.post("/account/second", url.Values{"password": {"not this one"}}), http.StatusUnprocessableEntity, "")
	phone, recovery := c.withApp()
	c.want(c.post("/account/second/app", nil), http.StatusUnprocessableEntity, "") // there is one
	p := c.post("/account/second/recovery", nil)
	if strings.Contains(p.body, recovery[0]) || p.status != http.StatusCreated {
		t.Errorf("new recovery codes: %d", p.status)
	}
	// an IP address has none
	c.want(c.post("/account/second/passkeys", url.Values{"name": {"Laptop"}, "passkey": {"{}"}}), http.StatusNotFound,
		"")
	c.want(c.post("/account/second/passkeys/x/remove", nil), http.StatusNotFound, "")
	c.want(c.post("/account/second/app/remove", nil), http.StatusSeeOther, "/account/second")
	if p := c.get("/account/second"); strings.Contains(p.body, phone.secret) ||
		strings.Contains(p.body, "Recovery codes") {
		t.Error("without a factor there are recovery codes")
	}
	s.signIn()
}
