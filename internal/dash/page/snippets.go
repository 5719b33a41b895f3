package page

import (
	"encoding/json"
	"fmt"
	"strings"
)

// snippet is the first call in one language.
type snippet struct {
	id, label, text string
}

func (v KeyShownView) snippets() []snippet {
	address, bearer := strings.TrimRight(v.BaseURL, "/")+"/v1/devices", "Bearer "+v.Secret
	return []snippet{
		{"curl", "curl", fmt.Sprintf("curl %s \\\n  -H %s", shell(address), shell("Authorization: "+bearer))},
		{"go", "Go", fmt.Sprintf(goSnippet, address, bearer)},
		{"typescript", "TypeScript", fmt.Sprintf(typeScriptSnippet, quote(address), quote(bearer))},
		{"python", "Python", fmt.Sprintf(pythonSnippet, quote(address), quote(bearer))},
	}
}

const (
	goSnippet = `package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
)

func main() {
	req, err := http.NewRequest("GET", %q, nil)
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Authorization", %q)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	fmt.Println(res.Status, string(body), err)
}`
	typeScriptSnippet = `const res = await fetch(%s, {
  headers: { Authorization: %s },
});
console.log(res.status, await res.json());`
	pythonSnippet = `import json, urllib.request

req = urllib.request.Request(
    %s,
    headers={"Authorization": %s},
)
with urllib.request.urlopen(req) as res:
    print(res.status, json.load(res))`
)

// shell is s as one word of a POSIX shell.
func shell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// quote is s as a string of TypeScript and of Python.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // a string is always written
	}
	return string(b)
}

func (v WebhookSecretView) snippets() []snippet {
	secret := straight(v.Secret)
	return []snippet{
		{"go", "Go", fmt.Sprintf(goReceiver, secret)},
		{"typescript", "TypeScript", fmt.Sprintf(typeScriptReceiver, quote(secret))},
		{"python", "Python", fmt.Sprintf(pythonReceiver, quote(secret))},
	}
}

// Sample receivers that verify signatures with the Standard Webhooks libraries
// (standardwebhooks.com) and answer the handshake.
const (
	goReceiver = `// go get github.com/standard-webhooks/standard-webhooks/libraries
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const secret = %q

func main() {
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || wh.Verify(body, r.Header) != nil {
			http.Error(w, "the signature is wrong", http.StatusUnauthorized)
			return
		}
		var event struct{ EventID, Type, Challenge string }
		if err := json.Unmarshal(body, &event); err != nil {
			http.Error(w, "this is not JSON", http.StatusBadRequest)
			return
		}
		if event.Type == "webhook.verification" {
			json.NewEncoder(w).Encode(map[string]string{
				"challenge": event.Challenge, "signature": sign(event.Challenge),
			})
			return
		}
		// An event can arrive more than once. Deduplicate by its ID.
		log.Println(event.Type, event.EventID)
	})
	log.Fatal(http.ListenAndServe(":8000", nil))
}

// sign proves that this receiver knows the secret.
func sign(challenge string) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		log.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(challenge))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}`
	typeScriptReceiver = `// npm install standardwebhooks
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const secret = %s;
const wh = new Webhook(secret);

// sign proves that this receiver knows the secret.
function sign(challenge: string): string {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  return "v1," + createHmac("sha256", key).update(challenge).digest("base64");
}

createServer(async (req, res) => {
  const parts: Buffer[] = [];
  for await (const part of req) parts.push(part);
  const body = Buffer.concat(parts).toString("utf8");
  let event: any;
  try {
    event = wh.verify(body, req.headers as Record<string, string>);
  } catch {
    res.writeHead(401).end("the signature is wrong");
    return;
  }
  if (event.type === "webhook.verification") {
    const { challenge } = event;
    res.end(JSON.stringify({ challenge, signature: sign(challenge) }));
    return;
  }
  // An event can arrive more than once. Deduplicate by its ID.
  console.log(event.type, event.eventId);
  res.end();
}).listen(8000);`
	pythonReceiver = `# pip install standardwebhooks
import base64
import hashlib
import hmac
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

secret = %s
wh = Webhook(secret)


def sign(challenge):
    """Proves that this receiver knows the secret."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.new(key, challenge.encode(), hashlib.sha256)
    return "v1," + base64.b64encode(mac.digest()).decode()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            event = wh.verify(body, dict(self.headers))
        except WebhookVerificationError:
            self.send_error(401, "the signature is wrong")
            return
        answer = {}
        if event["type"] == "webhook.verification":
            challenge = event["challenge"]
            answer = {"challenge": challenge, "signature": sign(challenge)}
        else:
            # An event can arrive more than once. Deduplicate by its ID.
            print(event["type"], event["eventId"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())


ThreadingHTTPServer(("", 8000), Receiver).serve_forever()`
)
