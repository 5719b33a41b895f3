package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mistake is a setting that is wrong, and what the error must say.
type mistake struct {
	env  []string // NAME=value
	file string   // the configuration file
	args []string // instead of those of serve
	exit int
	says []string
}

const ca = "POSTERN_NETWORK_ROOT_KEY=0000000000000000000000000000000000000000000000000000000000000000"

// mistakes are 59 ways to get a setting wrong. DIR stands for an empty directory, and OLD for the data directory of a
// server whose secret key is gone.
var mistakes = map[string]mistake{
	// unknown and mistyped names
	"unknown flag":                {args: []string{"serve", "--snadbox"}, exit: 2, says: []string{"--snadbox", "nearest one is --sandbox"}},
	"unknown variable":            {env: []string{"POSTERN_ADR=x"}, exit: 2, says: []string{"POSTERN_ADR", "nearest one is POSTERN_ADDR"}},
	"unknown name in the file":    {file: "retention-event = '30d'", exit: 2, says: []string{`"retention-event"`, `nearest one is "retention-events"`}},
	"variable of another command": {env: []string{"POSTERN_WORKSPACE=x"}, exit: 2, says: []string{"POSTERN_WORKSPACE"}},
	"unknown command":             {args: []string{"server"}, exit: 2, says: []string{"server"}},
	"message of nothing":          {args: []string{"message", "send", "--workspace=ws_x", "--to=+15551234567"}, exit: 2, says: []string{"--body", "--file"}},
	"type without a file":         {args: []string{"message", "send", "--workspace=ws_x", "--to=+15551234567", "--body=x", "--type=image"}, exit: 2, says: []string{"--type", "--file"}},
	"key that has expired":        {args: []string{"key", "create", "--workspace=ws_x", "--name=ci", "--expires=-5h"}, exit: 2, says: []string{"--expires", "720h"}},
	"successor that has expired":  {args: []string{"key", "rotate", "--workspace=ws_x", "--expires=-5h", "key_x"}, exit: 2, says: []string{"--expires", "720h"}},
	"overlap of a month":          {args: []string{"key", "rotate", "--workspace=ws_x", "--overlap=800h", "key_x"}, exit: 2, says: []string{"--overlap", "720h"}},
	"unknown scope":               {args: []string{"key", "create", "--workspace=ws_x", "--name=ci", "--scope=foo"}, exit: 2, says: []string{"--scope", "messages:write"}},
	"unknown event":               {args: []string{"webhook", "add", "--workspace=ws_x", "--url=https://example.com", "--event=foo"}, exit: 2, says: []string{"--event", "message.*"}},
	"unknown plan":                {args: []string{"workspace", "create", "--name=acme", "--plan=gold"}, exit: 2, says: []string{"--plan", "starter"}},
	"unknown plan to change to":   {args: []string{"workspace", "set-plan", "ws_x", "gold"}, exit: 2, says: []string{"plan", "starter"}},
	"unknown role":                {args: []string{"user", "create", "--workspace=ws_x", "--email=a@example.com", "--role=boss"}, exit: 2, says: []string{"--role", "viewer"}},
	"argument too many":           {args: []string{"serve", "now"}, exit: 2, says: []string{"now"}},
	"set twice in the file":       {file: "log-level = 'info'\nlog_level = 'warn'", exit: 2, says: []string{"log-level", "twice"}},
	// wrong types and units
	"switch":                       {env: []string{"POSTERN_SANDBOX=yes"}, exit: 2, says: []string{"POSTERN_SANDBOX", `"yes"`, "on nor off"}},
	"switch as a flag":             {args: []string{"serve", "--sandbox=perhaps"}, exit: 2, says: []string{"--sandbox", `"perhaps"`, "on nor off"}},
	"switch in the file":           {file: "sandbox = 'maybe'", exit: 2, says: []string{"sandbox in the configuration file", `"maybe"`, "on nor off"}},
	"duration without a unit":      {env: []string{"POSTERN_SHUTDOWN_DELAY=5"}, exit: 2, says: []string{"POSTERN_SHUTDOWN_DELAY", `"5"`, "5s"}},
	"duration with a wrong unit":   {env: []string{"POSTERN_SHUTDOWN_DELAY=5sec"}, exit: 2, says: []string{"POSTERN_SHUTDOWN_DELAY", `"5sec"`, "5s"}},
	"negative duration":            {env: []string{"POSTERN_SHUTDOWN_DELAY=-1s"}, exit: 2, says: []string{"POSTERN_SHUTDOWN_DELAY", "0s to 5m"}},
	"duration that is too long":    {env: []string{"POSTERN_SHUTDOWN_DELAY=1h"}, exit: 2, says: []string{"POSTERN_SHUTDOWN_DELAY", "0s to 5m"}},
	"retention without a unit":     {env: []string{"POSTERN_RETENTION_EVENTS=30"}, exit: 2, says: []string{"POSTERN_RETENTION_EVENTS", `"30"`, "30d"}},
	"retention in weeks":           {env: []string{"POSTERN_RETENTION_MEDIA=4w"}, exit: 2, says: []string{"POSTERN_RETENTION_MEDIA", `"4w"`, "30d"}},
	"retention of minutes":         {env: []string{"POSTERN_RETENTION_AUDIT=30m"}, exit: 2, says: []string{"POSTERN_RETENTION_AUDIT", `"30m"`, "at least 1h"}},
	"retention as a number":        {file: "retention-messages = 90", exit: 2, says: []string{"retention-messages in the configuration file", `"90"`, "30d"}},
	"pace in words":                {env: []string{"POSTERN_PACE=slow"}, exit: 2, says: []string{"POSTERN_PACE", `"slow"`, "30/min"}},
	"pace with a wrong unit":       {env: []string{"POSTERN_PACE=30/sec"}, exit: 2, says: []string{"POSTERN_PACE", `"30/sec"`, "30/min"}},
	"pace of zero":                 {env: []string{"POSTERN_PACE=0/min"}, exit: 2, says: []string{"POSTERN_PACE", `"0/min"`, "1 to 1000"}},
	"rate in words":                {env: []string{"POSTERN_CONNECT_RATE=fast"}, exit: 2, says: []string{"POSTERN_CONNECT_RATE", `"fast"`}},
	"negative rate":                {env: []string{"POSTERN_CONNECT_RATE=-1"}, exit: 2, says: []string{"POSTERN_CONNECT_RATE", "200"}},
	"log level":                    {env: []string{"POSTERN_LOG_LEVEL=warning"}, exit: 2, says: []string{"POSTERN_LOG_LEVEL", `"warning"`, "debug, info, warn, error", "nearest one is warn"}},
	"log format":                   {args: []string{"serve", "--log-format", "txt"}, exit: 2, says: []string{"--log-format", `"txt"`, "nearest one is text"}},
	"alerts without a scheme":      {env: []string{"POSTERN_ALERT_URL=alerts.example.com"}, exit: 2, says: []string{"POSTERN_ALERT_URL", "https://"}},
	"alerts without a mail server": {env: []string{"POSTERN_ALERT_MAIL=night@example.com"}, exit: 2, says: []string{"POSTERN_ALERT_MAIL", "POSTERN_SMTP_URL"}},
	"alerts to no address":         {env: []string{"POSTERN_ALERT_MAIL=night", "POSTERN_SMTP_URL=smtp://mail.example.com?from=a@example.com"}, exit: 2, says: []string{"POSTERN_ALERT_MAIL", "night@example.com"}},
	"alerts too soon":              {env: []string{"POSTERN_ALERT_AFTER=5ms"}, exit: 2, says: []string{"POSTERN_ALERT_AFTER", "1s"}},
	"collector without a scheme":   {env: []string{"POSTERN_OTLP_ENDPOINT=localhost:4318"}, exit: 2, says: []string{"POSTERN_OTLP_ENDPOINT", `"localhost:4318"`, "http://127.0.0.1:4318"}},
	"network":                      {env: []string{"POSTERN_TRUSTED_PROXIES=10.0.0.0/33"}, exit: 2, says: []string{"POSTERN_TRUSTED_PROXIES", `"10.0.0.0/33"`, "10.0.0.0/8"}},
	"network of names":             {env: []string{"POSTERN_PRIVATE_NETWORKS=intranet"}, exit: 2, says: []string{"POSTERN_PRIVATE_NETWORKS", `"intranet"`, "10.0.0.0/8"}},
	"table in the file":            {file: "[server]\naddr = 'x'", exit: 2, says: []string{`"server"`}},
	"file that is neither format":  {file: "addr: 127.0.0.1", exit: 2, says: []string{"postern.toml", "neither JSON nor TOML"}},
	// addresses
	"address without a port":      {env: []string{"POSTERN_ADDR=127.0.0.1"}, exit: 2, says: []string{"POSTERN_ADDR", `"127.0.0.1"`, "host:port"}},
	"address with a wrong port":   {env: []string{"POSTERN_ADDR=127.0.0.1:99999"}, exit: 2, says: []string{"POSTERN_ADDR", `"127.0.0.1:99999"`, "65535"}},
	"public address, no TLS":      {env: []string{"POSTERN_ADDR=0.0.0.0:8080"}, exit: 2, says: []string{"POSTERN_ADDR", "POSTERN_TLS_CERT_FILE", "POSTERN_INSECURE_HTTP"}},
	"public operations address":   {env: []string{"POSTERN_OPS_ADDR=:9090"}, exit: 2, says: []string{"POSTERN_OPS_ADDR", `":9090"`, "POSTERN_PUBLIC_OPS"}},
	"base address without scheme": {env: []string{"POSTERN_BASE_URL=postern.example.com"}, exit: 2, says: []string{"POSTERN_BASE_URL", `"postern.example.com"`, "https://"}},
	"vendor's address":            {env: []string{"POSTERN_NETWORK_URL=https://x", ca}, exit: 2, says: []string{"POSTERN_NETWORK_URL", `"https://x"`, "wss://"}},
	"root key of a vendor":        {env: []string{"POSTERN_NETWORK_ROOT_KEY=00ff"}, exit: 2, says: []string{"POSTERN_NETWORK_ROOT_KEY", "32 bytes in hex"}},
	"media storage":               {env: []string{"POSTERN_MEDIA_URL=/canary"}, exit: 2, says: []string{"POSTERN_MEDIA_URL", "file:///", "s3://"}},
	"another database":            {env: []string{"POSTERN_DATABASE_URL=mysql://canary", "POSTERN_SECRET_KEY_FILE=k"}, exit: 2, says: []string{"POSTERN_DATABASE_URL", "postgres://"}},
	"mail server":                 {env: []string{"POSTERN_SMTP_URL=canary.example.com"}, exit: 2, says: []string{"POSTERN_SMTP_URL", "smtp://"}},
	// files and directories
	"missing configuration file": {env: []string{"POSTERN_CONFIG_FILE=DIR/none"}, exit: 2, says: []string{"POSTERN_CONFIG_FILE", "no such file"}},
	"missing certificate":        {env: []string{"POSTERN_TLS_CERT_FILE=DIR/c", "POSTERN_TLS_KEY_FILE=DIR/k"}, exit: 1, says: []string{"POSTERN_TLS_CERT_FILE", "POSTERN_TLS_KEY_FILE", "no such file"}},
	"key in a missing directory": {env: []string{"POSTERN_SECRET_KEY_FILE=DIR/none/key"}, exit: 1, says: []string{"POSTERN_SECRET_KEY_FILE", "no such file"}},
	"missing key of a database":  {args: []string{"serve", "--data-dir", "OLD", "--sandbox"}, exit: 1, says: []string{"OLD/secret.key", "restore the file"}},
	"command on no data":         {args: []string{"workspace", "list", "--data-dir", "DIR/none"}, exit: 1, says: []string{"no Postern database", "DIR/none", "--data-dir"}},
}

