package dash

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"postern/internal/access"
	"postern/internal/dash/page"
	"postern/internal/people"
	"postern/internal/postern"

	"github.com/alexedwards/scs/v2"
)

// The values of a login session.
const (
	keyUser      = "user"
	keyEpoch     = "epoch"     // of the user, when the password was checked
	keyWorkspace = "workspace" // the current one
	keyBrowser   = "browser"   // the User-Agent at the sign-in
	keyAddress   = "address"
	keySeen      = "seen" // RFC 3339
	keyNotice    = "notice"

	keyPending  = "pending"  // the user who entered the right password, until the second step
	keySince    = "since"    // when the password was entered; RFC 3339
	keySure     = "sure"     // when the password was last confirmed; RFC 3339
	keyEntered  = "entered"  // when it was entered at the sign-in; RFC 3339
	keyCeremony = "ceremony" // the state of a passkey ceremony
	keyErrand   = "errand"   // why the browser was sent to the provider
)

// newSessions stores login sessions in the database. A browser holds a random token; the
// database has only its hash.
func newSessions(opts Options) *scs.SessionManager {
	m := scs.New()
	m.Store, m.Codec, m.HashTokenInStore = sessionStore{opts.People}, codec{}, true
	m.IdleTimeout, m.Lifetime = idleTime, sessionTime
	m.Cookie.Name, m.Cookie.HttpOnly = "postern", true
	m.Cookie.SameSite, m.Cookie.Secure = http.SameSiteLaxMode, opts.Secure
	if opts.Secure {
		m.Cookie.Name = "__Host-postern" // no other host can set it (RFC 6265bis, 4.1.3.2)
	}
	m.ErrorFunc = func(w http.ResponseWriter, r *http.Request, err error) {
		opts.Log.ErrorContext(r.Context(), "a session cannot be read or written", "error", err)
		http.Error(w, "your session cannot be checked right now; try again", http.StatusServiceUnavailable)
	}
	return m
}

// codec encodes a login session as JSON, from which the store reads the user.
type codec struct{}

type session struct {
	Deadline time.Time         `json:"deadline"`
	Values   map[string]string `json:"values"`
}

func (codec) Encode(deadline time.Time, values map[string]any) ([]byte, error) {
	s := session{deadline, map[string]string{}}
	for k, v := range values {
		text, ok := v.(string)
		if !ok {
			return nil, errors.New("a session holds texts only")
		}
		s.Values[k] = text
	}
	return json.Marshal(s)
}

func (codec) Decode(b []byte) (time.Time, map[string]any, error) {
	s, err := decode(b)
	values := map[string]any{}
	for k, v := range s.Values {
		values[k] = v
	}
	return s.Deadline, values, err
}

func decode(b []byte) (s session, err error) {
	err = json.Unmarshal(b, &s)
	return s, err
}

// sessionStore stores login sessions through package people.
type sessionStore struct{ p *people.People }

// known is the login session as the database has it. scs writes the session with every request,
// but a session that ended during the request must not be restored, and an unchanged one need
// not be written.
type known struct {
	people.SignIn
	poll bool // a request of a page itself, also for its pictures: it does not prolong the session
}

type knownKey struct{}

// rewriting is how much the expiry must change for a session to be written for that alone.
const rewriting = time.Minute

// remembering adds a place for the request's login session to its context.
func remembering(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k := &known{poll: isPart(r) || isFile(r) || isStream(r)}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), knownKey{}, k)))
	})
}

func knownIn(ctx context.Context) *known {
	k, ok := ctx.Value(knownKey{}).(*known)
	if !ok {
		return &known{}
	}
	return k
}

// keeps reports whether the session in the database is recent enough.
func (k *known) keeps(s people.SignIn) bool {
	return bytes.Equal(k.Data, s.Data) && (k.poll || s.ExpiresAt < k.ExpiresAt.Add(rewriting))
}

var errNoContext = errors.New("sessions are read with a context")

func (sessionStore) Delete(string) error                    { return errNoContext }
func (sessionStore) Find(string) ([]byte, bool, error)      { return nil, false, errNoContext }
func (sessionStore) Commit(string, []byte, time.Time) error { return errNoContext }

// DeleteCtx ends a session.
func (s sessionStore) DeleteCtx(ctx context.Context, token string) error {
	return s.p.SignIns.End(ctx, token)
}

// FindCtx finds a session.
func (s sessionStore) FindCtx(ctx context.Context, token string) (b []byte, found bool, err error) {
	in, found, err := s.p.SignIns.Get(ctx, token)
	if found {
		knownIn(ctx).SignIn = in
	}
	return in.Data, found, err
}

// CommitCtx writes a session.
func (s sessionStore) CommitCtx(ctx context.Context, token string, b []byte, expiry time.Time) error {
	data, err := decode(b)
	if err != nil {
		return err
	}
	epoch, _ := strconv.ParseInt(data.Values[keyEpoch], 10, 64) // 0 before the sign-in
	in := people.SignIn{
		TokenHash: token, UserID: postern.UserID(data.Values[keyUser]), Epoch: epoch, Data: b,
		ExpiresAt: postern.TimeOf(expiry),
	}
	k := knownIn(ctx)
	switch {
	case k.TokenHash != token:
		err = s.p.SignIns.Create(ctx, in)
	case !k.keeps(in):
		err = s.p.SignIns.Update(ctx, in)
	default:
		return nil
	}
	if err == nil {
		k.SignIn = in
	}
	return err
}

