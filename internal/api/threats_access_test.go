package api_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store/storetest"
	"postern/internal/web"
)

// leavesAlone does something after which the tenant must have what it had before.
func (t *tenant) leavesAlone(what func()) {
	t.t.Helper()
	before := storetest.RowsOf(t.t, t.dir, string(t.ws))
	what()
	unchanged(t.t, before, storetest.RowsOf(t.t, t.dir, string(t.ws)))
}

// use is an operation on something of a tenant's.
type use struct{ id, method, target, body string }

// uses are operations on something of the tenant's, which is made for each.
func (t *tenant) uses(which func(id string, r route) bool) (list []use) {
	t.t.Helper()
	for id, r := range routes() {
		if which(id, r) {
			target, body := r.build(t)
			list = append(list, use{id, r.method, target, body})
		}
	}
	return list
}

// TestT1StrangersReachNothing sends every operation at what another tenant has.
func TestT1StrangersReachNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine, other := s.tenant("enterprise"), s.tenant("enterprise")
	uses := other.uses(func(_ string, r route) bool { return r.foreign })
	other.leavesAlone(func() {
		for _, u := range uses {
			a := mine.do(u.method, u.target, u.body)
			a.what = u.id
			a.want(http.StatusForbidden, postern.ResourceNotAllowed)
			b := mine.do(u.method, u.target, u.body, "Idempotency-Key", "k")
			b.want(http.StatusForbidden, postern.ResourceNotAllowed)
		}
	})
	if got := mine.do("GET", "/v1/events", "").Body.String(); got != `{"data":[],"nextCursor":null}` {
		t.Errorf("the stranger's own log: %s", got)
	}
}

// TestT1NoAnswerShowsAnotherTenant walks at random: any key, any operation,
// anyone's ids. No answer may hold a word that another tenant wrote.
func TestT1NoAnswerShowsAnotherTenant(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	type request struct{ method, target, body string }
	var tenants []*tenant
	var requests []request
	word := func(i int) string { return fmt.Sprintf("%s-of-%d-", canary, i) }
	for i := range 3 {
		mine := s.tenant("enterprise")
		tenants = append(tenants, mine)
		device := mine.device(word(i), postern.Connected)
		mine.receive(device, word(i))
		mine.do("POST", "/v1/messages", `{"deviceId":"`+string(device)+`","to":"+15551234567","body":"`+word(i)+`","metadata":{"a":"`+word(i)+`"}}`).want(http.StatusAccepted, "")
		mine.do("POST", "/v1/webhooks", `{"url":"https://hooks.test/`+word(i)+`","description":"`+word(i)+`"}`).want(http.StatusCreated, "")
		for id, route := range routes() {
			if id == "streamEvents" || id == "scanInSandbox" { // they wait for what does not come
				continue
			}
			target, body := route.build(mine)
			requests = append(requests, request{route.method, target, body})
		}
		for _, target := range []string{
			"/v1/devices/" + string(device), "/v1/devices?limit=200",
			"/v1/messages?limit=200", "/v1/webhooks?limit=200", "/v1/events?limit=200",
			"/v1/events?deviceId=" + string(device), "/v1/messages?deviceId=" + string(device),
		} {
			requests = append(requests, request{"GET", target, ""}, request{"GET", target, ""})
		}
	}
	shown := 0
	for range 1000 {
		who, q := r.IntN(len(tenants)), requests[r.IntN(len(requests))]
		a := tenants[who].do(q.method, q.target, q.body)
		for i := range tenants {
			if strings.Contains(a.Body.String(), word(i)) {
				if shown++; i != who {
					t.Fatalf("seed %d: %s %s shows tenant %d what tenant %d wrote: %s", seed, q.method, q.target, who,
						i, a.Body)
				}
			}
		}
		if a.Code >= 500 {
			t.Fatalf("seed %d: %s %s is answered %d %s", seed, q.method, q.target, a.Code, a.Body)
		}
	}
	if shown < 30 {
		t.Errorf("seed %d: only %d answers showed anything", seed, shown)
	}
}

