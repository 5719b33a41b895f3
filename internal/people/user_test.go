package people

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

const goodPassword = "four plain words here"

// first sets the server up.
func first(t *testing.T, g *server) (postern.User, postern.Member) {
	t.Helper()
	token, err := g.Users.OpenSetUp(t.Context(), access.Operator())
	if err != nil || token == "" {
		t.Fatalf("no set-up link: %v", err)
	}
	u, err := g.Users.SetUp(
		t.Context(), token, "192.0.2.1", SetUp{Workspace: "acme", Email: " Ada@Example.com", Password: goodPassword},
	)
	if err != nil {
		t.Fatal(err)
	}
	list, err := g.Members.Memberships(t.Context(), access.Self{ID: u.ID})
	if err != nil || len(list) != 1 {
		t.Fatalf("memberships = %v, %v", list, err)
	}
	return u, list[0]
}

func TestSetUpLinkMakesOneOwner(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		older, err := g.Users.OpenSetUp(t.Context(), access.Operator())
		if err != nil {
			t.Fatal(err)
		}
		token, err := g.Users.OpenSetUp(t.Context(), access.Operator())
		if err != nil {
			t.Fatal(err)
		}
		in := SetUp{Workspace: "acme", Email: "ada@example.com", Password: goodPassword}
		for _, wrong := range []string{"", "x", older, hashToken(token)} {
			if open, err := g.Users.IsSetUpOpen(t.Context(), wrong); open || err != nil {
				t.Errorf("%q is open: %v, %v", wrong, open, err)
			}
			if _, err := g.Users.SetUp(t.Context(), wrong, "", in); postern.ReasonOf(err) != postern.NotFound {
				t.Errorf("%q: %v", wrong, err)
			}
		}
		var made sync.Map
		var race sync.WaitGroup
		for i := range 8 { // many browsers with the same link
			race.Go(func() {
				in := in
				in.Email = fmt.Sprintf("u%d@example.com", i)
				if u, err := g.Users.SetUp(t.Context(), token, "", in); err == nil {
					made.Store(u.ID, true)
				} else if r := postern.ReasonOf(err); r != postern.NotFound && r != postern.RateLimited {
					t.Errorf("set up: %v", err)
				}
			})
		}
		race.Wait()
		n := 0
		made.Range(func(any, any) bool { n++; return true })
		if n != 1 {
			t.Errorf("%d users were made with one link", n)
		}
		if again, err := g.Users.OpenSetUp(t.Context(), access.Operator()); again != "" || err != nil {
			t.Errorf("there is a user, and a new set-up link: %v", err)
		}
	})
}

func TestFirstUserOwnsWhatThereIs(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		before, err := g.Workspaces.Create(
			t.Context(), access.Operator(), gateway.NewWorkspace{Name: "before", Plan: "growth"},
		)
		if err != nil {
			t.Fatal(err)
		}
		token, err := g.Users.OpenSetUp(t.Context(), access.Operator())
		if err != nil {
			t.Fatal(err)
		}
		u, err := g.Users.SetUp(
			t.Context(), token, "", SetUp{Workspace: "acme", Email: "ada@example.com", Password: goodPassword},
		)
		if err != nil {
			t.Fatal(err)
		}
		list, err := g.Members.Memberships(t.Context(), access.Self{ID: u.ID})
		if err != nil || len(list) != 2 || list[0].WorkspaceID != before.ID || list[0].Role != postern.Owner ||
			list[1].Workspace != "acme" {
			t.Errorf("memberships = %+v, %v", list, err)
		}
	})
}

func TestSetUpSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	g := open(t, "")
	token, err := g.Users.OpenSetUp(t.Context(), access.Operator())
	if err != nil {
		t.Fatal(err)
	}
	good := SetUp{Workspace: "acme", Email: "ada@example.com", Password: goodPassword}
	for pointer, change := range map[string]func(*SetUp){
		"/workspace": func(s *SetUp) { s.Workspace = "" },
		"/email":     func(s *SetUp) { s.Email = "Ada <ada@example.com>" },
		"/password":  func(s *SetUp) { s.Password = "short" },
	} {
		in := good
		change(&in)
		_, err := g.Users.SetUp(t.Context(), token, "", in)
		if e, ok := errors.AsType[*postern.Error](err); !ok || len(e.Fields) != 1 || e.Fields[0].Pointer != pointer {
			t.Errorf("%s: %v", pointer, err)
		}
	}
	for _, email := range []string{
		"", "ada", "ada@", "a@b@c", "ada@example.com\n",
		strings.Repeat("a", 250) + "@example.com",
	} {
		if got, err := CheckEmail(email); err == nil && strings.TrimSpace(email) != got {
			t.Errorf("%q is taken as %q", email, got)
		}
	}
	for _, email := range []string{"\u202eada@example.com", "a\u200bda@example.com"} {
		if _, err := CheckEmail(email); err == nil {
			t.Errorf("%q is taken", email)
		}
	}
	for _, password := range []string{
		"", "ada@example.com", "aaaaaaaaaaaa", strings.Repeat("ab", 200),
		"Qwerty123456", "password123", "水火木金",
	} { // the last has 12 bytes
		if checkPassword(password, "ada@example.com") == nil {
			t.Errorf("the password %q is taken", password)
		}
	}
	if open, err := g.Users.IsSetUpOpen(t.Context(), token); !open || err != nil {
		t.Errorf("what was wrong has used the link up: %v", err)
	}
}

func TestT16SignInTellsNobodyWhoHasAnAccount(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		u, _ := first(t, g)
		got, err := g.signIn(t, "192.0.2.1", "ADA@example.com", goodPassword)
		if err != nil || got.ID != u.ID {
			t.Errorf("sign in = %v, %v", got, err)
		}
		_, wrong := g.signIn(t, "192.0.2.1", "ada@example.com", "another password")
		_, unknown := g.signIn(t, "192.0.2.1", "eve@example.com", goodPassword)
		if postern.ReasonOf(wrong) != postern.Unauthorized || !errors.Is(unknown, wrong) ||
			unknown.Error() != wrong.Error() {
			t.Errorf("a wrong password is told %v, an unknown account %v", wrong, unknown)
		}
	})
}

func TestT16GuessesAreFewAndLockNobodyOut(t *testing.T) {
	t.Parallel()
	q := newLoginThrottle()
	const ada = "ada@example.com"
	guess := func(address string) error { return q.take(t.Context(), attempt{address, ada, ""}) }
	tried := 0
	for range 10_000 { // from one network, in one moment
		if guess("2001:db8::"+strconv.Itoa(tried+1)) == nil {
			tried++
		}
	}
	if tried > attemptsNear {
		t.Errorf("%d passwords were tried from one network, want at most %d", tried, attemptsNear)
	}
	if err := guess("192.0.2.7"); err != nil {
		t.Errorf("the user at home cannot sign in: %v", err)
	}
	const networks = 100
	for i := range 10 * networks {
		if guess(fmt.Sprintf("198.51.100.%d", i%networks)) == nil {
			tried++
		}
	}
	if most := attemptsOfAccount + networks*attemptsUnderAttack/2; tried > most {
		t.Errorf("%d passwords were tried from %d networks, want at most %d", tried, networks, most)
	}
	if e, _ := errors.AsType[*postern.Error](guess("198.51.100.1")); e == nil || e.Reason != postern.RateLimited ||
		e.RetryAfter <= 0 {
		t.Errorf("one too many is told %v", e)
	}
	if err := guess("192.0.2.9"); err != nil {
		t.Errorf("a network from which nobody guessed is locked out: %v", err)
	}
	if err := q.take(t.Context(), attempt{"198.51.100.1", ada, "browser"}); err != nil {
		t.Errorf("the user's own browser is locked out: %v", err)
	}
}

