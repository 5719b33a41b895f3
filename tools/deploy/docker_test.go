package deploy_test

import (
	"bytes"
	"context"
	"os"
	"slices"
	"testing"

	"github.com/containerd/platforms"
	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/opencontainers/go-digest"
)

const dockerfile = "../../deploy/docker/Dockerfile"

// noRegistry knows the base images without asking a registry: they set no variables.
type noRegistry struct{}

func (noRegistry) ResolveImageConfig(_ context.Context, name string, _ sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	return name, "", []byte(`{"architecture":"amd64","os":"linux","config":{"Env":["PATH=/usr/bin"]}}`), nil
}

// TestDockerfileIsLinted makes the plan of the build of every stage, without carrying it out. A warning fails.
func TestDockerfileIsLinted(t *testing.T) {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	platform := platforms.MustParse("linux/arm64")
	source := llb.NewSourceMap(nil, "Dockerfile", "Dockerfile", text)
	source.Definition = &llb.Definition{}
	opt := dockerfile2llb.ConvertOpt{MetaResolver: noRegistry{}, TargetPlatform: &platform, SourceMap: source}
	result, err := dockerfile2llb.DockerfileLint(t.Context(), text, opt)
	if err != nil {
		t.Fatal(err)
	}
	if result.Error != nil {
		t.Error(result.Error.Message)
	}
	for _, w := range result.Warnings {
		t.Errorf("%s: %s", w.RuleName, w.Detail)
	}
}

// stages parses the Dockerfile.
func stages(t *testing.T) []instructions.Stage {
	t.Helper()
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	stages, _, err := instructions.Parse(tree.AST, linter.New(&linter.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	return stages
}

// stage returns the stage that builds an image.
func stage(t *testing.T, target string) instructions.Stage {
	t.Helper()
	all := stages(t)
	i := slices.IndexFunc(all, func(s instructions.Stage) bool { return s.Name == target })
	if i < 0 {
		t.Fatalf("the Dockerfile has no target %q", target)
	}
	return all[i]
}

// imageVariables returns the variables that an image sets.
func imageVariables(t *testing.T, target string) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, c := range stage(t, target).Commands {
		if c, ok := c.(*instructions.EnvCommand); ok {
			for _, pair := range c.Env {
				env[pair.Key] = pair.Value
			}
		}
	}
	return env
}

func TestImagesRunAsNobody(t *testing.T) {
	for target, base := range map[string]string{"postern": "scratch", "postern-ffmpeg": "debian:12-slim"} {
		s := stage(t, target)
		if s.BaseName != base {
			t.Errorf("%s is made from %s, want %s", target, s.BaseName, base)
		}
		var users []string
		for _, c := range s.Commands {
			if c, ok := c.(*instructions.UserCommand); ok {
				users = append(users, c.User)
			}
		}
		if !slices.Equal(users, []string{"65532:65532"}) {
			t.Errorf("%s runs as %v, want 65532:65532", target, users)
		}
	}
}

func TestTheProgramKnowsTheVariablesOfTheImages(t *testing.T) {
	for _, target := range []string{"postern", "postern-ffmpeg"} {
		env := imageVariables(t, target)
		env["POSTERN_TRUSTED_PROXIES"] = "10.0.0.0/8"
		accepts(t, env)
	}
}
