package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"postern/internal/app"
	"postern/internal/people"
	"postern/internal/postern"
)

// userCmd never takes a password, because other users can see a command line and
// shells store it.
type userCmd struct {
	Create        userCreateCmd        `cmd:"" help:"Add a user to a workspace and print a link for choosing a password."`
	List          userListCmd          `cmd:"" help:"List the users of a workspace."`
	ResetPassword userResetPasswordCmd `cmd:"" help:"Print a link with which a user chooses a new password."`
	Operator      userOperatorCmd      `cmd:"" help:"Make a user an operator, who can see all workspaces and change their plans in the dashboard."`
	SetupLink     userSetUpLinkCmd     `cmd:"" name:"setup-link" help:"Print the link that creates the first user of the dashboard."`
}

type userCreateCmd struct {
	data

	Workspace string `required:"" help:"Id of the workspace."`
	Email     string `required:"" help:"Email address."`
	Role      string `required:"" enum:"owner,admin,developer,agent,viewer" help:"Role: owner, admin, developer, agent or viewer."`
	Existing  bool   `help:"Confirm that the person told you they already have an account with this address."`
}

// Run adds a user.
func (c *userCreateCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		u, err := s.CreateUser(ctx, c.Workspace,
			people.NewUser{Email: c.Email, Role: postern.Role(c.Role), Existing: c.Existing})
		if err != nil {
			return err
		}
		return c.print(std, u, "user %s (%s)\n%s", u.ID, u.Email, howToJoin(u))
	})
}

// howToJoin says how to use the link.
func howToJoin(u app.NewUser) string {
	switch {
	case u.Link == "":
		return "An account with this address already exists: sign in with its password."
	case strings.HasPrefix(u.Link, "/"):
		return u.Link + "\nStart the server, then open this path at its address within 72 hours to choose a " +
			"password. It works once and is not shown again."
	}
	return u.Link + "\nOpen this link within 72 hours to choose a password. It works once and is not shown again."
}

type userListCmd struct {
	data

	Workspace string `required:"" help:"Id of the workspace."`
}

// Run lists users.
func (c *userListCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		list, err := s.Members(ctx, c.Workspace)
		if err != nil {
			return err
		}
		return table(c.data, std, list, "ID\tEMAIL\tROLE\tJOINED", func(m postern.Member) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s", m.UserID, m.Email, m.Role, m.JoinedAt)
		})
	})
}

type userSetUpLinkCmd struct{ data }

// Run prints the link that creates the first user.
func (c *userSetUpLinkCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		if s.Alone {
			return errors.New("no server is running; start one with \"postern serve\" first, because the link leads " +
				"to it")
		}
		link, err := s.SetUpLink(ctx)
		if err != nil {
			return err
		}
		if link == "" {
			return errors.New("there already is a user; sign in, or use \"postern user reset-password\"")
		}
		return c.print(std, map[string]string{"link": link},
			"Open this URL to create the first user, who owns the first workspace. It works once, and replaces "+
				"earlier ones.\n\n    %s", link)
	})
}

type userResetPasswordCmd struct {
	data

	Email string `arg:"" help:"Email address of the user."`
	Alone bool   `name:"turn-off-two-step" help:"Also turn off two-step authentication: when the link is used, the authenticator app, passkeys and recovery codes are removed."`
}

// Run creates a link.
func (c *userResetPasswordCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		u, err := s.ResetPassword(ctx, people.Reset{Email: c.Email, Alone: c.Alone})
		if err != nil {
			return err
		}
		return c.print(std, u, "user %s (%s)\n%s", u.ID, u.Email, howToJoin(u))
	})
}

type userOperatorCmd struct {
	data

	Email  string `arg:"" help:"Email address of the user."`
	Remove bool   `help:"Remove the operator role instead. Invitations that only an operator could make are revoked."`
}

// Run makes the user an operator, or removes that role.
func (c *userOperatorCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		u, err := s.SetOperator(ctx, people.OperatorChange{Email: c.Email, Remove: c.Remove})
		if err != nil {
			return err
		}
		is := "now an operator"
		if c.Remove {
			is = "no longer an operator"
		}
		return c.print(std, map[string]any{"id": u.ID, "email": u.Email, "operator": !c.Remove}, "user %s (%s) is %s",
			u.ID, u.Email, is)
	})
}
