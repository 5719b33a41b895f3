package browsertest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "postern/internal/dash/page"

	"github.com/a-h/templ"
)

var preview = flag.String("preview", "", "write every page with example data into this directory")

// sample is one page with example data.
type sample struct {
	name string
	page templ.Component
}

func samples() []sample {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	f := func(title, current string) Frame {
		return Frame{
			Title: title, Current: current, Email: "ada@example.com", Role: "Owner",
			Workspace: Workspace{"ws_1", "Acme"},
			Workspaces: []Workspace{
				{"ws_1", "Acme"}, {"ws_2", "Acme staging"}, {"ws_3", "A workspace with quite a long name that somebody gave it"},
			},
		}
	}
	said := f("API keys", "/keys")
	said.Notice = "The key “ci” is revoked."
	alone := f("Devices", "/devices")
	alone.Workspaces = alone.Workspaces[:1]
	scopes := []ScopeChoice{
		{"devices:read", "See devices and their state.", true},
		{"devices:write", "Add, link, pause and delete devices.", true},
		{"messages:read", "Read messages.", false},
		{"messages:write", "Send messages.", true},
		{"webhooks:read", "See webhook endpoints and deliveries.", false},
		{"webhooks:write", "Create and change webhook endpoints.", false},
		{"events:read", "Follow the log of events.", false},
		{"usage:read", "See what the plan has left.", false},
	}
	return append(append(webhookSamples(f, at), messageSamples(f, at)...), []sample{
		{"setup", SetUp(SetUpView{Token: "t", PasswordHint: "At least 12 characters."})},
		{
			"setup-refused",
			SetUp(SetUpView{
				Token: "t", Workspace: Field{"Acme", ""}, Email: Field{"ada", "This is not an e-mail address."},
				Password:     Field{"", "The password needs at least 12 characters."},
				PasswordHint: "At least 12 characters.",
			}),
		},
		{"signin", SignIn(SignInView{Next: "/devices"})},
		{"signin-mail", SignIn(SignInView{Mail: true, SignOn: "Example"})},
		{"forgotten", Forgotten(ForgottenView{})},
		{
			"forgotten-wrong", Forgotten(ForgottenView{Email: Field{
				"ada",
				"Enter an email address such as ada@example.com.",
			}}),
		},
		{"forgotten-sent", Forgotten(ForgottenView{Sent: "ada@example.com"})},
		{"signin-refused", SignIn(SignInView{Email: "ada@example.com", Problem: "The e-mail or the password is wrong."})},
		{
			"problem",
			Problem(ProblemView{
				Status: 404, Title: "This page does not exist",
				Text: "The address may be wrong, or what was here is gone.",
				Ref:  "req_01JD8Z3NDEKTSV4RRFFQ69G5FA",
			}),
		},
		{"device-settings", DeviceSettings(f("Settings of a device", "/devices"), DeviceSettingsView{
			ID: "dev_1", Name: Field{Value: "Support"}, PerMinute: Field{"many", "Enter a number from 1 to 1,000, or nothing."},
			Media: "lazy", Problem: "Nothing was changed.",
			Receives: []ReceiveChoice{
				{"direct", "Direct chats", "Messages of single people.", true}, {"groups", "Groups", "Messages in groups.", false},
			},
		})},
		{"overview", Overview(f("Overview", "/"), OverviewView{
			Board: BoardView{
				Most: 2,
				Devices: []DeviceTile{
					{
						ID: "dev_1", Name: "Support", Status: "disconnected", Why: "The network closed the connection.",
						Since: at, Waiting: "12 messages", WaitingSince: at, In: at, Out: at,
					},
					{ID: "dev_2", Name: "Sales", Status: "connected", Since: at},
				},
				Webhooks: []HookTile{
					{
						ID: "whk_1", Name: "https://hooks.example.com/orders", Status: "active", FailingSince: at,
						Rate: "12.5% of 1,204 attempts", Bad: true, Success: at, Failure: at, Waiting: "12 events",
					},
					{ID: "whk_2", Name: "Billing", Status: "disabled"},
				},
			},
			Steps: []Step{
				{"Create workspace", "It holds your devices, keys and webhooks.", "", true},
				{"Create an API key", "Your program uses it to call Postern.", "/keys/new", true},
				{"Link a device", "Scan a code with the phone that shall send and receive.", "/devices", false},
				{"Send the first message", "One call, and it is on its way.", "/docs", false},
				{"Receive a webhook", "Postern posts what comes in to your program, signed.", "/docs", false},
			},
			Tiles: []Tile{
				{"Devices connected", "2", "of 3 linked"},
				{"Messages this month", "12,480", "of 50,000 in the plan"},
				{"Deliveries, last hour", "99.8%", "2 wait for another try"},
				{"API keys", "4", ""},
			},
			Meters: []Meter{
				{"Messages this month", "12,480 of 50,000", 12_480, 50_000, ""},
				{"Linked devices", "3 of 3", 3, 3, "Limit reached."},
			},
			Usage: "/usage",
			Charts: []Chart{
				chartSample("attempts", at, time.Hour), chartSample("days", at, 24*time.Hour),
				{ID: "empty", Title: "Delivery rate", Gist: "The message was not sent."},
			},
			Spans: []Choice{{"/", "Last 24 hours"}, {"/?span=month", "Last 30 days"}}, Span: "/",
		})},
		{"usage", Usage(f("Plan and usage", "/"), UsageView{
			Plan: "Growth", Month: "November 2026", Ends: at.AddDate(0, 0, 10),
			Meters: []Meter{{"Messages this month", "12 of 100", 12, 100, ""}},
			Limits: []Tile{
				{"Messages sent in a month", "100", "UTC calendar months"},
				{"Event retention", "30 days", ""},
			},
			Outcome: []Tile{{"Messages", "A message more is refused.", ""}},
		})},
		{"requests-none", Requests(f("API requests", "/keys"), RequestsView{})},
		{"requests", Requests(f("API requests", "/keys"), RequestsView{
			Text: "messages", Outcome: "refused", More: "/keys/requests?before=2-3", Requests: []APIRequest{
				{"req_01JD8Z3NDEKTSV4RRFFQ69G5FA", "POST", "/v1/messages", 202, "", 4, "Orders", "192.0.2.7", at},
				{"req_01JD8Z3NDEKTSV4RRFFQ69G5FB", "POST", "/v1/messages", 422, "INVALID_RECIPIENT", 2, "Orders", "192.0.2.7", at},
			},
		})},
		{"design", Design(f("Design", "/"))},
		{"events-none", Events(f("Events", "/events"), EventsView{Newer: "/events/new", Newest: "/events"})},
		{"events", Events(f("Events", "/events"), EventsView{
			Type: "message.*", Types: []string{"message.*", "message.sent"}, Devices: []Choice{{"dev_1", "Support"}},
			Newer: "/events/new?after=x", Newest: "/events", More: "/events?after=x",
			Events: []Event{
				{"evt_1", "message.sent", at, Choice{"dev_1", strings.Repeat("Support", 30)}, "msg_1", ""},
				{"evt_2", "device.connected", at, Choice{"dev_1", "דלפק הקבלה"}, "", ""},
			},
		})},
		{
			"device-health",
			DeviceHealth(f("Health history", "/devices"), DeviceHealthView{
				Device: Device{ID: "dev_1", Name: "Support"},
				Health: Health{
					[]HealthChange{
						{"connected", "The device connected.", "", at},
						{"disconnected", "The connection was lost. Postern is reconnecting.", "The connection to the network ended.", at},
					},
					"/devices/dev_1/health?after=x",
				},
			}),
		},
		{
			"workspaces",
			Workspaces(WorkspacesView{
				Workspaces: []Workspace{{"ws_1", "Acme"}, {"ws_2", "Acme staging"}}, More: "/workspaces?after=x",
				Stopped: "Acme",
			}),
		},
		{
			"device-removal",
			Removal(f("Delete a device", "/devices"), RemovalView{
				Device: Device{ID: "dev_1", Name: "Support", Number: "+15550001111"}, Linked: true,
				Password: Field{"", "This password is not correct."},
			}),
		},
		{"devices-none", Devices(alone, DevicesView{})},
		{"devices", Devices(f(
			"Devices", "/devices",
		), DevicesView{More: "/devices?after=x", Live: "/devices", Devices: []Device{
			{ID: "dev_1", Name: "Support", Number: "+15550001111", Status: "connected", LastSeen: at},
			{
				ID: "dev_2", Name: "Sales", Number: "+4915550002222", Status: "restricted", LastSeen: at.Add(-time.Hour),
				Reason: "The network restricts the account for some time.", Until: at.Add(time.Hour),
			},
			{
				ID: "dev_3", Name: "A device with a name so long that it takes more than one line in its cell",
				Status: "linking", Mode: "sandbox",
			},
			{
				ID: "dev_4", Name: "Old phone", Number: "+15550003333", Status: "logged_out", LastSeen: at.AddDate(0, -2, 0),
				Reason: "The link was removed on the phone, or by the network.",
			},
			{
				ID: "dev_5", Name: "Warehouse", Number: "+15550004444", Status: "paused", LastSeen: at,
				Reason: "The plan allows fewer linked devices than the workspace has.",
			},
			{ID: "dev_6", Name: "Marketing", Number: "+15550005555", Status: "banned", LastSeen: at},
			{ID: "dev_7", Name: "دعم العملاء", Number: "+15550006666", Status: "connecting", LastSeen: at},
		}})},
		{"keys-none", Keys(f("API keys", "/keys"), KeysView{Change: true})},
		{"keys", Keys(said, KeysView{Change: true, More: "/keys?after=x", Keys: []Key{
			{
				"key_1", "Shop backend", "pst_…Ab3d", "production",
				[]string{"messages:write", "devices:read"},
				nil,
				at, at,
				time.Time{},
				"active",
			},
			{
				"key_2", "Shop backend", "pst_…9xQz", "production",
				[]string{"messages:write"},
				[]Choice{{"dev_1", "Support"}, {"dev_7", "دعم العملاء"}},
				at, at,
				at.Add(time.Hour),
				"expiring",
			},
			{"key_3", "ci", "pst_…77aa", "staging", []string{"devices:read"}, nil, at, time.Time{}, time.Time{}, "revoked"},
			{
				"key_4", "A key with quite a long name that somebody gave it for a reason", "pst_…0000", "",
				[]string{"devices:read", "devices:write", "messages:read"},
				nil,
				at,
				time.Time{},
				at, "expired",
			},
		}})},
		{
			"key-form",
			KeyForm(f("Create an API key", "/keys"), KeyFormView{
				Environment: Field{"production", ""}, Scopes: scopes, Expiry: "2160h",
			}),
		},
		{
			"key-form-refused",
			KeyForm(f("Create an API key", "/keys"), KeyFormView{
				Name: Field{"", "The key needs a name."}, Scopes: scopes, ScopesError: "Choose at least one.",
			}),
		},
		{
			"key-shown",
			KeyShown(f("Your new key", "/keys"), KeyShownView{
				Name: "Shop backend", Secret: "pst_0123456789abcdefghijklmnopqrstuvABCDEF",
				BaseURL: "https://gateway.example.com",
				Old:     at,
			}),
		},
		{"second", Second(SecondView{App: true, Passkey: "{}", Recovery: 9})},
		{"second-app", Second(SecondView{App: true, Code: Field{Error: "This code is wrong."}})},
		{
			"sure",
			Sure(f("Two-step authentication", "/account"),
				SureView{Password: Field{Error: "This password is not correct."}}),
		},
		{
			"factors",
			Factors(f("Two-step authentication", "/account"), FactorsView{
				App: true, Recovery: 9, Offer: "{}",
				Passkeys: []Passkey{{"abc", "Laptop", at, time.Time{}}, {"def", "Phone", at, at}},
			}),
		},
		{"factors-none", Factors(f("Two-step authentication", "/account"), FactorsView{Off: "Passkeys need a name."})},
		{
			"app-secret",
			AppSecret(f("Set up an authenticator app", "/account"), AppView{
				Picture: "<svg></svg>", Secret: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
			}),
		},
		{
			"recovery-codes",
			RecoveryCodes(f("Recovery codes", "/account"), RecoveryView{
				Codes: "abcde-fghij\nklmno-pqrst", Added: "The app is set up.",
			}),
		},
		{
			"people",
			People(f("People", "/people"), PeopleView{
				Role: "viewer", Roles: []Choice{{"admin", "Admin"}, {"viewer", "Viewer"}},
				Members: []Person{
					{"usr_1", "ada@example.com", "Owner", "owner", at, true, true, 0},
					{"usr_2", "bob@example.com", "Viewer", "viewer", at, false, true, 2},
				},
				Invitations: []Invited{{"inv_1", "eve@example.com", "Viewer", "ada@example.com", at, true}},
			}),
		},
		{
			"people-refused",
			People(f("People", "/people"), PeopleView{
				Email: Field{"eve", "This is not an e-mail address."}, RoleError: "Choose one.",
				Problem: "The invitation was not created.", Roles: []Choice{{"viewer", "Viewer"}},
			}),
		},
		{
			"alerts",
			Alerts(f("Alerts", "/people"), AlertsView{
				Host: "hooks.example.com", FailedAt: at, Failed: Why{What: "The connection failed.", Do: "Check the server."},
				Mail: true, Members: []Told{{"usr_1", "ada@example.com", true}, {"usr_2", "bob@example.com", false}},
			}),
		},
		{
			"alerts-refused",
			Alerts(f("Alerts", "/people"), AlertsView{
				URL: Field{"ftp://example.com", "The URL must start with https://."}, Problem: "Nothing was changed.",
			}),
		},
		{
			"invitation-shown",
			InvitationShown(f("Invitation created", "/people"), InvitationShownView{
				"eve@example.com", "Viewer", "https://gateway.example.com/join/0123456789abcdefghijklmnopqrstuvABCDEF",
				at,
			}),
		},
		{
			"audit",
			Audit(f("Audit log", "/people"), AuditView{
				Kinds: []Choice{{"device", "Devices"}}, More: "/people/audit?after=x",
				Acts: []Act{
					{at, "ada@example.com", "Invited", "eve@example.com as viewer", "203.0.113.7"},
					{at, "The operator", "Created an API key", "ci", ""},
				},
			}),
		},
		{
			"join",
			Join(JoinView{
				Token: "t", Step: "password", Workspace: "Acme", Role: "Viewer", Email: "eve@example.com",
				PasswordHint: "At least 12 characters.",
			}),
		},
		{
			"join-signin",
			Join(JoinView{Token: "t", Step: "signin", Workspace: "Acme", Role: "Viewer", Email: "eve@example.com"}),
		},
		{
			"join-signed-in",
			Join(JoinView{Token: "t", Step: "join", Workspace: "Acme", Role: "Viewer", Email: "eve@example.com"}),
		},
		{
			"join-other",
			Join(JoinView{
				Token: "t", Step: "other", Workspace: "Acme", Role: "Viewer", Email: "eve@example.com",
				Present: "ada@example.com",
			}),
		},
		{
			"password",
			Join(JoinView{
				Token: "t", Email: "eve@example.com", Password: Field{"", "The password needs at least 12 characters."},
			}),
		},
		{
			"account",
			Account(f("Account", "/account"), AccountView{
				PasswordHint: "At least 12 characters.",
				Sessions: []Session{
					{"Firefox on Linux", "203.0.113.7", at, true},
					{"Safari on iPhone", "2001:db8:85a3::8a2e:370:7334", at.Add(-26 * time.Hour), false},
				},
			}),
		},
		{
			"identities",
			Identities(f("Single sign-on", "/account"), IdentitiesView{
				SignOn: "Example",
				Identities: []Identity{{
					"https://login.example.com/realms/staff",
					"8f1f0c1e-7d3c-4f53-9a5c-0a6f0f2d9c11",
					at,
				}},
			}),
		},
		{
			"again",
			Sure(f("Confirm that it is you", "/account"), SureView{
				Next: "/account/identities", Again: Again{None: true, Name: "Example", Href: "/account/again"},
			}),
		},
		{
			"account-refused",
			Account(f("Account", "/account"), AccountView{
				Current: Field{"", "This is not your present password."}, PasswordHint: "At least 12 characters.",
				Sessions: []Session{{"Firefox on Linux", "203.0.113.7", at, true}},
			}),
		},
	}...)
}

// TestPreview writes the pages for people to look at, when it is asked to.
func TestPreview(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		var b bytes.Buffer
		if err := s.page.Render(t.Context(), &b); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if *preview == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(*preview, s.name+".html"), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if *preview == "" {
		return
	}
	if err := os.MkdirAll(filepath.Join(*preview, "assets"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app.css", "inter.woff2", "inter-ext.woff2", "theme.js", "htmx.min.js", "app.js", "icon.svg"} {
		if err := os.WriteFile(filepath.Join(*preview, Asset(name)), asset(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
