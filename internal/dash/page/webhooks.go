package page

import (
	"fmt"
	"slices"
	"time"
)

// WebhooksView is a page of the list of webhook endpoints.
type WebhooksView struct {
	Webhooks []Webhook
	More     string // where the next page is; "": this is the last
	Change   bool   // the person may register endpoints
}

// Webhook is an endpoint and how it is doing.
type Webhook struct {
	ID          string
	URL         string
	Description string
	Status      string   // as the API says it: "pending", "active"
	Events      []string // patterns
	Succeeded   int      // attempts of the last day
	Failed      int
	LastSuccess time.Time // when the hour of it began; zero: none within a week
	LastFailure time.Time
}

// health says what the attempts of the last day came to.
func (w Webhook) health() string {
	switch all := w.Succeeded + w.Failed; {
	case all == 0:
		return "No attempts"
	case w.Failed == 0:
		return count(all, "attempt", "attempts") + ", all succeeded"
	case w.Succeeded == 0:
		return count(all, "attempt", "attempts") + ", all failed"
	default:
		return fmt.Sprintf("%d of %d attempts failed", w.Failed, all)
	}
}

// ill tells whether more than one attempt in ten or so failed.
func (w Webhook) ill() bool { return w.Failed > w.Succeeded/10 }

// WebhookFormView is the form that registers an endpoint, or changes one.
type WebhookFormView struct {
	ID          string // of the one to change; "": a new one
	URL         Field
	Description Field
	Events      []EventChoice
	EventsError string
	Ordered     bool

	Devices      []DeviceChoice
	DevicesError string
	Headers      Field // a line for each: "X-Tenant: acme"
	InFlight     Field
	V1a          bool

	Problem string // what is wrong with the whole; "": nothing
}

// DeviceChoice is a device whose events a webhook may get.
type DeviceChoice struct {
	ID     string
	Name   string
	Chosen bool
}

// detailed tells whether something of the details is chosen, or wrong.
func (v WebhookFormView) detailed() bool {
	wrong := v.DevicesError + v.Headers.Error + v.InFlight.Error
	return wrong != "" || v.V1a || v.Headers.Value != "" || slices.ContainsFunc(v.Devices, func(d DeviceChoice) bool { return d.Chosen })
}

// EventChoice is a kind of events, or a family of them.
type EventChoice struct {
	Pattern string // "message.*"
	Text    string // when it happens, as a sentence
	Chosen  bool
}

func (v WebhookFormView) faults() []fault {
	return faults(fault{"url", v.URL.Error}, fault{"description", v.Description.Error}, fault{"events", v.EventsError},
		fault{"devices", v.DevicesError}, fault{"headers", v.Headers.Error}, fault{"inFlight", v.InFlight.Error})
}

func (v WebhookFormView) action() string {
	if v.ID == "" {
		return "/webhooks"
	}
	return path("webhooks", v.ID)
}

func (v WebhookFormView) title() string {
	if v.ID == "" {
		return "Add a webhook"
	}
	return "Edit webhook"
}

// WebhookSecretView is the secret of an endpoint, on the one page that shows it.
type WebhookSecretView struct {
	ID     string
	URL    string
	Secret string
	Made   bool      // the endpoint is new
	Old    time.Time // until when the secret before this one signs too; zero: there is none
}

func (v WebhookSecretView) title() string {
	if v.Made {
		return "Your new webhook"
	}
	return "Signing secret"
}

func (v WebhookSecretView) snippets() []snippet {
	secret := straight(v.Secret)
	return []snippet{
		{"go", "Go", fmt.Sprintf(goReceiver, secret)},
		{"typescript", "TypeScript", fmt.Sprintf(typeScriptReceiver, quote(secret))},
		{"python", "Python", fmt.Sprintf(pythonReceiver, quote(secret))},
	}
}

// Receivers that check the signature with the libraries of Standard Webhooks
// (standardwebhooks.com), and answer the handshake.
const (
	goReceiver = `// go get github.com/standard-webhooks/standard-webhooks/libraries
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	wh, err := standardwebhooks.NewWebhook(%q)
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
			json.NewEncoder(w).Encode(map[string]string{"challenge": event.Challenge})
			return
		}
		// An event can arrive more than once. Deduplicate by its ID.
		log.Println(event.Type, event.EventID)
	})
	log.Fatal(http.ListenAndServe(":8000", nil))
}`
	typeScriptReceiver = `// npm install standardwebhooks
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const wh = new Webhook(%s);

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
    res.end(JSON.stringify({ challenge: event.challenge }));
    return;
  }
  // An event can arrive more than once. Deduplicate by its ID.
  console.log(event.type, event.eventId);
  res.end();
}).listen(8000);`
	pythonReceiver = `# pip install standardwebhooks
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

wh = Webhook(%s)


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
            answer = {"challenge": event["challenge"]}
        else:
            # An event can arrive more than once. Deduplicate by its ID.
            print(event["type"], event["eventId"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())


ThreadingHTTPServer(("", 8000), Receiver).serve_forever()`
)

// WebhookRevealView is the form before a secret is shown.
type WebhookRevealView struct {
	ID       string
	Password Field
	Again    Again
}
