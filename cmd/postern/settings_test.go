package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"postern/internal/config"
)

// parsed returns the settings with which the server would start.
func parsed(t *testing.T, args ...string) (config.Server, error) {
	t.Helper()
	var c cli
	parser, err := newParser(t.Context(), &c, streams{&output{}, &output{}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = parse(parser, append([]string{"serve"}, args...))
	return c.Serve.Server, err
}

func TestSwitchesNeedNoValue(t *testing.T) { //nolint:paralleltest // the command line reads the environment
	for args, want := range map[string]bool{
		"--sandbox": true, "--sandbox=on": true, "--sandbox on": true, "--sandbox=true": true, "--sandbox off": false,
		"--sandbox=off": false, "": false, "--sandbox --insecure-http": true,
	} {
		if got, err := parsed(t, strings.Fields(args)...); err != nil || bool(got.Sandbox) != want {
			t.Errorf("%q: sandbox %v, %v, want %v", args, got.Sandbox, err, want)
		}
	}
	for _, args := range []string{"--sandbox=perhaps", "--sandbox perhaps"} {
		if got, err := parsed(t, strings.Fields(args)...); err == nil {
			t.Errorf("%q: sandbox %v", args, got.Sandbox)
		}
	}
}

// TestUnknownSettingStopsTheServer mistypes the sandbox in each place where it can be set. A
// server that ignored it would link devices to the real network.
func TestUnknownSettingStopsTheServer(t *testing.T) {
	if _, err := parsed(t, "--snadbox"); err == nil || !strings.HasSuffix(explain(err, nil).Error(), "--sandbox") {
		t.Errorf("a flag: %v", explain(err, nil))
	}
	if _, err := parsed(t, "--use-a-sandbox"); err == nil || !strings.HasSuffix(explain(err, nil).Error(), "--sandbox") {
		t.Errorf("a flag that is far from any: %v", explain(err, nil))
	}
	file := filepath.Join(t.TempDir(), "postern.toml")
	if err := os.WriteFile(file, []byte("snadbox = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := parsed(t, "--config-file", file)
	if err == nil || !strings.Contains(err.Error(), `nearest one is "sandbox"`) {
		t.Errorf("a file: %v", err)
	}
	t.Setenv("POSTERN_SNADBOX", "on")
	if _, err := parsed(t); err == nil || !strings.Contains(err.Error(), "nearest one is POSTERN_SANDBOX") {
		t.Errorf("a variable: %v", err)
	}
}

func TestFlagsWinOverVariablesAndVariablesOverTheFile(t *testing.T) {
	for name, text := range map[string]string{
		"postern.toml": "sandbox = true\naddr = \"127.0.0.1:1\"\nops-addr = \"127.0.0.1:1\"\n" +
			"base-url = \"https://file.example\"\n",
		"postern.json": `{"sandbox": true, "addr": "127.0.0.1:1", "ops-addr": "127.0.0.1:1",
			"base-url": "https://file.example"}`,
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("POSTERN_CONFIG_FILE", file)
		t.Setenv("POSTERN_ADDR", "127.0.0.1:2")
		t.Setenv("POSTERN_OPS_ADDR", "127.0.0.1:2")
		got, err := parsed(t, "--ops-addr", "127.0.0.1:3")
		if err != nil {
			t.Fatal(err)
		}
		if !bool(got.Sandbox) || got.BaseURL != "https://file.example" || got.Addr != "127.0.0.1:2" ||
			got.OpsAddr != "127.0.0.1:3" {
			t.Errorf("%s: sandbox %v, base URL %s, addr %s, ops addr %s", name, got.Sandbox, got.BaseURL, got.Addr,
				got.OpsAddr)
		}
	}
}
