package gateway

import (
	"context"
	"time"

	"postern/internal/postern"
	"postern/internal/store"
)

// mails bounds the mail that people can have this server send in an hour: by a
// workspace or a network, and of a kind to one address, whoever asks for it.
type mails struct{ by, to limit }

func newMails() mails {
	return mails{by: newLimit(mailsBy, time.Hour), to: newLimit(mailsTo, time.Hour)}
}

func (m mails) take(ctx context.Context, by, to string) error {
	const wait = "too many mails; wait a few minutes"
	if err := takeOf(ctx, m.by, by, wait); err != nil {
		return err
	}
	return takeOf(ctx, m.to, to, wait)
}

// Forgot counts that somebody at an address asks for a mail by which a
// password is chosen, and gives the e-mail address as it is kept. Its answer is the
// same whether there is such an account.
func (g PasswordLinks) Forgot(ctx context.Context, address, email string) (string, error) {
	email, err := checkEmail(email)
	if err != nil {
		return "", err
	}
	return email, g.mails.take(ctx, network(address), email)
}

// ByMail gives the token of a link, for the mailbox alone, by which its
// owner chooses a new password, within an hour; "" when nobody has the e-mail
// address, or when an operator has made a link that also removes the second step:
// that one stays. The caller tells nobody which.
func (g PasswordLinks) ByMail(ctx context.Context, address, email string) (token string, err error) {
	token, now := randomToken(), g.time()
	l := store.PasswordLink{TokenHash: hashToken(token), ExpiresAt: now.Add(mailTime)}
	made, err := g.db.PasswordLinks.Ask(ctx, email, l, store.Act{At: now, Act: "user.password-mailed", Address: address})
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
