package dash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"postern/internal/people"
	"postern/internal/postern"

	"github.com/alexedwards/scs/v2"
)

// What a session holds.
const (
	keyUser      = "user"
	keyEpoch     = "epoch"     // of the user, when the password was checked
	keyWorkspace = "workspace" // that is shown
	keyBrowser   = "browser"   // the User-Agent at the sign-in
	keyAddress   = "address"
	keySeen      = "seen" // RFC 3339
	keyNotice    = "notice"

	keyPending  = "pending"  // the user whose password was right, until the second step
	keySince    = "since"    // when it was; RFC 3339
	keySure     = "sure"     // when the password was entered again; RFC 3339
	keyCeremony = "ceremony" // what was asked of a passkey
	keyErrand   = "errand"   // why the browser was sent to the provider
)

// newSessions keeps sessions in the database. A browser has a random token, of
// which only the hash is kept.
func newSessions(opts Options) *scs.SessionManager {
	m := scs.New()
	m.Store, m.Codec, m.HashTokenInStore = sessionStore{opts.People}, codec{}, true
	m.IdleTimeout, m.Lifetime = idleTime, sessionTime
	m.Cookie.Name, m.Cookie.HttpOnly, m.Cookie.SameSite, m.Cookie.Secure = "postern", true, http.SameSiteLaxMode, opts.Secure
	if opts.Secure {
		m.Cookie.Name = "__Host-postern" // no other host can set it (RFC 6265bis, 4.1.3.2)
	}
	m.ErrorFunc = func(w http.ResponseWriter, r *http.Request, err error) {
		opts.Log.ErrorContext(r.Context(), "a session cannot be read or written", "error", err)
		http.Error(w, "the sign-in cannot be looked up now; try again", http.StatusServiceUnavailable)
	}
	return m
}

// codec writes a session as JSON, so that the store can tell whose it is.
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

// sessionStore keeps sessions through package people.
type sessionStore struct{ p *people.People }

// known is the session as the database has it, if it goes on. scs writes a session
// with every request: one that was ended while the request was under way must not
// begin anew, and one that stays as it is need not be written.
type known struct {
	people.SignIn
	poll bool // the page asked, not the person: it does not prolong the session
}

type knownKey struct{}

// rewriting is how much later a session must end to be written for it alone.
const rewriting = time.Minute

// remembering gives each request a place for the session it comes with.
func remembering(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k := &known{poll: r.Method == http.MethodGet && r.Header.Get("HX-Request") != ""}
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

// keeps tells whether the database has the session well enough.
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
	epoch, _ := strconv.ParseInt(data.Values[keyEpoch], 10, 64) // 0 before somebody has signed in
	in := people.SignIn{TokenHash: token, UserID: postern.UserID(data.Values[keyUser]), Epoch: epoch, Data: b, ExpiresAt: postern.TimeOf(expiry)}
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