// enter signs the browser in with a new token, so that a token planted before is worthless.
// From then on the browser is known to the account. entered is when the user entered the
// password; "" if they signed in without one.
func (d *core) enter(w http.ResponseWriter, r *http.Request, u postern.User, entered string) error {
	if err := d.begin(r, map[string]string{
		keyUser: string(u.ID), keyEpoch: strconv.FormatInt(u.Epoch, 10), keyBrowser: r.UserAgent(),
		keyAddress: d.address(r),
		keySeen:    now(), keyEntered: entered,
	}); err != nil {
		return err
	}
	value, life, err := d.p.SignIns.Remember(r.Context(), d.self(r, u.ID), d.known(r))
	if err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever browsers come by HTTPS
		Name: d.cookie("postern-known"), Value: value, Path: "/", MaxAge: int(life.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: d.secure,
	})
	return nil
}

// known is the cookie by which a browser is known to the accounts that it has signed in to.
func (d *core) known(r *http.Request) string {
	c, err := r.Cookie(d.cookie("postern-known"))
	if err != nil {
		return ""
	}
	return c.Value
}

// cookie is the full name of a cookie. With the prefix no other host can set it (RFC
// 6265bis, 4.1.3.2).
func (d *core) cookie(name string) string {
	if d.secure {
		return "__Host-" + name
	}
	return name
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// within reports whether a time written by now is within the limit.
func within(text string, limit time.Duration) bool {
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && time.Since(at) < limit
}

// begin starts a login session with a new token and only these values.
func (d *core) begin(r *http.Request, values map[string]string) error {
	ctx := r.Context()
	if err := errors.Join(d.sessions.Clear(ctx), d.sessions.RenewToken(ctx)); err != nil {
		return err
	}
	for name, value := range values {
		d.sessions.Put(ctx, name, value)
	}
	if _, _, err := d.sessions.Commit(ctx); err != nil { // commit now, so that an error can be shown
		return errors.Join(err, d.sessions.Destroy(ctx))
	}
	return nil
}

const (
	secondTime = 10 * time.Minute // from the password to the second step
	sureTime   = 10 * time.Minute // for which a confirmed password counts
	recentTime = 15 * time.Minute // the same for a new API key, for which that of the sign-in counts too
)

// isRecent reports whether the user entered the password, or signed in at the provider again,
// recently enough to create what outlives the login session.
func (d *core) isRecent(r *http.Request) bool {
	return within(d.sessions.GetString(r.Context(), keySure), recentTime) ||
		within(d.sessions.GetString(r.Context(), keyEntered), recentTime)
}

func (d *core) isSure(r *http.Request) bool {
	return within(d.sessions.GetString(r.Context(), keySure), sureTime)
}

// pass signs in a user who has proved the first factor, through the second step if there is
// one. entered is as in enter.
func (d *core) pass(w http.ResponseWriter, r *http.Request, u postern.User, next, entered string) error {
	factors, err := d.p.SecondFactors.Asked(r.Context(), access.Pending{ID: u.ID, Address: d.address(r)})
	if err != nil {
		return err
	}
	if !factors.Any() {
		return d.in(w, r, u, next, entered)
	}
	pending := map[string]string{
		keyPending: string(u.ID), keyEpoch: strconv.FormatInt(u.Epoch, 10), keySince: now(), keyEntered: entered,
	}
	if err := d.begin(r, pending); err != nil {
		return err
	}
	return seeOther(w, r, "/signin/second?next="+url.QueryEscape(next))
}

// in signs in a user who has passed all steps.
func (d *core) in(w http.ResponseWriter, r *http.Request, u postern.User, next, entered string) error {
	known, err := d.p.SignIns.IsKnown(r.Context(), d.self(r, u.ID), d.known(r))
	if err != nil {
		return err
	}
	if err := d.enter(w, r, u, entered); err != nil {
		return err
	}
	if err := d.p.Users.SignedIn(r.Context(), d.self(r, u.ID)); err != nil {
		return err
	}
	if !known {
		d.tell(r, u.ID, newSignIn())
	}
	return seeOther(w, r, next)
}

// ask begins a passkey ceremony and stores its state in the login session.
func (d *core) ask(r *http.Request, who access.Pending) (options string, err error) {
	c, err := d.p.SecondFactors.BeginUsePasskey(r.Context(), who)
	if err != nil {
		return "", err
	}
	d.sessions.Put(r.Context(), keyCeremony, string(c.State))
	return string(c.Options), nil
}

// askNew is ask for a new passkey.
func (d *core) askNew(r *http.Request, v visit) (options string, err error) {
	c, err := d.p.SecondFactors.BeginAddPasskey(r.Context(), v.self)
	if err != nil {
		return "", err
	}
	d.sessions.Put(r.Context(), keyCeremony, string(c.State))
	return string(c.Options), nil
}

// askAgain shows the page that asks for the password again.
func (d *core) askAgain(w http.ResponseWriter, r *http.Request, v visit, status int, view page.SureView) (err error) {
	if view.Again, err = d.again(r, v, view.Next); err != nil {
		return err
	}
	return d.write(w, r, status, page.Sure(d.frame(r, v, "Confirm that it is you", "/account"), view))
}

// tokenHash is the key of this browser's login session in the store, computed as scs does.
func (d *core) tokenHash(r *http.Request) string {
	sum := sha256.Sum256([]byte(d.sessions.Token(r.Context())))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// again returns how the user confirms their identity: by password, or by signing in again.
func (d *core) again(r *http.Request, v visit, next string) (page.Again, error) {
	has, err := d.p.Users.HasPassword(r.Context(), v.self)
	if err != nil || has {
		return page.Again{}, err
	}
	return page.Again{
		None: true, Sure: v.caller.Sure, Name: d.signOnName(), Href: "/account/again?next=" + url.QueryEscape(next),
	}, nil
}