func TestT2ScopesAndDeviceListsHold(t *testing.T) {
	t.Parallel()
	t.Run("lists", func(t *testing.T) {
		t.Parallel()
		mine := newServer(t).tenant("enterprise")
		a, b := mine.device("a", postern.Connected), mine.device("b", postern.Connected)
		for _, d := range []postern.DeviceID{a, b} {
			mine.do("POST", "/v1/messages",
				`{"deviceId":"`+string(d)+`","to":"+15551234567","body":"x"}`).want(http.StatusAccepted,
				"")
			mine.do("POST", "/v1/webhooks",
				`{"url":"https://hooks.test/a","deviceIds":["`+string(d)+`"]}`).want(http.StatusCreated,
				"")
		}
		mine.do("POST", "/v1/webhooks", `{"url":"https://hooks.test/all"}`).want(http.StatusCreated, "")
		limited := mine.with(mine.newKey(gateway.NewKey{Devices: []postern.DeviceID{a}}))
		for _, target := range []string{"/v1/devices", "/v1/messages", "/v1/webhooks"} {
			if l := limited.do("GET", target, "").list(); len(l.Data) != 1 {
				t.Errorf("%s shows a limited key %d", target, len(l.Data))
			}
		}
		limited.do("POST", "/v1/devices", `{"name":"x"}`).want(http.StatusForbidden, postern.ResourceNotAllowed)
		made := limited.do("POST", "/v1/webhooks", `{"url":"https://hooks.test/frozen"}`)
		made.want(http.StatusCreated, "")
		if !strings.Contains(made.Body.String(), `"deviceIds":["`+string(a)+`"]`) {
			t.Errorf("an endpoint of a limited key: %s", made.Body)
		}
		limited.do("POST", "/v1/webhooks",
			`{"url":"https://hooks.test/b","deviceIds":["`+string(a)+`","`+string(b)+`"]}`).want(http.StatusForbidden,
			postern.ResourceNotAllowed)
	})
}

func TestT3MembersAreNotAssigned(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	uses := mine.uses(func(id string, r route) bool {
		return r.method == "POST" && id != "uploadMedia" // a file has no members
	})
	mine.leavesAlone(func() {
		for _, u := range uses {
			for _, member := range []string{
				`"workspaceId":"ws_x"`, `"plan":"pro"`, `"status":"connected","id":"dev_x"`,
				`"createdAt":"2020-01-01T00:00:00.000Z"`, `"networkId":"x"`,
				`"__proto__":{}`,
			} {
				a := mine.do("POST", u.target, "{"+member+"}")
				a.what = u.id + " with " + member
				a.want(http.StatusUnprocessableEntity, postern.ValidationFailed)
			}
		}
	})
}

// TestT3SecretsAreNeverShownAgain reads everything that can be read.
func TestT3SecretsAreNeverShownAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("enterprise")
	made := mine.do("POST", "/v1/webhooks", `{"url":"https://hooks.test/a"}`)
	made.want(http.StatusCreated, "")
	hash := postern.HashKey(mine.key)
	secrets := []string{mine.key, mine.key[4:36], made.member("secret"), "whsec_", hex.EncodeToString(hash[:])}
	for id, r := range routes() {
		if r.method != "GET" {
			continue
		}
		target, body := r.build(mine)
		a := mine.do("GET", target, body)
		for _, secret := range secrets {
			if strings.Contains(a.Body.String(), secret) || strings.Contains(fmt.Sprint(a.Header()), secret) {
				t.Errorf("%s shows %s", id, secret)
			}
		}
	}
	a := mine.do("GET", "/v1/webhooks/"+made.member("id"), "")
	if a.want(http.StatusOK, ""); strings.Contains(a.Body.String(), "whsec_") || a.member("secretLastFour") == "" {
		t.Errorf("an endpoint: %s", a.Body)
	}
}

