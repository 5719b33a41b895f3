package deploy_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// accepts fails the test unless the program starts with a server's variables: an unknown one, or a wrong value, is an
// error of "postern config".
func accepts(t *testing.T, env map[string]string) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "postern")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", bin, "./cmd/postern").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), bin, "config")
	cmd.Env = []string{}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("postern config: %v\n%s", err, out)
	}
}

func TestTheProgramKnowsTheSettingsOfTheChart(t *testing.T) {
	v := several()
	v["insecureHTTP"] = true
	env := environment(must[*appsv1.StatefulSet](t, v).Spec.Template.Spec.Containers[0])
	text := must[*corev1.ConfigMap](t, v).Data[filepath.Base(env["POSTERN_CONFIG_FILE"])]
	if !json.Valid([]byte(text)) {
		t.Fatalf("settings are not JSON: %s", text)
	}
	env["POSTERN_CONFIG_FILE"] = filepath.Join(t.TempDir(), "postern.json")
	if err := os.WriteFile(env["POSTERN_CONFIG_FILE"], []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	accepts(t, env)
}
