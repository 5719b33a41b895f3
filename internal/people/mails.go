package people

import (
	"context"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/accounts"
	"postern/internal/throttle"
)

// mails limits the mail that people can make this server send in an hour: by workspace or
// network, and of each kind to one address.
type mails struct{ by, to, notices *throttle.Limit }

func newMails() mails {
	return mails{
		by: throttle.PerHour(mailsBy), to: throttle.PerHour(mailsTo), notices: throttle.PerHour(noticesTo),
	}
}

func (m mails) take(ctx context.Context, by, to string) error {
	const wait = "too many emails were requested; wait a few minutes and try again"
	if err := m.by.Take(ctx, by, wait); err != nil {
		return err
	}
	return m.to.Take(ctx, to, wait)
}

// NoticeTo counts a mail that tells a person what was done to the account, and returns the
// address. Notices are counted apart, so that other mails do not use them up.
func (g Users) NoticeTo(ctx context.Context, self access.Self) (email string, err error) {
	if email, err = g.Email(ctx, self); err != nil {
		return "", err
	}
	return email, g.mails.notices.Take(ctx, string(self.ID), "too many notices were sent to this person")
}

// Forgot counts a request for a mail with a link to choose a new password, and returns the
// normalized email address. The result does not depend on whether the account exists.
func (g PasswordLinks) Forgot(ctx context.Context, address, email string) (string, error) {
	email, err := CheckEmail(email)
	if err != nil {
		return "", err
	}
	return email, g.mails.take(ctx, throttle.Network(address), email)
}

// ByMail returns the token of a link by which the owner of the mailbox chooses a new
// password within an hour. It is "" if nobody has the address, or if an operator has
// created a link that also removes the second factors: that link stays valid. The caller
// must not tell which.
func (g PasswordLinks) ByMail(ctx context.Context, address, email string) (token string, err error) {
	token, now := seal.NewToken(), g.time()
	l := accounts.PasswordLink{TokenHash: hashToken(token), ExpiresAt: now.Add(mailTime)}
	made, err := g.accounts.PasswordLinks.Ask(
		ctx, email, l, store.Act{At: now, Act: "user.password-mailed", Address: address},
	)
	if err != nil || !made {
		return "", err
	}
	return token, nil
}

// countMail counts an invitation that is sent by mail. It is counted apart from the mails
// about passwords, because anybody can request these and must not block invitations.
func (g Invitations) countMail(ctx context.Context, ws postern.WorkspaceID, in NewInvitation, email string) error {
	if !in.ByMail {
		return nil
	}
	return g.mails.take(ctx, string(ws), "invited "+email)
}
