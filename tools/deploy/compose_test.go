package deploy_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const composeFile = "../../deploy/docker/compose.yaml"

// project loads the compose file, which checks it against the specification.
func project(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{composeFile}, cli.WithEnv([]string{"POSTGRES_PASSWORD=secret"}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := cli.ProjectFromOptions(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestComposeNeedsAPassword(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{composeFile})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cli.ProjectFromOptions(t.Context(), options); err == nil {
		t.Error("the database has no password, and no error says so")
	}
}

func TestComposedServerHasNoRights(t *testing.T) {
	s := project(t).Services["postern"]
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
		t.Errorf("read only = %t, dropped capabilities = %v, options = %v", s.ReadOnly, s.CapDrop, s.SecurityOpt)
	}
	for _, p := range s.Ports {
		if p.HostIP != "127.0.0.1" {
			t.Errorf("port %s is published on %q, want 127.0.0.1 only", p.Published, p.HostIP)
		}
	}
}

func TestComposedServerWaitsForItsDatabase(t *testing.T) {
	p := project(t)
	if got := p.Services["postern"].DependsOn["postgres"].Condition; got != types.ServiceConditionHealthy {
		t.Errorf("the server waits until the database is %q, want healthy", got)
	}
	if p.Services["postgres"].HealthCheck == nil {
		t.Error("the database has no health check")
	}
}

func TestTheProgramKnowsTheSettingsOfCompose(t *testing.T) {
	env := imageVariables(t, project(t).Services["postern"].Build.Target)
	for name, value := range project(t).Services["postern"].Environment {
		env[name] = *value
	}
	if !slices.Contains(slices.Collect(maps.Keys(env)), "POSTERN_DATABASE_URL") {
		t.Error("the server does not use the database")
	}
	accepts(t, env)
}
