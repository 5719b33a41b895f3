// Package accounts keeps people's accounts: the users, how they prove who they are, their login
// sessions, the workspaces that they are members of, and the invitations to them.
package accounts

import (
	"postern/internal/db"
	"postern/internal/store"
)

// Tables has the accounts of a store, with one field for each noun.
type Tables struct {
	Factors       Factors
	Identities    Identities
	Invitations   Invitations
	Members       Members
	PasswordLinks PasswordLinks
	SignIns       SignIns
	Users         Users
}

// Of returns the accounts of a store.
func Of(s *store.Store) Tables {
	c := core{s.Engine(), s.Settings}
	return Tables{
		Factors: Factors{c}, Identities: Identities{c}, Invitations: Invitations{c}, Members: Members{c},
		PasswordLinks: PasswordLinks{c}, SignIns: SignIns{c}, Users: Users{c},
	}
}

// core is what all nouns share.
type core struct {
	db       *db.DB
	settings store.Settings
}

// The nouns. Each one has the operations and statements of its own tables.
type (
	Factors       struct{ core } // second factors of a user
	Identities    struct{ core } // accounts at an OpenID provider
	Invitations   struct{ core } // to a workspace
	Members       struct{ core } // users of a workspace
	PasswordLinks struct{ core } // links by which a password is set
	SignIns       struct{ core } // login sessions of browsers
	Users         struct{ core } // people who can sign in
)

const chunk = 500 // rows in one operation of deleting
