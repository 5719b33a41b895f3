package gateway

import (
	"errors"
	"slices"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/db"
	"postern/internal/postern"
)

func TestSuccessorOfAKey(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		ctx := t.Context()
		now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
		g.now = func() time.Time { return now }
		all, _ := newKey(t, g, NewKey{})
		op, err := g.Workspaces.Caller(ctx, access.Operator(), all.WorkspaceID)
		if err != nil {
			t.Fatal(err)
		}
		d, err := g.Devices.Create(ctx, op, NewDevice{Name: "d"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		old, oldSecret, err := g.Keys.Create(
			ctx,
			access.Operator(),
			all.WorkspaceID,
			NewKey{
				Name:        "ci",
				Environment: "staging",
				Scopes:      []postern.Scope{postern.EventsRead},
				Devices:     []postern.DeviceID{d.Value.ID},
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		good := func(secret string) bool {
			_, err := g.Keys.Authenticate(ctx, "Bearer "+secret)
			return err == nil
		}
		if !good(oldSecret) { // it is remembered from now on
			t.Fatal("a new key is refused")
		}
		next, nextSecret, err := g.Keys.Rotate(
			ctx, access.Operator(), old.WorkspaceID, old.ID, Rotation{Overlap: time.Hour},
		)
		if err != nil {
			t.Fatal(err)
		}
		if next.ID == old.ID || nextSecret == oldSecret || next.Name != "ci" || next.Environment != "staging" ||
			!slices.Equal(next.Scopes, old.Scopes) ||
			!slices.Equal(next.Devices, old.Devices) ||
			next.ExpiresAt != 0 ||
			next.LastUsedAt != 0 {
			t.Errorf("the successor of %+v is %+v", old, next)
		}
		if now = now.Add(time.Hour - time.Millisecond); !good(oldSecret) || !good(nextSecret) {
			t.Error("during the overlap a key is refused")
		}
		if now = now.Add(time.Millisecond); good(oldSecret) || !good(nextSecret) {
			t.Error("after the overlap the old key holds, or the new one does not")
		}
		if _, _, err := g.Keys.Rotate(
			ctx, access.Operator(), old.WorkspaceID, old.ID, Rotation{Overlap: time.Hour},
		); postern.ReasonOf(err) != postern.ValidationFailed {
			t.Errorf("rotating a key that has ended = %v", err)
		}
		// Without an overlap the old key ends at once, and a shorter life is kept.
		last, lastSecret, err := g.Keys.Rotate(
			ctx,
			access.Operator(),
			next.WorkspaceID,
			next.ID,
			Rotation{ExpiresAt: postern.TimeOf(now.Add(time.Minute))},
		)
		if err != nil || good(nextSecret) || !good(lastSecret) {
			t.Errorf("without an overlap: %v", err)
		}
		after, _, err := g.Keys.Rotate(
			ctx, access.Operator(), last.WorkspaceID, last.ID, Rotation{Overlap: 30 * 24 * time.Hour},
		)
		if err != nil || after.ExpiresAt != postern.TimeOf(now.Add(time.Minute)) {
			t.Errorf("the successor of a key for a minute expires at %s, %v", after.ExpiresAt, err)
		}
		if now = now.Add(time.Minute); good(lastSecret) {
			t.Error("an overlap made a key live longer")
		}
		for _, overlap := range []time.Duration{-1, 30*24*time.Hour + 1} {
			if _, _, err := g.Keys.Rotate(
				ctx, access.Operator(), last.WorkspaceID, last.ID, Rotation{Overlap: overlap},
			); postern.ReasonOf(err) != postern.ValidationFailed {
				t.Errorf("an overlap of %s = %v", overlap, err)
			}
		}
		if _, _, err := g.Keys.Rotate(
			ctx, access.Operator(), postern.NewWorkspaceID(), last.ID, Rotation{},
		); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("a key of another workspace = %v", err)
		}
	})
}

// join adds a user and their membership.
func join(t *testing.T, g *Gateway, m postern.Member) {
	t.Helper()
	err := g.db.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) error {
		return errors.Join(
			tx.Exec(`INSERT INTO users (id, email, password_hash, created_at) VALUES ($1, $1, '', 1)
				ON CONFLICT (id) DO NOTHING`, m.UserID),
			tx.Exec(`INSERT INTO member (user_id, workspace_id, role, joined_at) VALUES ($1, $2, $3, 1)`,
				m.UserID, m.WorkspaceID, string(m.Role)))
	}))
	if err != nil {
		t.Fatal(err)
	}
}

