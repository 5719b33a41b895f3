package people

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"postern/internal/access"
	"postern/internal/factor"
	"postern/internal/postern"
	"postern/internal/store/accounts"
)

// Factors are the second factors of a person. Any one of them completes the sign-in.
type Factors struct {
	App      bool // an authenticator app is set up
	Passkeys []accounts.Passkey
	Recovery int // number of unused recovery codes
}

// Any tells whether the person has an app or a passkey.
func (f Factors) Any() bool { return f.App || len(f.Passkeys) > 0 }

// List lists the person's own second factors.
func (g SecondFactors) List(ctx context.Context, self access.Self) (Factors, error) {
	if err := self.Needs(); err != nil {
		return Factors{}, err
	}
	return g.of(ctx, self.ID)
}

// Asked lists the factors of which the sign-in asks for one. If there is none, the
// password was enough.
func (g SecondFactors) Asked(ctx context.Context, p access.Pending) (Factors, error) {
	if err := p.Needs(); err != nil {
		return Factors{}, err
	}
	return g.of(ctx, p.ID)
}

func (g SecondFactors) of(ctx context.Context, id postern.UserID) (f Factors, err error) {
	app, _, err := g.accounts.Factors.TOTP(ctx, id)
	if err != nil {
		return f, err
	}
	if f.Passkeys, err = g.accounts.Factors.Passkeys(ctx, id, maxPasskeys); err != nil {
		return f, err
	}
	f.App = app.Confirmed
	f.Recovery, err = g.accounts.Factors.RecoveryCodes(ctx, id)
	return f, err
}

// Reenter checks the password of a person who is signed in. On success the person counts
// as sure for a while; see [access.Self].
func (g SecondFactors) Reenter(ctx context.Context, self access.Self, password string) error {
	if err := self.Needs(); err != nil {
		return err
	}
	_, _, err := g.users().reenter(ctx, self.Address, self.ID, "/password", password)
	return err
}

// BeginApp generates the secret of an authenticator app. The app counts only after
// ConfirmApp.
func (g SecondFactors) BeginApp(ctx context.Context, self access.Self) error {
	if err := self.NeedsSure(); err != nil {
		return err
	}
	return g.accounts.Factors.BeginTOTP(ctx, self.ID, g.box.Seal(factor.NewSecret(), self.ID.AppPlace()))
}

// AppSecret is the secret of an authenticator app, as a text for people and as a URI for
// apps.
type AppSecret struct{ Text, URI string }

// AppSecret returns the secret of an app that is not confirmed yet; it is empty if there
// is no such app.
func (g SecondFactors) AppSecret(ctx context.Context, self access.Self) (s AppSecret, err error) {
	if err := self.NeedsSure(); err != nil {
		return s, err
	}
	secret, err := g.unconfirmed(ctx, self.ID)
	if err != nil || secret == nil {
		return s, err
	}
	u, _, _, err := g.accounts.Users.Get(ctx, self.ID)
	return AppSecret{factor.SecretText(secret), factor.SecretURI("Postern", u.Email, secret)}, err
}

func (g SecondFactors) unconfirmed(ctx context.Context, id postern.UserID) ([]byte, error) {
	app, ok, err := g.accounts.Factors.TOTP(ctx, id)
	if err != nil || !ok || app.Confirmed {
		return nil, err
	}
	return g.box.Open(app.Secret, id.AppPlace())
}

// ConfirmApp sets the authenticator app up if the code is its current one. It ends all
// other sessions of the person. The recovery codes are nil if the person already has some.
func (g SecondFactors) ConfirmApp(ctx context.Context, self access.Self, code string) (recovery []string, err error) {
	if err := self.NeedsSure(); err != nil {
		return nil, err
	}
	secret, err := g.unconfirmed(ctx, self.ID)
	if err != nil {
		return nil, err
	}
	if err := g.logins.take(ctx, attempt{address: self.Address, account: "confirm " + string(self.ID)}); err != nil {
		return nil, err
	}
	step, ok := factor.MatchCode(secret, factor.TypedCode(code), g.now(), 0)
	if !ok || secret == nil {
		return nil, postern.Invalid(
			"/code",
			"this code is not correct; "+
				"enter the code that the app shows now, and check that the phone's clock is right",
		)
	}
	return g.added(
		self, "user.app-added",
		func(o accounts.NewFactor) (bool, error) { return g.accounts.Factors.ConfirmTOTP(ctx, o, step) },
	)
}

