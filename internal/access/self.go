package access

import "postern/internal/postern"

// Self is a person who is signed in and acts upon their own account. The zero Self is
// nobody.
type Self struct {
	ID      postern.UserID
	Address string // of the browser
	Token   string // the hash of this browser's session token: this session stays when all others end
	Sure    bool   // the person has shown a short time ago, in this browser, who they are
}

// Needs refuses nobody, with Unauthorized.
func (s Self) Needs() error {
	if s.ID == "" {
		return errNotSignedIn
	}
	return nil
}

// NeedsSure also refuses a person who has not just shown who they are: by the
// password, or at the identity provider where the account has no password.
func (s Self) NeedsSure() error {
	if err := s.Needs(); err != nil {
		return err
	}
	if !s.Sure {
		return postern.Errorf(
			postern.Unauthorized, "confirm first that it is you, by your password or by signing in again",
		)
	}
	return nil
}

// Pending is a person whose first step of the sign-in was right, and who may have to
// take the second one. The zero Pending is nobody.
type Pending struct {
	ID      postern.UserID
	Address string // of the browser
	Browser string // the cookie by which the browser may be known to the account
}

// Needs refuses nobody, with Unauthorized.
func (p Pending) Needs() error {
	if p.ID == "" {
		return errNotSignedIn
	}
	return nil
}

var errNotSignedIn = postern.Errorf(postern.Unauthorized, "sign in first")
