package main

import (
	"context"
	"fmt"
	"strings"

	"postern/internal/app"
	"postern/internal/people"
	"postern/internal/postern"
)

// userCmd never takes a password: a command line is seen by others and kept by
// shells.
type userCmd struct {
	Create        userCreateCmd        `cmd:"" help:"Add a user to a workspace, and show a link to choose a password."`
	List          userListCmd          `cmd:"" help:"List a workspace's users."`
	ResetPassword userResetPasswordCmd `cmd:"" help:"Show a link by which a user chooses a new password."`
	Operator      userOperatorCmd      `cmd:"" help:"Make a user an operator, who sees all workspaces and changes their plans in the dashboard."`
}

type userCreateCmd struct {
	data

	Workspace string `required:"" help:"Id of the workspace."`
	Email     string `required:"" help:"E-mail address."`
	Role      string `required:"" help:"owner, admin, developer or viewer."`
	Existing  bool   `help:"The person has an account with this address already, and has told you so."`
}

// Run adds a user.
func (c *userCreateCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		u, err := s.CreateUser(ctx, c.Workspace, people.NewUser{Email: c.Email, Role: postern.Role(c.Role), Existing: c.Existing})
		if err != nil {
			return err
		}
		return c.print(std, u, "user %s (%s)\n%s", u.ID, u.Email, howToJoin(u))
	})
}

// howToJoin says what to do with a link.
func howToJoin(u app.NewUser) string {
	switch {
	case u.Link == "":
		return "There is an account with this address: sign in with its password."
	case strings.HasPrefix(u.Link, "/"):
		return u.Link + "\nOpen it at the server's address, once it runs, within 72 hours, to choose a password. It works once and is not shown again."
	}
	return u.Link + "\nOpen it within 72 hours to choose a password. It works once and is not shown again."
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
		return table(c.data, std, list, "ID\tE-MAIL\tROLE\tJOINED", func(m postern.Member) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s", m.UserID, m.Email, m.Role, m.JoinedAt)
		})
	})
}

type userResetPasswordCmd struct {
	data

	Email string `arg:"" help:"E-mail address of the user."`
	Alone bool   `name:"password-alone" help:"Also remove the user's authenticator app, passkeys and recovery codes, when the link is used."`
}

// Run makes a link.
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

	Email  string `arg:"" help:"E-mail address of the user."`
	Remove bool   `help:"Take it back. Invitations that only an operator could make are revoked."`
}

// Run makes an operator, or takes that back.
func (c *userOperatorCmd) Run(ctx context.Context, std streams) error {
	return c.with(ctx, func(s *app.Commands) error {
		u, err := s.SetOperator(ctx, people.OperatorChange{Email: c.Email, Remove: c.Remove})
		if err != nil {
			return err
		}
		is := "an operator"
		if c.Remove {
			is = "no operator"
		}
		return c.print(std, map[string]any{"id": u.ID, "email": u.Email, "operator": !c.Remove}, "user %s (%s) is %s now", u.ID, u.Email, is)
	})
}