// added stores a factor together with new recovery codes. It returns the codes if they
// were stored.
func (g SecondFactors) added(
	self access.Self, act string, add func(accounts.NewFactor) (bool, error),
) ([]string, error) {
	codes := factor.NewRecoveryCodes(recoveryCodes)
	kept, err := add(
		accounts.NewFactor{
			UserID:   self.ID,
			Recovery: g.recoveryHashes(self.ID, codes),
			But:      self.Token,
			Act:      userAct(g.time(), self, act),
		},
	)
	if err != nil || !kept {
		return nil, err
	}
	return codes, nil
}

func (g SecondFactors) recoveryHashes(id postern.UserID, codes []string) []string {
	list := make([]string, len(codes))
	for i, code := range codes {
		list[i] = hex.EncodeToString(g.box.MAC(recoveryOf(id), factor.TypedCode(code)))
	}
	return list
}

// recoveryOf is what the hashes of a person's recovery codes are for.
func recoveryOf(id postern.UserID) string { return "recovery " + string(id) }

// useRecoveryCode uses a recovery code up. It may have been made under an earlier secret key.
func (g SecondFactors) useRecoveryCode(ctx context.Context, p access.Pending, code string) (ok bool, err error) {
	used := userAct(g.time(), access.Self{ID: p.ID, Address: p.Address}, "user.recovery-code-used")
	for _, hash := range g.box.Proofs(recoveryOf(p.ID), code) {
		if ok, err = g.accounts.Factors.UseRecoveryCode(ctx, p.ID, hex.EncodeToString(hash), used); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// NewRecoveryCodes replaces the recovery codes of a person and returns the new ones.
func (g SecondFactors) NewRecoveryCodes(ctx context.Context, self access.Self) ([]string, error) {
	if err := self.NeedsSure(); err != nil {
		return nil, err
	}
	codes := factor.NewRecoveryCodes(recoveryCodes)
	hashes := g.recoveryHashes(self.ID, codes)
	return codes, g.accounts.Factors.SetRecoveryCodes(
		ctx, self.ID, hashes, userAct(g.time(), self, "user.recovery-codes-made"),
	)
}

// Remove removes a passkey of a person, or the authenticator app if passkey is "".
func (g SecondFactors) Remove(ctx context.Context, self access.Self, passkey string) error {
	if err := self.NeedsSure(); err != nil {
		return err
	}
	act := "user.app-removed"
	if passkey != "" {
		act = "user.passkey-removed"
	}
	return g.accounts.Factors.Remove(ctx, self.ID, passkey, userAct(g.time(), self, act))
}

// UseCode checks a code of the app or a recovery code; each code works once. The number of
// attempts is limited like that of passwords, and codes of the app are also limited in a day.
func (g SecondFactors) UseCode(ctx context.Context, p access.Pending, code string) error {
	if err := p.Needs(); err != nil {
		return err
	}
	browser, err := g.tries(ctx, p)
	if err != nil {
		return err
	}
	code = factor.TypedCode(code)
	ok, err := g.useAppCode(ctx, p.ID, browser, code)
	if err == nil && !ok {
		ok, err = g.useRecoveryCode(ctx, p, code)
	}
	if err == nil && !ok {
		g.failed(ctx, p.ID, p.Address, "user.second-step-failed")
		err = postern.Invalid(
			"/code", "this code is wrong or was already used; the app shows a new one every 30 seconds",
		)
	}
	return err
}

// tries counts an attempt at the second step, and returns the id of the browser if it has
// signed in to the account before.
func (g SecondFactors) tries(ctx context.Context, p access.Pending) (browser string, err error) {
	u, _, _, err := g.accounts.Users.Get(ctx, p.ID)
	if err != nil {
		return "", err
	}
	browser = g.browser(p.Browser, u.Email)
	return browser, g.logins.take(ctx, attempt{p.Address, "second " + string(p.ID), browser})
}

func (g SecondFactors) useAppCode(ctx context.Context, id postern.UserID, browser, code string) (bool, error) {
	app, ok, err := g.accounts.Factors.TOTP(ctx, id)
	if err != nil || !ok || !app.Confirmed || !factor.IsCode(code) {
		return false, err
	}
	if err := g.guess(ctx, id, browser); err != nil {
		return false, err
	}
	secret, err := g.box.Open(app.Secret, id.AppPlace())
	if err != nil {
		return false, err
	}
	step, ok := factor.MatchCode(secret, code, g.now(), app.Used)
	if !ok {
		return false, nil
	}
	return g.accounts.Factors.UseTOTP(ctx, id, step)
}

// guess counts a code of the app. The codes are short, so the wrong ones of a day are few in
// all networks together, also after a restart. A browser that has signed in before has its own
// count, so that others cannot use it up.
func (g SecondFactors) guess(ctx context.Context, id postern.UserID, browser string) error {
	const tooMany = "too many wrong codes were entered for this account today; " +
		"use a recovery code or a passkey, or try again tomorrow"
	if browser != "" {
		return g.logins.codes.Take(ctx, browser+" "+string(id), tooMany)
	}
	now := g.now().UTC()
	today := now.Truncate(24 * time.Hour)
	ok, err := g.accounts.Factors.GuessTOTP(ctx, id, postern.TimeOf(today), codesPerDay)
	if err == nil && !ok {
		wait := today.AddDate(0, 0, 1).Sub(now)
		err = &postern.Error{Reason: postern.RateLimited, Detail: tooMany, RetryAfter: wait}
	}
	return err
}

// PasskeysOff returns the reason why this server cannot have passkeys; nil if it can.
func (g SecondFactors) PasskeysOff() error { return g.noPasskeys }

// BeginAddPasskey begins the ceremony that adds a new passkey.
func (g SecondFactors) BeginAddPasskey(ctx context.Context, self access.Self) (c factor.Ceremony, err error) {
	if err := self.NeedsSure(); err != nil {
		return c, err
	}
	p, err := g.person(ctx, self.ID)
	if err != nil {
		return c, err
	}
	return g.passkeys.BeginAdd(p)
}

// BeginUsePasskey begins the ceremony that proves one of the person's passkeys at sign-in.
func (g SecondFactors) BeginUsePasskey(ctx context.Context, p access.Pending) (c factor.Ceremony, err error) {
	if err := p.Needs(); err != nil {
		return c, err
	}
	person, err := g.person(ctx, p.ID)
	if err != nil {
		return c, err
	}
	return g.passkeys.BeginUse(person)
}

// person returns a user with the passkeys, for a ceremony.
func (g SecondFactors) person(ctx context.Context, id postern.UserID) (p factor.Person, err error) {
	if g.passkeys == nil {
		return p, postern.Errorf(postern.NotFound, "%s", g.noPasskeys)
	}
	u, _, _, err := g.accounts.Users.Get(ctx, id)
	if err != nil {
		return p, err
	}
	list, err := g.accounts.Factors.Passkeys(ctx, id, maxPasskeys)
	if err != nil {
		return p, err
	}
	p = factor.Person{ID: string(id), Email: u.Email}
	for _, k := range list {
		kept, err := g.box.Open(k.Kept, id.PasskeyPlace())
		if err != nil {
			return p, err
		}
		p.Passkeys = append(p.Passkeys, kept)
	}
	return p, nil
}

// AddPasskey adds a browser's new passkey, as the answer to the ceremony with the given
// state. It ends all other sessions of the person. The recovery codes are nil if the
// person already has some.
func (g SecondFactors) AddPasskey(
	ctx context.Context, self access.Self, name string, state, answer []byte,
) (recovery []string, err error) {
	if err := self.NeedsSure(); err != nil {
		return nil, err
	}
	if err := postern.CheckName("/name", name); err != nil {
		return nil, err
	}
	p, err := g.person(ctx, self.ID)
	if err != nil {
		return nil, err
	}
	k, err := g.passkeys.FinishAdd(p, state, answer)
	if err != nil {
		return nil, passkeyRefused(err)
	}
	in := accounts.Passkey{
		ID:        k.ID,
		UserID:    self.ID,
		Name:      name,
		Kept:      g.box.Seal(k.Kept, self.ID.PasskeyPlace()),
		CreatedAt: g.time(),
	}
	return g.added(
		self,
		"user.passkey-added",
		func(o accounts.NewFactor) (bool, error) {
			return g.accounts.Factors.AddPasskey(ctx, o, in, maxPasskeys)
		},
	)
}

// UsePasskey checks a browser's proof that it has one of the person's passkeys, as the
// answer to the ceremony with the given state.
func (g SecondFactors) UsePasskey(ctx context.Context, p access.Pending, state, answer []byte) error {
	if err := p.Needs(); err != nil {
		return err
	}
	if _, err := g.tries(ctx, p); err != nil {
		return err
	}
	person, err := g.person(ctx, p.ID)
	if err != nil {
		return err
	}
	k, err := g.passkeys.FinishUse(person, state, answer)
	if err != nil {
		g.failed(ctx, p.ID, p.Address, "user.second-step-failed")
		return passkeyRefused(err)
	}
	ok, err := g.accounts.Factors.UsePasskey(
		ctx, accounts.Passkey{ID: k.ID, UserID: p.ID, Kept: g.box.Seal(k.Kept, p.ID.PasskeyPlace()), UsedAt: g.time()},
	)
	if err == nil && !ok {
		err = passkeyRefused(factor.ErrPasskey)
	}
	return err
}

func passkeyRefused(err error) error {
	if errors.Is(err, factor.ErrPasskey) {
		return postern.Invalid("/passkey", "the passkey was not accepted; try again, or use another method")
	}
	return err
}