// TestT4KeysAreNotKept looks for keys in all the files of the database.
func TestT4KeysAreNotKept(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("enterprise")
	keys := []string{mine.key}
	for range 5 {
		keys = append(keys, mine.newKey(gateway.NewKey{}))
	}
	for _, k := range keys {
		mine.with(k).do("POST", "/v1/devices", `{"name":"x"}`, "Idempotency-Key", "k").want(http.StatusCreated, "")
	}
	s.closeStore()
	files := 0
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("pst_")) {
			t.Errorf("%s has a key", path)
		}
		for _, k := range keys {
			if bytes.Contains(text, []byte(k[4:36])) {
				t.Errorf("%s has the random part of a key", path)
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Fatal(files, err)
	}
}

// TestT4KeysAreNotTimed looks at what a guessed key is compared with: by one statement, the hash of
// the whole key. How long that takes says nothing about a good key, however much of it the guess
// begins with.
func TestT4KeysAreNotTimed(t *testing.T) {
	t.Parallel()
	var asked lookups
	s := newServerTraced(t, "", fakeSandbox{}, asked.note)
	good := s.tenant("enterprise").key
	near := withChecksum(good[:35] + "x")
	if near == good {
		near = withChecksum(good[:35] + "y")
	}
	for _, key := range []string{near, postern.NewKeySecret(), near} { // a refusal is not remembered
		asked.take()
		if _, err := s.g.Keys.Authenticate(t.Context(), "Bearer "+key); postern.ReasonOf(err) != postern.Unauthorized {
			t.Errorf("a wrong key: %v", err)
		}
		hash := postern.HashKey(key)
		if got, want := asked.take(), []string{fmt.Sprint([]any{hash[:]})}; !slices.Equal(got, want) {
			t.Errorf("keys were looked up by %v, want %v", got, want)
		}
	}
}

// lookups are the arguments of the statements that look keys up.
type lookups struct {
	mu   sync.Mutex
	args []string
}

func (l *lookups) note(query string, args []any) {
	if !strings.Contains(query, "FROM api_key") {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.args = append(l.args, fmt.Sprint(args))
}

// take returns the lookups since the last call.
func (l *lookups) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	args := l.args
	l.args = nil
	return args
}

// withChecksum makes a well-formed key of its first 36 characters.
func withChecksum(s string) string {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var end [6]byte
	for i, sum := 5, crc32.ChecksumIEEE([]byte(s)); i >= 0; i, sum = i-1, sum/62 {
		end[i] = alphabet[sum%62]
	}
	return s + string(end[:])
}

func TestT4RevokedKeysEndAtOnce(t *testing.T) {
	t.Parallel()
	t.Run("requests", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		mine := s.tenant("enterprise")
		other := mine.with(mine.newKey(gateway.NewKey{}))
		id := other.caller().Key.ID
		other.do("GET", "/v1/usage", "").want(http.StatusOK, "")
		if err := s.g.Keys.Revoke(t.Context(), access.Operator(), mine.ws, id); err != nil {
			t.Fatal(err)
		}
		other.do("GET", "/v1/usage", "").want(http.StatusUnauthorized, postern.Unauthorized)
		mine.do("GET", "/v1/usage", "").want(http.StatusOK, "")
	})
	t.Run("forms of the header", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		mine := s.tenant("enterprise")
		for header, ok := range map[string]bool{
			"Bearer " + mine.key: true, "bearer " + mine.key: true, "BEARER " + mine.key: true,
			"Bearer " + mine.key + " ": false, " Bearer " + mine.key: false, "Bearer\t" + mine.key: false,
			"Bearer  " + mine.key:                 false,
			"Token " + mine.key:                   false,
			"Bearer " + mine.key + "," + mine.key: false, `Bearer "` + mine.key + `"`: false, mine.key: false,
			"Bearer": false, "Bearer " + strings.ToLower(mine.key): false,
		} {
			a := s.do("GET", "/v1/usage", "", "Authorization", header)
			if ok {
				a.want(http.StatusOK, "")
				continue
			}
			a.want(http.StatusUnauthorized, postern.Unauthorized)
		}
	})
	t.Run("blanks around, over the wire", func(t *testing.T) { // net/http takes them off before we see them
		t.Parallel()
		s := newServer(t)
		mine := s.tenant("enterprise")
		srv := httptest.NewServer(s.handler)
		t.Cleanup(srv.Close)
		if got := raw(t, srv, "GET /v1/usage HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization:   Bearer "+mine.key+"  \r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("got %s", got)
		}
	})
}