// Each mistake is refused before anything is created. The error names the setting as the user gave it, what was
// found, and what is allowed, and shows no secret.
func TestMistakesInSettingsAreRefused(t *testing.T) {
	t.Parallel()
	old := shortDir(t)
	mustRun(t, "workspace", "create", "--data-dir", old, "--name", "acme")
	if err := os.Remove(filepath.Join(old, "secret.key")); err != nil {
		t.Fatal(err)
	}
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			in := strings.NewReplacer("DIR", dir, "OLD", old)
			if m.file != "" {
				m.env = append(m.env, "POSTERN_CONFIG_FILE="+filepath.Join(dir, "postern.toml"))
				if err := os.WriteFile(filepath.Join(dir, "postern.toml"), []byte(m.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := m.args
			if args == nil {
				args = []string{"serve", "--data-dir", "DIR/data"}
			}
			text := in.Replace(m.try(t, in, args))
			for _, want := range m.says {
				if !strings.Contains(text, in.Replace(want)) {
					t.Errorf("the error does not say %q:\n%s", in.Replace(want), text)
				}
			}
			if strings.Contains(text, "canary") {
				t.Errorf("the error shows a secret:\n%s", text)
			}
			for _, made := range []string{"data", "none"} {
				if _, err := os.Stat(filepath.Join(dir, made)); err == nil {
					t.Errorf("%s was created", made)
				}
			}
		})
	}
}