// The successor of a key that is replaced again has the lifetime that was chosen for the key.
func TestSecondSuccessorHasTheChosenLifetime(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		for _, life := range []time.Duration{0, 90 * 24 * time.Hour} {
			in := NewKey{}
			if life > 0 {
				in.ExpiresAt = g.time().Add(life)
			}
			key, _ := newKey(t, g, in)
			by := access.Actor{Recent: true, Member: postern.Member{
				UserID: "usr_1", WorkspaceID: key.WorkspaceID, Role: postern.Owner,
			}}
			join(t, g, by.Member)
			for range 2 {
				next, _, err := g.Keys.Rotate(t.Context(), by, key.WorkspaceID, key.ID, Rotation{Overlap: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				if lasts := next.ExpiresAt.Std().Sub(next.CreatedAt.Std()); life == 0 && next.ExpiresAt != 0 ||
					life > 0 && (lasts-life).Abs() > time.Hour {
					t.Errorf("the successor of a key for %s expires at %s", life, next.ExpiresAt)
				}
			}
		}
	})
}

func TestRevokedKeyHasNoSuccessor(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		key, _ := newKey(t, g, NewKey{})
		if err := g.Keys.Revoke(t.Context(), access.Operator(), key.WorkspaceID, key.ID); err != nil {
			t.Fatal(err)
		}
		if _, _, err := g.Keys.Rotate(
			t.Context(), access.Operator(), key.WorkspaceID, key.ID, Rotation{Overlap: time.Hour},
		); postern.ReasonOf(err) != postern.ValidationFailed {
			t.Errorf("rotating a revoked key = %v", err)
		}
		list, err := g.Keys.ListForOperator(t.Context(), access.Operator(), key.WorkspaceID)
		if err != nil || len(list) != 1 {
			t.Errorf("keys = %+v, %v", list, err)
		}
	})
}

func TestScopesAreWrittenOutWhenAKeyIsMade(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		key, secret := newKey(t, g, NewKey{})
		list, err := g.Keys.ListForOperator(t.Context(), access.Operator(), key.WorkspaceID)
		if err != nil || !slices.Equal(list[0].Scopes, postern.Scopes()) ||
			list[0].LastFour != secret[len(secret)-4:] ||
			list[0].Devices != nil {
			t.Errorf("a key made without scopes is listed as %+v, %v", list, err)
		}
		for name, in := range map[string]NewKey{
			"no scopes":     {Name: "k", Scopes: []postern.Scope{}},
			"unknown scope": {Name: "k", Scopes: []postern.Scope{"all"}},
			"no devices":    {Name: "k", Devices: []postern.DeviceID{}},
			"bad label":     {Name: "k", Environment: "a\nb"}, "no name": {},
		} {
			if _, _, err := g.Keys.Create(
				t.Context(), access.Operator(), key.WorkspaceID, in,
			); postern.ReasonOf(err) != postern.ValidationFailed {
				t.Errorf("%s = %v, want validation-failed", name, err)
			}
		}
		other, _ := newKey(t, g, NewKey{})
		op, err := g.Workspaces.Caller(t.Context(), access.Operator(), other.WorkspaceID)
		if err != nil {
			t.Fatal(err)
		}
		d, err := g.Devices.Create(t.Context(), op, NewDevice{Name: "d"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := g.Keys.Create(
			t.Context(), access.Operator(), key.WorkspaceID, NewKey{Name: "k", Devices: []postern.DeviceID{d.Value.ID}},
		); postern.ReasonOf(err) != postern.ResourceNotAllowed {
			t.Errorf("a device of another workspace = %v", err)
		}
	})
}