// A browser that has signed in to an account is known to that account, and to no other.
func TestT16KnownBrowserHasItsOwnAttempts(t *testing.T) {
	t.Parallel()
	o := newOffice(t, open(t, ""))
	bob := o.hire("bob@example.com", postern.Viewer).Member
	remember := func(id postern.UserID, cookie string) string {
		value, _, err := o.SignIns.Remember(t.Context(), access.Self{ID: id}, cookie)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	bobs := remember(bob.UserID, "")
	both := remember(o.owner.Member.UserID, bobs)
	for range attemptsNear { // somebody in the same network
		_, _ = o.signIn(t, "192.0.2.1", "ada@example.com", "not this one")
	}
	with := func(cookie string) postern.Reason {
		_, err := o.Users.SignIn(t.Context(), Credentials{
			Email: "Ada@example.com", Password: goodPassword, Address: "192.0.2.1", Browser: cookie,
		})
		return reasonOrNone(err)
	}
	for _, cookie := range []string{
		"", "x", ".", bobs, both + "x", "x" + both, strings.ToUpper(both), strings.Split(both, ".")[0],
		remember(bob.UserID, bobs) + strings.Repeat(".x", 100),
	} {
		if got := with(cookie); got != postern.RateLimited {
			t.Errorf("the cookie %q is answered %q", cookie, got)
		}
	}
	if got := with(both); got != "" {
		t.Errorf("the browser of both is answered %q", got)
	}
	for range attemptsNear { // who has stolen it
		_, _ = o.Users.SignIn(t.Context(), Credentials{Email: "ada@example.com", Password: "no", Browser: both})
	}
	if got := with(both); got != postern.RateLimited {
		t.Errorf("guesses with a cookie are endless: %q", got)
	}
	many := both
	for i := range knownAccounts {
		many = remember(o.hire(fmt.Sprintf("u%d@example.com", i), postern.Viewer).Member.UserID, many)
	}
	if n := strings.Count(many, "."); n != knownAccounts {
		t.Errorf("the cookie has %d accounts, want %d", n, knownAccounts)
	}
}

// 66 sign-ins at once fill the queue of their network and no other.
func TestT16ParallelSignInsDelayNobodyElse(t *testing.T) {
	t.Parallel()
	g := open(t, "")
	h := g.hashing
	for range h.free {
		h.line(false) // a password is being hashed in every slot, until the end
	}
	slots, results := len(h.waiting), make(chan error)
	if slots != 0 {
		t.Fatalf("%d wait for a free slot", slots)
	}
	for i := range 66 {
		go func() {
			_, err := g.signIn(t, "192.0.2.1", fmt.Sprintf("u%d@example.com", i), goodPassword)
			results <- err
		}()
	}
	for range 66 - maxHashOfQueue {
		if e, _ := errors.AsType[*postern.Error](<-results); e == nil || e.Reason != postern.RateLimited ||
			e.RetryAfter <= 0 {
			t.Fatalf("a full queue is told %v", e)
		}
	}
	p, err := h.enter(queueOf("192.0.2.2"))
	if err != nil {
		t.Fatalf("another network is refused: %v", err)
	}
	defer p.leave()
	turn := h.line(false)
	h.mu.Lock()
	if ahead := slices.Index(h.waiting, turn); ahead > maxHashOfQueue {
		t.Errorf("another network waits for %d passwords, want at most %d", ahead, maxHashOfQueue)
	}
	h.mu.Unlock()
	known := h.line(true)
	h.hashed(true, 0) // one of those being hashed is done
	<-known
	for range maxHashOfQueue + 2 {
		h.hashed(true, 0)
	}
	<-turn
	for range maxHashOfQueue {
		if err := <-results; postern.ReasonOf(err) != postern.Unauthorized {
			t.Errorf("a sign-in that waited is answered %v", err)
		}
	}
}

// Strangers from many networks do not fill the queues of those who are known.
func TestT16StrangersLeaveTheQueuesOfKnownBrowsers(t *testing.T) {
	t.Parallel()
	h := newHashing(64)
	for i := range 2 * maxHashQueue {
		_, err := h.enter(queueOf(fmt.Sprintf("198.51.100.%d", i)))
		if full := i >= maxHashQueue; (err != nil) != full {
			t.Fatalf("stranger %d is told %v", i, err)
		}
	}
	p, err := h.enter(queue{"account ada@example.com", true})
	if err != nil {
		t.Fatal(err)
	}
	if p.leave(); len(h.places) != maxHashQueue {
		t.Errorf("%d queues have places, want those of the strangers: %d", len(h.places), maxHashQueue)
	}
}

// A caller who no longer waits leaves its slot to the next.
func TestSlotOfWhoLeavesGoesOn(t *testing.T) {
	t.Parallel()
	h := newHashing(64)
	for range h.free {
		h.line(false)
	}
	first, second, third := h.line(false), h.line(true), h.line(false)
	h.forget(second)
	h.hashed(true, 0)
	h.forget(first) // it had its turn already
	for i, turn := range []chan struct{}{first, third} {
		select {
		case <-turn:
		default:
			t.Errorf("caller %d of 2 still waits", i+1)
		}
	}
}

// After the password of a stranger, the next stranger waits, and a known browser does not.
func TestT16StrangersLeaveMostOfTheProcessor(t *testing.T) {
	t.Parallel()
	h, rests := newHashing(64), []time.Duration{}
	h.free = 1
	h.after = func(d time.Duration, _ func()) { rests = append(rests, d) }
	has := func(turn chan struct{}) bool {
		select {
		case <-turn:
			return true
		default:
			return false
		}
	}
	h.line(false)
	stranger := h.line(false)
	h.hashed(false, time.Second)
	if want := []time.Duration{strangersRest * time.Second}; has(stranger) || !slices.Equal(rests, want) {
		t.Errorf("the next stranger has the slot: %t; rests %v, want %v", has(stranger), rests, want)
	}
	known := h.line(true)
	if !has(known) {
		t.Error("a known browser waits for strangers")
	}
	h.rested()
	if has(stranger) {
		t.Error("two passwords are hashed at the same time")
	}
	h.hashed(true, time.Second)
	if !has(stranger) || len(rests) != 1 {
		t.Errorf("the stranger has the slot: %t, after the rests %v", has(stranger), rests)
	}
}

// A hash that an earlier release made is replaced when its owner signs in, and only then.
func TestT16HashOfAnEarlierReleaseIsReplaced(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		today := g.Users.hashing.params
		g.Users.hashing.params.Iterations++
		u, _ := first(t, g)
		g.Users.hashing.params = today
		_, before, _, err := g.Users.accounts.Users.Get(t.Context(), u.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, try := range []struct {
			password string
			renewed  bool
		}{{"a password that is wrong", false}, {goodPassword, true}, {goodPassword, false}} {
			_, signed := g.signIn(t, "192.0.2.1", "ada@example.com", try.password)
			if (signed == nil) != (try.password == goodPassword) {
				t.Fatalf("the sign-in with %q is answered %v", try.password, signed)
			}
			_, after, _, err := g.Users.accounts.Users.Get(t.Context(), u.ID)
			if err != nil || (after != before) != try.renewed {
				t.Errorf("after %q the hash is %s, before %s (%v)", try.password, after, before, err)
			}
			before = after
		}
	})
}

