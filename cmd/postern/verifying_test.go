package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// verifiers are how the functions of the guide are called, by the names of their files: a program that verifies
// five arguments at a time and prints a line for each, and the command that runs it.
var verifiers = map[string]struct{ file, program, command string }{
	"verify.mjs": {"main.mjs", `import { verify } from "./verify.mjs";
const args = process.argv.slice(2);
for (let i = 0; i < args.length; i += 5)
  console.log(verify(...args.slice(i, i + 4), Buffer.from(args[i + 4])));`, `node main.mjs "$@"`},
	"verify.py": {"main.py", `import sys
from verify import verify
args = sys.argv[1:]
for i in range(0, len(args), 5):
    print(str(verify(*args[i:i+4], args[i+4].encode())).lower())`, `python3 main.py "$@"`},
	"verify.go": {"main.go", `package main
import ("fmt"; "os")
func main() {
	for a := os.Args[1:]; len(a) > 0; a = a[5:] {
		fmt.Println(verify(a[0], a[1], a[2], a[3], []byte(a[4])))
	}
}`, `go run main.go verify.go "$@"`},
	"verify.php": {"main.php", `<?php
require 'verify.php';
foreach (array_chunk(array_slice($argv, 1), 5) as $a) {
    echo verify(...$a) ? "true\n" : "false\n";
}`, `php main.php "$@"`},
	"verify.rb": {"main.rb", `require_relative "verify"
ARGV.each_slice(5) { |a| puts verify(*a) }`, `ruby main.rb "$@"`},
	"Webhook.java": {"Main.java", `public class Main {
    public static void main(String[] a) throws Exception {
        for (int i = 0; i < a.length; i += 5)
            System.out.println(Webhook.verify(a[i], a[i+1], a[i+2], a[i+3], a[i+4].getBytes("UTF-8")));
    }
}`, `javac -d . Main.java Webhook.java && java -Dfile.encoding=UTF-8 -Dsun.jnu.encoding=UTF-8 -cp . Main "$@"`},
}

// signed are the arguments of a request that was signed at a time.
func signed(secret, id string, at time.Time, body string) []string {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	return []string{secret, id, stamp, "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), body}
}

// TestVerifyingInSixLanguages runs the functions of the guide with genuine requests and with others.
func TestVerifyingInSixLanguages(t *testing.T) {
	t.Parallel()
	const secret, other = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=", "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	const id, body = "evt_01JD8Z", `{"type":"message.received","body":"Grüße 👋"}`
	genuine := func() []string { return signed(secret, id, time.Now(), body) }
	with := func(place int, value string) []string {
		a := genuine()
		a[place] = value
		return a
	}
	right := genuine()[3]
	cases := []struct {
		name string
		args []string
		want bool
	}{
		{"genuine", genuine(), true},
		{"with the old secret's signature first", with(3, signed(other, id, time.Now(), body)[3]+" "+genuine()[3]), true},
		{"with another kind of signature first", with(3, "v1a,AAAA "+genuine()[3]), true},
		{"an empty body", signed(secret, id, time.Now(), ""), true},
		{"another secret", with(0, other), false},
		{"another id", with(1, "evt_2"), false},
		{"another time", with(2, strconv.FormatInt(time.Now().Unix()-10, 10)), false},
		{"another body", with(4, body+" "), false},
		{"ten minutes old", signed(secret, id, time.Now().Add(-10*time.Minute), body), false},
		{"ten minutes ahead", signed(secret, id, time.Now().Add(10*time.Minute), body), false},
		{"no signature", with(3, ""), false},
		{"no version", with(3, strings.TrimPrefix(right, "v1,")), false},
		{"half a signature", with(3, right[:len(right)/2]), false},
		{"no time", with(2, ""), false},
		{"a time that is no number", with(2, "now"), false},
	}
	var args []string
	for _, c := range cases {
		args = append(args, c.args...)
	}
	found := 0
	for _, s := range steps(readGuide(t, "verifying.md")) {
		v, known := verifiers[s.file]
		if !known {
			t.Errorf("%q is not run", s.file+s.script)
			continue
		}
		found++
		t.Run(s.file, func(t *testing.T) {
			t.Parallel()
			got := strings.Fields(runVerifier(t, s, v.file, v.program, v.command, args))
			if len(got) != len(cases) {
				t.Fatalf("%d results, want %d: %q", len(got), len(cases), got)
			}
			for i, c := range cases {
				if got[i] != strconv.FormatBool(c.want) {
					t.Errorf("%s: %s, want %t", c.name, got[i], c.want)
				}
			}
		})
	}
	if found != len(verifiers) {
		t.Errorf("the guide has %d languages, want %d", found, len(verifiers))
	}
}

func runVerifier(t *testing.T, s step, file, text, command string, args []string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{s.file: s.script, file: text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-ec", command, "sh"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C.UTF-8", "GO111MODULE=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}