// TestLastUseIsWrittenOnceAMinute counts writes, by the times they leave.
func TestLastUseIsWrittenOnceAMinute(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		start := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
		now := start
		g.now = func() time.Time { return now }
		key, secret := newKey(t, g, NewKey{})
		lastUsed := func() postern.Time {
			t.Helper()
			if err := g.db.Settings.Set(t.Context(), "after what was written before", ""); err != nil {
				t.Fatal(err)
			}
			k, err := g.db.Keys.Get(t.Context(), key.WorkspaceID, key.ID)
			if err != nil {
				t.Fatal(err)
			}
			return k.LastUsedAt
		}
		if lastUsed() != 0 {
			t.Error("a new key was used")
		}
		for _, step := range []struct{ at, want time.Duration }{
			{0, 0},
			{time.Second, 0},
			{59 * time.Second, 0},
			{60 * time.Second, time.Minute},
			{119 * time.Second, time.Minute},
			{time.Hour, time.Hour},
		} {
			now = start.Add(step.at)
			if _, err := g.Keys.Authenticate(t.Context(), "Bearer "+secret); err != nil {
				t.Fatal(err)
			}
			if got, want := lastUsed(), postern.TimeOf(start.Add(step.want)); got != want {
				t.Errorf("after a use at %s last used is %s, want %s", step.at, got, want)
			}
		}
	})
}

func TestLimitsOfAWorkspace(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		ctx := t.Context()
		key, secret := newKey(t, g, NewKey{}) // growth
		plan := func() postern.Plan {
			t.Helper()
			c, err := g.Keys.Authenticate(ctx, "Bearer "+secret)
			if err != nil {
				t.Fatal(err)
			}
			return c.Plan
		}
		n := func(i int) *int { return &i }
		for _, step := range []struct {
			change            postern.Limits
			messages, devices int
		}{
			{postern.Limits{}, 30_000, 5},
			{postern.Limits{Messages: n(7)}, 7, 5},
			{postern.Limits{Devices: n(0)}, 7, 0},
			{postern.Limits{Messages: n(-1), Devices: n(9)}, 30_000, 9},
			{postern.Limits{Devices: n(-1), EventDays: n(3)}, 30_000, 5},
		} {
			ws, err := g.Workspaces.ChangeLimits(ctx, access.Operator(), key.WorkspaceID, step.change)
			if err != nil {
				t.Fatal(err)
			}
			if p := plan(); p.Messages != step.messages || p.Devices != step.devices || !p.API {
				t.Errorf("after %+v: %+v, want %d messages and %d devices", step.change, p, step.messages, step.devices)
			}
			if p, ok := ws.Entitlement(); !ok || p != plan() {
				t.Errorf("the answer says %+v", p)
			}
		}
		for name, change := range map[string]postern.Limits{
			"messages": {Messages: n(1e9 + 1)},
			"no day":   {EventDays: n(0)}, "many days": {MessageDays: n(40_000)},
		} {
			if _, err := g.Workspaces.ChangeLimits(
				ctx, access.Operator(), key.WorkspaceID, change,
			); postern.ReasonOf(err) != postern.ValidationFailed {
				t.Errorf("%s = %v", name, err)
			}
		}
		if _, err := g.Workspaces.ChangeLimits(
			ctx, access.Operator(), postern.NewWorkspaceID(), postern.Limits{},
		); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("no workspace = %v", err)
		}
		keep := Retention{Events: 30 * day, Messages: 90 * day}
		list, err := g.Workspaces.List(ctx, access.Operator())
		if err != nil || keep.of(list[0]) != (Retention{Events: 3 * day, Messages: 90 * day}) {
			t.Errorf("kept for %+v, %v", keep.of(list[0]), err)
		}
	})
}