func TestT5KeysAreNowhereInTheLog(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("enterprise")
	for _, target := range []string{
		"/v1/devices?key=", "/v1/devices?token=", "/v1/devices?authorization=Bearer%20",
		"/v1/devices?a=b&api_key=", "/v1/devices/",
	} {
		a := s.do("GET", target+mine.key, "")
		a.want(http.StatusUnauthorized, postern.Unauthorized)
		mine.do("GET", target+mine.key, "", "X-Api-Key", mine.key, "Cookie", "key="+mine.key)
	}
	mine.do("POST", "/v1/devices", `{"name":"`+mine.key+`","x":"`+mine.key+`"}`, "Idempotency-Key", mine.key)
	mine.do(mine.key, "/v1/"+mine.key, mine.key)
	if !strings.Contains(s.log.String(), "a key came in a URL") {
		t.Error("nobody is told that a key came in a URL")
	}
	s.api.Break()
	mine.do("GET", "/v1/devices", "").want(http.StatusInternalServerError, postern.Internal)
	if log := s.log.String(); strings.Contains(log, mine.key[4:]) || strings.Contains(log, mine.key) {
		t.Errorf("the log shows a key: %s", log)
	}
}

func TestT6PlainTextIsRefused(t *testing.T) {
	t.Parallel()
	t.Run("good keys too", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		mine := s.tenant("enterprise")
		plain := s.behind(web.Transport{})
		uses := mine.uses(func(string, route) bool { return true })
		mine.leavesAlone(func() {
			for _, u := range uses {
				req := httptest.NewRequestWithContext(t.Context(), u.method, u.target, strings.NewReader(u.body))
				req.Header = http.Header{"Authorization": {"Bearer " + mine.key}, "Content-Type": {"application/json"}}
				req.RemoteAddr = "203.0.113.5:1"
				a := plain.send(req)
				a.what = u.id
				if a.want(http.StatusForbidden, postern.InsecureTransport); a.Header().Get("Location") != "" {
					t.Errorf("%s redirects", u.id)
				}
			}
		})
	})
}

// untilRead is a body whose sender does something before its end.
type untilRead struct {
	io.Reader
	end func()
}

func (u *untilRead) Read(b []byte) (int, error) {
	n, err := u.Reader.Read(b)
	if err == io.EOF && u.end != nil {
		u.end()
		u.end = nil
	}
	return n, err
}

// T4: a key that is revoked before the body of its request has arrived does nothing any more.
func TestT4KeyThatIsRevokedBeforeTheBodyEndsDoesNothing(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("growth")
	revoked := func() (holder *tenant, revoke func()) {
		holder = mine.with(mine.newKey(gateway.NewKey{}))
		id := holder.caller().Key.ID
		return holder, func() {
			if err := mine.g.Keys.Revoke(t.Context(), access.Operator(), mine.ws, id); err != nil {
				t.Error(err)
			}
		}
	}
	holder, revoke := revoked()
	req := holder.request("POST", "/v1/devices", "x", "Authorization", "Bearer "+holder.key)
	req.Body, req.ContentLength = io.NopCloser(&untilRead{strings.NewReader(`{"name":"a"}`), revoke}), -1
	holder.send(req).want(http.StatusUnauthorized, postern.Unauthorized)
	holder, revoke = revoked()
	holder.put(&untilRead{strings.NewReader("Hello"), revoke}, -1).want(http.StatusUnauthorized, postern.Unauthorized)
	if n := len(mine.do("GET", "/v1/devices", "").list().Data); n != 0 {
		t.Errorf("%d devices were created", n)
	}
}