func TestOnlySoManyUsersAreRememberedWhoEnteredTheirPassword(t *testing.T) {
	t.Parallel()
	q := newLoginThrottle()
	for i := range provedUsers + 1 {
		id := postern.UserID(fmt.Sprint(i))
		before := q.again(id)
		if q.prove(id); q.again(id) == before {
			t.Fatalf("a correct password of user %d counts as a guess", i)
		}
	}
	if n := len(q.proved); n > provedUsers {
		t.Errorf("%d users are remembered, want at most %d", n, provedUsers)
	}
}

func TestT16OneNetworkTriesFewPasswordsInAll(t *testing.T) {
	t.Parallel()
	q, tried := newLoginThrottle(), 0
	for i := range 1000 {
		if q.take(t.Context(), attempt{"192.0.2.1", fmt.Sprintf("u%d@example.com", i), ""}) == nil {
			tried++
		}
	}
	if tried == 0 || tried > attemptsOfNetwork {
		t.Errorf("%d passwords were tried, want at most %d", tried, attemptsOfNetwork)
	}
}

// Who guesses at the sign-in does not keep a user who is there from the account.
func TestGuessesElsewhereLeaveTheUserAtTheAccount(t *testing.T) {
	t.Parallel()
	g := open(t, "")
	u, _ := first(t, g)
	for i := range 3 * attemptsOfAccount {
		_ = g.logins.take(t.Context(), attempt{fmt.Sprintf("198.51.100.%d", i%4), u.Email, ""})
	}
	if _, err := g.signIn(t, "198.51.100.1", u.Email, goodPassword); postern.ReasonOf(err) != postern.RateLimited {
		t.Errorf("the sign-in is open: %v", err)
	}
	if _, err := g.Users.ChangePassword(
		t.Context(), access.Self{ID: u.ID, Address: "192.0.2.1"}, goodPassword, "five plain words are here",
	); err != nil {
		t.Errorf("the user who is there cannot change the password: %v", err)
	}
}

