// Package people holds the rules for users: how they sign in and prove who they are, who
// is a member of a workspace with which role, who is invited, and who operates the server.
// Each exported method checks the rights of its caller through package access.
package people

import (
	"context"
	"time"

	"postern/internal/factor"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/accounts"
	"postern/internal/throttle"
)

// People applies the rules over one store, with one member for each noun. Its methods may
// be called from several goroutines.
type People struct {
	*core

	Alerts        Alerts
	Audit         Audit
	Identities    Identities
	Invitations   Invitations
	Members       Members
	Operators     Operators
	PasswordLinks PasswordLinks
	SecondFactors SecondFactors
	SignIns       SignIns
	Users         Users
}

// The nouns. Each one has the rules for one kind of thing.
type (
	Alerts        struct{ *core } // who in a workspace is told what is wrong
	Audit         struct{ *core } // the audit log
	Identities    struct{ *core } // accounts at an OpenID Connect provider
	Invitations   struct{ *core } // invitations to a workspace
	Members       struct{ *core } // members of a workspace and their roles
	Operators     struct{ *core } // users who run the server
	PasswordLinks struct{ *core } // links to choose a new password
	SecondFactors struct{ *core } // apps, passkeys and recovery codes
	SignIns       struct{ *core } // login sessions of browsers
	Users         struct{ *core } // accounts, their passwords and the set-up
)

// core is shared by all nouns.
type core struct {
	db       *store.Store
	accounts accounts.Tables
	box      *seal.Box
	cursors  paging.Cursors
	now      func() time.Time

	hashing *hashing
	logins  *loginThrottle
	signOns *throttle.Limit // limits the sign-ins at the identity provider by network
	mails   mails

	checkURL   func(string) error
	testAlert  func(context.Context, postern.Workspace, seal.Secret) error
	alertTests *throttle.Limit

	passkeys   *factor.Passkeys // nil if the server cannot have passkeys
	noPasskeys error            // the reason if it cannot
}

// Options configure People.
type Options struct {
	DB  *store.Store
	Box *seal.Box
	// BaseURL is where browsers reach the dashboard. Passkeys are bound to it.
	BaseURL string
	// PasswordMemory is the memory for hashing one password in KiB; 0 means 7 MiB. Tests
	// about other things use less.
	PasswordMemory uint32
	// CheckURL says what is wrong with an address of a workspace's alerts.
	CheckURL func(url string) error
	// TestAlert posts a test to an address of a workspace's alerts. Its error has a Reason if it could not be posted.
	TestAlert func(ctx context.Context, ws postern.Workspace, url seal.Secret) error
}

// New returns a People.
func New(opts Options) *People {
	passkeys, noPasskeys := factor.NewPasskeys(opts.BaseURL)
	c := &core{
		db: opts.DB, accounts: accounts.Of(opts.DB), box: opts.Box,
		cursors: paging.Cursors{Box: opts.Box}, now: time.Now,
		hashing: newHashing(opts.PasswordMemory), logins: newLoginThrottle(), signOns: throttle.PerHour(signOnStarts),
		mails: newMails(), passkeys: passkeys, noPasskeys: noPasskeys,
		checkURL: opts.CheckURL, testAlert: opts.TestAlert, alertTests: throttle.PerHour(alertTests),
	}
	return &People{
		core:          c,
		Alerts:        Alerts{c},
		Audit:         Audit{c},
		Identities:    Identities{c},
		Invitations:   Invitations{c},
		Members:       Members{c},
		Operators:     Operators{c},
		PasswordLinks: PasswordLinks{c},
		SecondFactors: SecondFactors{c},
		SignIns:       SignIns{c},
		Users:         Users{c},
	}
}

func (g *core) users() Users { return Users{g} }

func (g *core) time() postern.Time { return postern.TimeOf(g.now()) }

// open turns a page into the store's form.
func (g *core) open(ws postern.WorkspaceID, kind string, p paging.Page) (store.Page, error) {
	after, rows, err := g.cursors.Open(ws, kind, p)
	return store.Page{After: after, Limit: rows}, err
}
