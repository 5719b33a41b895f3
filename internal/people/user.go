package people

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/mail"
	"strings"
	"unicode"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/accounts"
)

// OpenSetUp generates the token of a set-up link, which replaces an earlier one; it is ""
// if somebody can already sign in. It needs the server's own socket or process.
func (g Users) OpenSetUp(ctx context.Context, by access.Actor) (token string, err error) {
	if err := by.NeedsSocket(); err != nil {
		return "", err
	}
	token = seal.NewToken()
	ok, err := g.accounts.Users.SetSetUpToken(ctx, hashToken(token))
	if err != nil || !ok {
		return "", err
	}
	return token, nil
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// CheckSetUp refuses a token that is not the one of the set-up link.
func (g Users) CheckSetUp(ctx context.Context, token string) error {
	open, err := g.IsSetUpOpen(ctx, token)
	if err == nil && !open {
		return errSetUp
	}
	return err
}

// IsSetUpOpen tells whether a token is the one of the set-up link.
func (g Users) IsSetUpOpen(ctx context.Context, token string) (bool, error) {
	hash, err := g.accounts.Users.SetUpToken(ctx)
	return hash != "" && hash == hashToken(token), err
}

var errSetUp = postern.Errorf(
	postern.NotFound,
	"this set-up link was already used or replaced; the server prints the current one when it starts",
)

// SetUp is the form of the first user.
type SetUp struct {
	Workspace string // name of the first workspace
	Email     string
	Password  string
}

// SetUp creates the first user, who owns a new workspace on the largest plan and all
// existing workspaces: the holder of the link runs the server. A token works once.
func (g Users) SetUp(ctx context.Context, token, address string, in SetUp) (postern.User, error) {
	email, err := CheckEmail(in.Email)
	if err != nil {
		return postern.User{}, err
	}
	if err := postern.CheckName("/workspace", in.Workspace); err != nil {
		return postern.User{}, err
	}
	if err := checkPassword(in.Password, email); err != nil {
		return postern.User{}, err
	}
	if err := g.CheckSetUp(ctx, token); err != nil { // before the expensive hashing
		return postern.User{}, err
	}
	hash, err := g.hashing.hash(ctx, queue{"set-up", true}, in.Password)
	if err != nil {
		return postern.User{}, err
	}
	now := g.time()
	u := postern.User{ID: postern.NewUserID(), Email: email, CreatedAt: now}
	names := postern.PlanNames()
	ws := postern.Workspace{ID: postern.NewWorkspaceID(), Name: in.Workspace, Plan: names[len(names)-1], CreatedAt: now}
	act := store.Act{
		At:          now,
		WorkspaceID: ws.ID,
		UserID:      u.ID,
		Act:         "user.set-up",
		Subject:     string(u.ID),
		Address:     address,
	}
	return u, g.accounts.Users.SetUp(
		ctx, accounts.SetUp{TokenHash: hashToken(token), User: u, PasswordHash: hash, Workspace: ws, Act: act},
	)
}

// CheckEmail normalizes an email address: lower case, without a display name. It returns
// ValidationFailed for anything else.
func CheckEmail(text string) (string, error) {
	text = strings.TrimSpace(text)
	a, err := mail.ParseAddress(text)
	unseen := strings.ContainsFunc(
		text, func(r rune) bool { return unicode.Is(unicode.Cf, r) },
	) // invisible characters, such as those that reverse text
	if err != nil || a.Address != text || len(text) > maxEmail || !postern.IsPlainText(text) || unseen {
		return "", postern.Invalid("/email", "enter an email address such as ada@example.com")
	}
	return strings.ToLower(text), nil
}

// errSignIn is the same for every wrong sign-in, so that nobody learns who has an account.
var errSignIn = postern.Errorf(postern.Unauthorized, "the email address or the password is wrong")

// Credentials are what a browser sends to sign in.
type Credentials struct {
	Email, Password string
	Address         string // of the browser
	Browser         string // the cookie by which the browser may be known; see [SignIns.Remember]
}

// SignIn finds the user with an email address and a password. The user may still need a
// second factor. Attempts are limited; see loginThrottle. A wrong password for an account
// is recorded in the audit log.
func (g Users) SignIn(ctx context.Context, in Credentials) (postern.User, error) {
	email := strings.ToLower(strings.TrimSpace(in.Email))
	if len(email) > maxEmail || len(in.Password) > maxPassword {
		return postern.User{}, errSignIn
	}
	try := attempt{address: in.Address, account: email, browser: g.browser(in.Browser, email)}
	place, err := g.hashing.enter(try.queue()) // what is refused here is no attempt
	if err != nil {
		return postern.User{}, err
	}
	defer place.leave()
	if err := g.logins.take(ctx, try); err != nil {
		return postern.User{}, err
	}
	u, hash, _, err := g.accounts.Users.ByEmail(ctx, email)
	if err != nil {
		return postern.User{}, err
	}
	same, err := place.matches(ctx, in.Password, hash)
	if err != nil {
		return postern.User{}, err
	}
	if !same {
		g.failed(ctx, u.ID, in.Address, "user.sign-in-failed")
		return postern.User{}, errSignIn
	}
	return u, g.renew(ctx, place, u.ID, in.Password, hash)
}

// renew replaces the hash of a correct password that an earlier release made with other
// parameters.
func (g Users) renew(ctx context.Context, p place, id postern.UserID, password, hash string) error {
	renewed, err := p.renewed(ctx, password, hash)
	if err != nil || renewed == "" {
		return err
	}
	return g.accounts.Users.RenewHash(ctx, id, hash, renewed)
}

// queue is where the attempt waits for its password to be hashed.
func (a attempt) queue() queue {
	if a.browser != "" {
		return queue{"account " + a.account, true}
	}
	return queueOf(a.address)
}

// failed records a failed attempt at an account in the audit log; an unknown account has no
// log. It does not wait for the write, which would tell by its time who has an account.
func (g *core) failed(ctx context.Context, id postern.UserID, address, act string) {
	if id == "" || g.logins.failure.Take(ctx, string(id), tooManySignIns) != nil {
		return
	}
	g.db.Audit.RecordLater(userAct(g.time(), access.Self{ID: id, Address: address}, act))
}

// SignedIn records in the audit log that a person has signed in.
func (g Users) SignedIn(ctx context.Context, self access.Self) error {
	if err := self.Needs(); err != nil {
		return err
	}
	return g.db.Audit.Record(ctx, userAct(g.time(), self, "user.signed-in"))
}

// userAct is the audit log's entry for something that a person did to their own account.
func userAct(at postern.Time, self access.Self, act string) store.Act {
	return store.Act{At: at, UserID: self.ID, Act: act, Subject: string(self.ID), Address: self.Address}
}

// ChangePassword replaces a person's password and ends all of the person's sessions. It
// returns the user as changed.
func (g Users) ChangePassword(ctx context.Context, self access.Self, before, password string) (postern.User, error) {
	if err := self.Needs(); err != nil {
		return postern.User{}, err
	}
	u, checked, err := g.reenter(ctx, self.Address, self.ID, "/current", before)
	if err != nil {
		return u, err
	}
	return g.setPassword(ctx, u, checked, password, self.Address)
}

// reenter checks the password of a signed-in user and returns its hash. Attempts are
// limited as at the sign-in, but counted apart: an attacker at the sign-in does not keep
// the user from the own account.
func (g Users) reenter(
	ctx context.Context, address string, id postern.UserID, pointer, password string,
) (u postern.User, hash string, err error) {
	if len(password) > maxPassword {
		return u, "", postern.Invalid(pointer, "this password is not correct")
	}
	place, err := g.hashing.enter(ownQueue(id))
	if err != nil {
		return u, "", err
	}
	defer place.leave()
	if err := g.logins.take(ctx, attempt{address: address, account: g.logins.again(id)}); err != nil {
		return u, "", err
	}
	u, hash, ok, err := g.accounts.Users.Get(ctx, id)
	if err != nil {
		return u, "", err
	}
	same, err := place.matches(ctx, password, hash)
	switch {
	case err != nil:
	case ok && same:
		g.logins.prove(id)
	default:
		g.failed(ctx, id, address, "user.password-refused")
		err = postern.Invalid(pointer, "this password is not correct")
	}
	return u, hash, err
}

// ownQueue is the queue of a user who is signed in.
func ownQueue(id postern.UserID) queue { return queue{"user " + string(id), true} }

func (g Users) setPassword(
	ctx context.Context, u postern.User, before, password, address string,
) (postern.User, error) {
	if err := checkPassword(password, u.Email); err != nil {
		return u, err
	}
	hash, err := g.hashing.hash(ctx, ownQueue(u.ID), password)
	if err != nil {
		return u, err
	}
	u.Epoch, err = g.accounts.Users.SetPassword(
		ctx,
		u.ID,
		before,
		hash,
		store.Act{At: g.time(), UserID: u.ID, Act: "user.password-changed", Subject: string(u.ID), Address: address},
	)
	return u, err
}

// Memberships lists the first workspaces of a person, at most MenuSize.
func (g Members) Memberships(ctx context.Context, self access.Self) ([]postern.Member, error) {
	if err := self.Needs(); err != nil {
		return nil, err
	}
	return g.accounts.Members.Memberships(ctx, self.ID, store.Page{Limit: MenuSize})
}

// AllMemberships lists the workspaces of a person page by page.
func (g Members) AllMemberships(
	ctx context.Context, self access.Self, p paging.Page,
) (paging.List[postern.Member], error) {
	if err := self.Needs(); err != nil {
		return paging.List[postern.Member]{}, err
	}
	own := postern.WorkspaceID(self.ID) // the cursors belong to the user
	sp, err := g.open(own, "workspaces", p)
	if err != nil {
		return paging.List[postern.Member]{}, err
	}
	rows, err := g.accounts.Members.Memberships(ctx, self.ID, sp)
	return paging.Cut(
		g.cursors, own, "workspaces", rows, sp.Limit, func(m postern.Member) string { return string(m.WorkspaceID) },
	), err
}

// ErrUnknownPlan means that the plan of a workspace is unknown to this server.
var ErrUnknownPlan = postern.Errorf(postern.ResourceNotAllowed, "this server does not know the workspace's plan")

// Caller returns the caller for a person in a workspace. If the workspace has an unknown
// plan, it returns the member alone, with ErrUnknownPlan.
func (g Members) Caller(ctx context.Context, self access.Self, ws postern.WorkspaceID) (access.Caller, error) {
	if err := self.Needs(); err != nil {
		return access.Caller{}, err
	}
	m, err := g.accounts.Members.Get(ctx, ws, self.ID)
	if err != nil {
		return access.Caller{}, err
	}
	w, err := g.db.Workspaces.Get(ctx, ws)
	if err != nil {
		return access.Caller{}, err
	}
	plan, ok := w.Entitlement()
	if !ok {
		return access.Caller{Member: m, Address: self.Address}, ErrUnknownPlan
	}
	return access.Caller{
		Key:  postern.Key{WorkspaceID: ws, Scopes: m.Role.Scopes()},
		Plan: plan, Member: m, Address: self.Address, Sure: self.Sure,
	}, nil
}

// Email returns the email address of a person; "" if the account is gone.
func (g Users) Email(ctx context.Context, self access.Self) (string, error) {
	if err := self.Needs(); err != nil {
		return "", err
	}
	u, _, _, err := g.accounts.Users.Get(ctx, self.ID)
	return u.Email, err
}