// Who enters the right password again and again is not kept from it; who guesses is.
func TestPasswordEnteredAgainIsNoGuess(t *testing.T) {
	t.Parallel()
	g := open(t, "")
	u, _ := first(t, g)
	for range 2 * attemptsNear {
		if err := g.SecondFactors.Reenter(
			t.Context(), access.Self{ID: u.ID, Address: "192.0.2.1"}, goodPassword,
		); err != nil {
			t.Fatalf("the right one is answered %v", err)
		}
	}
	limited := false
	for range attemptsNear {
		limited = limited ||
			postern.ReasonOf(
				g.SecondFactors.Reenter(t.Context(), access.Self{ID: u.ID, Address: "192.0.2.1"}, "not this one"),
			) == postern.RateLimited
	}
	if err := g.SecondFactors.Reenter(
		t.Context(), access.Self{ID: u.ID, Address: "192.0.2.1"}, goodPassword,
	); !limited ||
		postern.ReasonOf(err) != postern.RateLimited {
		t.Errorf("after %d wrong ones the right one is answered %v", attemptsNear, err)
	}
}

func TestMemberMayWhatTheRoleAllows(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		u, m := first(t, g)
		other, err := g.Workspaces.Create(
			t.Context(), access.Operator(), gateway.NewWorkspace{Name: "other", Plan: "growth"},
		)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Members.Caller(
			t.Context(), access.Self{ID: u.ID}, other.ID,
		); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("a workspace of others: %v", err)
		}
		c, err := g.Members.Caller(t.Context(), access.Self{ID: u.ID}, m.WorkspaceID)
		if err != nil || c.Member.Role != postern.Owner || c.Permit(postern.DevicesWrite) != nil {
			t.Errorf("caller = %+v, %v", c, err)
		}
		for role, want := range map[postern.Role]postern.Reason{
			postern.Owner: "", postern.Developer: "",
			postern.Viewer: postern.MissingScope, "": postern.MissingScope,
		} {
			by := access.Actor{Member: m, Recent: true}
			by.Member.Role = role
			if _, _, err := g.Keys.Create(
				t.Context(), by, m.WorkspaceID, gateway.NewKey{Name: "k"},
			); reasonOrNone(err) != want {
				t.Errorf("%s makes a key: %v", role, err)
			}
			if _, _, err := g.Keys.Create(
				t.Context(), by, other.ID, gateway.NewKey{Name: "k"},
			); postern.ReasonOf(err) != postern.NotFound {
				t.Errorf("%s makes a key of others: %v", role, err)
			}
		}
		if _, err := g.Keys.List(
			t.Context(), access.Actor{}, m.WorkspaceID, paging.Page{},
		); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("nobody reads the keys: %v", err)
		}
		developer := access.Actor{Member: m, Recent: true}
		developer.Member.Role = postern.Developer
		if _, err := g.Audit.List(
			t.Context(), developer, m.WorkspaceID, ActQuery{},
		); postern.ReasonOf(err) != postern.MissingScope {
			t.Errorf("a developer reads the audit log: %v", err)
		}
		acts, err := g.Audit.List(t.Context(), access.Actor{Member: m}, m.WorkspaceID, ActQuery{})
		if err != nil || len(acts.Data) != 3 || acts.Data[0].Act != "key.created" || acts.Data[0].UserID != u.ID ||
			acts.Data[2].Act != "user.set-up" ||
			acts.Data[2].Address != "192.0.2.1" {
			t.Errorf("the audit log has %+v, %v", acts, err)
		}
	})
}

func reasonOrNone(err error) postern.Reason {
	if err == nil {
		return ""
	}
	return postern.ReasonOf(err)
}
