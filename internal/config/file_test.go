package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func flags() []string {
	return []string{"addr", "data-dir", "database-url", "private-networks", "sandbox", "smtp-url", "trusted-proxies"}
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "postern.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFileHasTheNamesOfTheFlags(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want map[string]string
	}{
		"JSON": {
			`{"sandbox": true, "addr": "127.0.0.1:1", "data_dir": "d", "trusted-proxies": ["10.0.0.0/8", "::1/128"]}`,
			map[string]string{
				"sandbox": "true", "addr": "127.0.0.1:1", "data-dir": "d",
				"trusted-proxies": "10.0.0.0/8,::1/128",
			},
		},
		"TOML": {
			"# a sandbox\nsandbox = true\naddr = \"127.0.0.1:1\"\nprivate-networks = [\"10.0.0.0/8\"]\n",
			map[string]string{"sandbox": "true", "addr": "127.0.0.1:1", "private-networks": "10.0.0.0/8"},
		},
		"TOML, in words": {"sandbox = \"on\"", map[string]string{"sandbox": "on"}},
		"numbers":        {`{"addr": 1, "data-dir": 1.5}`, map[string]string{"addr": "1", "data-dir": "1.5"}},
		"nothing":        {"", map[string]string{}},
	} {
		if got, err := ReadFile(written(t, tt.text), flags()); err != nil || !maps.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tt.want)
		}
	}
}

// TestFileThatIsWrongIsRefused also looks that no value of it is repeated: it may be a
// secret.
func TestFileThatIsWrongIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"a typo in JSON":    {`{"snadbox": "canary"}`, `there is no setting "snadbox"; the nearest one is "sandbox"`},
		"a typo in TOML":    {`snadbox = "canary"`, `there is no setting "snadbox"; the nearest one is "sandbox"`},
		"a variable's name": {`POSTERN_SANDBOX = "canary"`, `the nearest one is "sandbox"`},
		"another case":      {`Sandbox = "canary"`, `the nearest one is "sandbox"`},
		"far from any":      {`{"databaseURL2": "canary"}`, `the nearest one is "database-url"`},
		"a table":           {"[serve]\nsandbox = \"canary\"", `there is no setting "serve"`},
		"an object":         {`{"sandbox": {"value": "canary"}}`, `"sandbox" must be a string`},
		"null":              {`{"sandbox": null}`, `"sandbox" must be a string`},
		"lists in lists":    {`{"private-networks": [["canary"]]}`, `must be a string`},
		"twice in JSON":     {`{"sandbox": "canary", "sandbox": "canary"}`, "cannot be read"},
		"twice in TOML":     {"sandbox = \"canary\"\nsandbox = \"canary\"", "line 2"},
		"in two forms":      {`{"data-dir": "canary", "data_dir": "canary"}`, `"data-dir" is set twice`},
		"no TOML":           {"sandbox: canary", "line 1 is neither JSON nor TOML"},
		"text after JSON":   {`{} canary`, "cannot be read"},
		"too large":         {strings.Repeat("#", maxSettings+1), "larger than"},
	} {
		_, err := ReadFile(written(t, tt.text), flags())
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none"), flags()); err == nil {
		t.Error("a file that is not there is read")
	}
}

func TestUnknownVariablesAreRefused(t *testing.T) {
	t.Parallel()
	known := []string{"POSTERN_ADDR", "POSTERN_SANDBOX", "POSTERN_SMTP_URL"}
	for entry, nearest := range map[string]string{
		"POSTERN_SNADBOX=canary": "POSTERN_SANDBOX", "POSTERN_SMTP=canary": "POSTERN_SMTP_URL",
		"POSTERN_sandbox=canary": "POSTERN_SANDBOX", "POSTERN_PORT=canary": "POSTERN_ADDR", "POSTERN_=canary": "POSTERN_ADDR",
		"POSTERN_SANDBOX=on": "", "PATH=/bin": "", "MY_POSTERN_X=1": "", "POSTERN_TEST_AS_PROGRAM=1": "",
		"POSTERN_PORT=tcp://10.0.0.1:8080": "", "POSTERN_SERVICE_HOST=10.0.0.1": "", "POSTERN_SERVICE_PORT_HTTP=8080": "",
		"POSTERN_PORT_8080_TCP_ADDR=10.0.0.1": "", "POSTERN_PORT_8080_TCP=tcp://10.0.0.1:8080": "",
	} {
		err := CheckVariables([]string{entry}, known)
		text := fmt.Sprint(err)
		if (err == nil) != (nearest == "") || strings.Contains(text, "canary") ||
			err != nil && !strings.HasSuffix(text, "nearest one is "+nearest) {
			t.Errorf("%s: %v, want %q", entry, err, nearest)
		}
	}
}