// try runs the command and returns its error.
func (m mistake) try(t *testing.T, in *strings.Replacer, args []string) string {
	t.Helper()
	var out, errs output
	for i := range args {
		args[i] = in.Replace(args[i])
	}
	cmd := program(t.Context(), &out, &errs, args...)
	for _, e := range m.env {
		cmd.Env = append(cmd.Env, in.Replace(e))
	}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != m.exit {
		t.Errorf("exit status %d, want %d", got, m.exit)
	}
	return errs.String()
}

func TestConfigPrintsSettingsAndTheirSources(t *testing.T) {
	t.Parallel()
	var out, errs output
	file := filepath.Join(t.TempDir(), "postern.toml")
	if err := os.WriteFile(file, []byte("base-url = 'https://a.example'\nlog-level = 'warn'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := program(t.Context(), &out, &errs, "config", "--sandbox", "--json", "--log-level", "error")
	cmd.Env = append(cmd.Env, "POSTERN_CONFIG_FILE="+file, "POSTERN_SMTP_URL=smtp://u:canary@m?from=a@b",
		"POSTERN_OPS_ADDR=[::1]:9090", "POSTERN_TRUSTED_PROXIES=10.0.0.0/8,fd00::/8")
	if err := cmd.Run(); err != nil {
		t.Fatal(err, errs.String())
	}
	for name, want := range map[string][2]string{
		"POSTERN_SANDBOX": {"on", "flag"}, "POSTERN_LOG_LEVEL": {"error", "flag"}, "POSTERN_BASE_URL": {"https://a.example", "file"},
		"POSTERN_SMTP_URL": {"***", "variable"}, "POSTERN_ADDR": {"127.0.0.1:8080", "default"}, "POSTERN_PACE": {"off", "default"},
		"POSTERN_RETENTION_EVENTS": {"30d", "default"}, "POSTERN_OPS_ADDR": {"[::1]:9090", "variable"},
		"POSTERN_TRUSTED_PROXIES": {"10.0.0.0/8,fd00::/8", "variable"},
	} {
		if one := fmt.Sprintf(`{"name":%q,"value":%q,"source":%q}`, name, want[0], want[1]); !strings.Contains(out.String(), one) {
			t.Errorf("it does not print %s:\n%s", one, out.String())
		}
	}
	if strings.Contains(out.String()+errs.String(), "canary") {
		t.Error("it prints a password")
	}
}
