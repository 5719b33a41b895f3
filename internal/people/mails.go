package people

import (
	"context"

	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/throttle"
)

// mails bounds the mail that people can have this server send in an hour: by a
// workspace or a network, and of a kind to one address, whoever asks for it.
type mails struct{ by, to *throttle.Limit }

func newMails() mails {
	return mails{by: throttle.PerHour(mailsBy), to: throttle.PerHour(mailsTo)}
}

func (m mails) take(ctx context.Context, by, to string) error {
	const wait = "too many emails were requested; wait a few minutes and try again"
	if err := m.by.Take(ctx, by, wait); err != nil {
		return err
	}
	return m.to.Take(ctx, to, wait)
}

// Forgot counts that somebody at an address asks for a mail by which a
// password is chosen, and gives the e-mail address as it is kept. Its answer is the
// same whether there is such an account.
func (g PasswordLinks) Forgot(ctx context.Context, address, email string) (string, error) {
	email, err := CheckEmail(email)
	if err != nil {
		return "", err
	}
	return email, g.mails.take(ctx, throttle.Network(address), email)
}

// ByMail gives the token of a link, for the mailbox alone, by which its
// owner chooses a new password, within an hour; "" when nobody has the e-mail
// address, or when an operator has made a link that also removes the second step:
// that one stays. The caller tells nobody which.
func (g PasswordLinks) ByMail(ctx context.Context, address, email string) (token string, err error) {
	token, now := seal.NewToken(), g.time()
	l := store.PasswordLink{TokenHash: hashToken(token), ExpiresAt: now.Add(mailTime)}
	made, err := g.db.PasswordLinks.Ask(
		ctx, email, l, store.Act{At: now, Act: "user.password-mailed", Address: address},
	)
	if err != nil || !made {
		return "", err
	}
	return token, nil
}

// countMail counts an invitation that goes by mail, to its address apart from those by
// which passwords are chosen: anybody may ask for these, and must not keep others out.
func (g Invitations) countMail(ctx context.Context, ws postern.WorkspaceID, in NewInvitation, email string) error {
	if !in.ByMail {
		return nil
	}
	return g.mails.take(ctx, string(ws), "invited "+email)
}
