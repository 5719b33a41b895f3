package browsertest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	. "postern/internal/dash/page"
	"postern/internal/testkit"

	"github.com/a-h/templ"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// full is a T whose every text is s: strings, lists of two, structs in structs.
func full[T any](s string) T {
	var v T
	fill(reflect.ValueOf(&v).Elem(), s)
	return v
}

func fill(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(500)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), s)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), s)
		}
	default: // components stay nil
	}
}

// hostilePages are all pages, with s wherever a text can be.
func hostilePages(s string) []sample {
	f := full[Frame](s)
	f.Workspace.ID = "another" // so that there is one to switch to
	return append(append(append(hostileWebhooks(f, s), hostileMessages(f, s)...), hostileOperators(f, s)...), []sample{
		{"SetUp", SetUp(full[SetUpView](s))},
		{"SignIn", SignIn(full[SignInView](s))},
		{"Problem", Problem(full[ProblemView](s))},
		{"Device settings", DeviceSettings(f, full[DeviceSettingsView](s))},
		{"Overview", Overview(f, full[OverviewView](s))},
		{"Overview to do", Overview(f, OverviewView{Steps: []Step{{Title: s, Text: s, Href: s}}})},
		{"Usage", Usage(f, full[UsageView](s))},
		{"Design", Design(f)},
		{"Events", Events(f, full[EventsView](s))},
		{"Requests", Requests(f, full[RequestsView](s))},
		{"Requests none", Requests(f, RequestsView{Text: s, Outcome: s, More: s})},
		{"Events none", Events(f, EventsView{Newest: s, More: s})},
		{"NewEvents", NewEvents(full[EventsView](s))},
		{"EventPage", EventPage(f, full[EventView](s))},
		{"EventPage none", EventPage(f, EventView{Event: Event{ID: s, Type: s, JSON: s}, Hooks: true})},
		{"Devices", Devices(f, full[DevicesView](s))},
		{"Devices none", Devices(f, DevicesView{Add: s, More: s})},
		{"OneDevice", OneDevice(f, full[DeviceView](s))},
		{"OneDevice scan", OneDevice(f, deviceAt("scan", s))},
		{"OneDevice enter", OneDevice(f, deviceAt("enter", s))},
		{"OneDevice linked", OneDevice(f, deviceAt("linked", s))},
		{"DeviceHealth", DeviceHealth(f, full[DeviceHealthView](s))},
		{"Workspaces", Workspaces(full[WorkspacesView](s))},
		{"Workspaces none", Workspaces(WorkspacesView{})},
		{"Removal", Removal(f, full[RemovalView](s))},
		{"DeviceForm", DeviceForm(f, full[DeviceFormView](s))},
		{"Phone", Phone(f, full[PhoneView](s))},
		{"Phone poll", Phone(f, PhoneView{Type: "poll", Question: s, Options: s, Problem: s, Messages: filesOf(s)})},
		{"Keys", Keys(f, full[KeysView](s))},
		{"Keys none", Keys(f, KeysView{})},
		{"KeyForm", KeyForm(f, full[KeyFormView](s))},
		{"KeyShown", KeyShown(f, full[KeyShownView](s))},
		{"Account", Account(f, full[AccountView](s))},
		{"Second", Second(full[SecondView](s))},
		{"Sure", Sure(f, full[SureView](s))},
		{"Sure without a password", Sure(f, SureView{Next: s, Again: Again{None: true, Name: s, Href: s}})},
		{"Identities", Identities(f, full[IdentitiesView](s))},
		{"Factors", Factors(f, full[FactorsView](s))},
		{"AppSecret", AppSecret(f, AppView{Picture: "<svg></svg>", Secret: "GEZDGNBV", Code: Field{s, s}})},
		{"RecoveryCodes", RecoveryCodes(f, RecoveryView{Codes: "abcde-fghij", Added: s})},
		{"People", People(f, full[PeopleView](s))},
		{"Alerts", Alerts(f, full[AlertsView](s))},
		{"InvitationShown", InvitationShown(f, full[InvitationShownView](s))},
		{"Audit", Audit(f, full[AuditView](s))},
		{"Audit none", Audit(f, AuditView{More: s})},
		{"Join", Join(full[JoinView](s))},
		{"Forgotten", Forgotten(ForgottenView{Email: Field{s, s}})},
		{"Forgotten, sent", Forgotten(ForgottenView{Sent: s})},
		{"Join sign in", Join(JoinView{Step: "signin", Token: s, Workspace: s, Email: s})},
		{"Join signed in", Join(JoinView{Step: "join", Token: s, Role: s, Email: s})},
		{"Join other", Join(JoinView{Step: "other", Present: s, Email: s})},
	}...)
}

// deviceAt is a device whose link attempt is at a state. The picture is ours: it is
// the one text that is written as it is.
func deviceAt(state, s string) DeviceView {
	v := full[DeviceView](s)
	v.Link.State, v.Link.Picture = state, "<svg></svg>"
	return v
}

func render(t *testing.T, c templ.Component) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func parse(t *testing.T, text string) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

// isolated reports whether text turns nothing around it: it is in a <bdi>, or in a field.
func isolated(n *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if n.DataAtom == atom.Bdi || n.DataAtom == atom.Textarea {
			return true
		}
	}
	return false
}

// turns tells whether s holds a character that turns text around.
func turns(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return r >= 0x202a && r <= 0x202e || r >= 0x2066 &&
			r <= 0x2069
	})
}

// The texts are short: TestMegabyteIsCarried has a long one.
func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]string{
		"script":    `</script><script>alert(1)</script>`,
		"title":     `</title></textarea></option></select></dialog><script>alert(1)</script>`,
		"attribute": `" onmouseover="alert(1)`,
		"single":    `' onmouseover='alert(1)`,
		"url":       `javascript:alert(1)`,
		"url space": " \tjAvA\nscript:alert(1)",
		"data":      `data:text/html,<script>alert(1)</script>`,
		"turned":    "\u202egnp.exe\u2066",
		"long":      strings.Repeat("long ", 1<<6),
		"unbroken":  strings.Repeat("W", 1<<10),
		"bytes":     "\x00\xff\xfe<!--",
		"elsewhere": "//evil.example/",
		"backslash": `/\evil.example`,
		"empty":     "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, p := range hostilePages(s) {
				text := render(t, p.page)
				for n := range parse(t, text).Descendants() {
					judge(t, p.name, n)
				}
			}
		})
	}
}

func TestMegabyteIsCarried(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("<b>", 1<<20/3)
	text := render(t, Devices(full[Frame]("x"), DevicesView{Devices: []Device{{Name: name}}}))
	if !strings.Contains(text, html.EscapeString(name)) {
		t.Error("the name is not in the page in full")
	}
	for n := range parse(t, text).Descendants() {
		judge(t, "Devices", n)
	}
}

// judge reports what must not be in a page.
func judge(t *testing.T, page string, n *html.Node) {
	t.Helper()
	if n.Type == html.TextNode && turns(n.Data) && !isolated(n) {
		t.Errorf("%s: text that turns around stands outside of <bdi>, in <%s>", page, n.Parent.Data)
	}
	if n.Type == html.CommentNode {
		t.Errorf("%s holds a comment", page)
	}
	if n.Type != html.ElementNode {
		return
	}
	switch n.DataAtom {
	case atom.Script:
		if !slices.Contains([]string{Asset("theme.js"), Asset("htmx.min.js"), Asset("app.js")}, attr(n, "src")) ||
			n.FirstChild != nil {
			t.Errorf("%s holds a script that is not ours: %q", page, attr(n, "src"))
		}
	case atom.Style, atom.Iframe, atom.Object, atom.Embed, atom.Base:
		t.Errorf("%s holds <%s>", page, n.Data)
	}
	for _, a := range n.Attr {
		switch {
		case strings.HasPrefix(a.Key, "on"), strings.HasPrefix(a.Key, "hx-on"), a.Key == "style", a.Key == "srcdoc":
			t.Errorf("%s: <%s> has the attribute %s", page, n.Data, a.Key)
		case turns(a.Val) && a.Key != "value" && a.Key != "data-label" && a.Key != "data-options":
			t.Errorf("%s: <%s %s> turns text around", page, n.Data, a.Key)
		case a.Key == "href" && strings.HasPrefix(a.Val, "https://www.openstreetmap.org/?mlat="):
			if attr(n, "rel") != "noopener noreferrer" || strings.ContainsAny(a.Val, " <>'") {
				t.Errorf("%s: the link %.60q tells where it comes from", page, a.Val)
			}
		case slices.Contains([]string{"href", "action", "src", "formaction", "hx-get", "hx-post"}, a.Key):
			u, err := url.Parse(strings.TrimSpace(a.Val))
			if err != nil || u.Host != "" || u.Scheme != "" || strings.HasPrefix(a.Val, "//") ||
				strings.Contains(a.Val, `\`) {
				t.Errorf("%s: <%s %s=%.60q> leaves this server", page, n.Data, a.Key, a.Val)
			}
		}
	}
}

// Every page is complete for those who do not see it: fields have labels,
// tables say what they hold, ids are there once and lead somewhere.
func TestPagesCanBeRead(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			ids, labels := map[string]bool{}, map[string]bool{}
			doc := parse(t, render(t, s.page))
			for n := range doc.Descendants() {
				if id := attr(n, "id"); id != "" {
					if ids[id] {
						t.Errorf("the id %q is there twice", id)
					}
					ids[id] = true
				}
				labels[attr(n, "for")] = true
			}
			focused, headings := 0, 0
			for n := range doc.Descendants() {
				readable(t, n, ids, labels)
				if has(n, "autofocus") {
					focused++
				}
				if n.DataAtom == atom.H1 {
					headings++
				}
			}
			if focused > 1 || headings != 1 {
				t.Errorf(
					"%d fields take the focus and there are %d first headings, want at most 1 and exactly 1", focused,
					headings,
				)
			}
		})
	}
}

func readable(t *testing.T, n *html.Node, ids, labels map[string]bool) {
	t.Helper()
	switch n.DataAtom {
	case atom.Input, atom.Select, atom.Textarea:
		wrapped := false
		for p := n.Parent; p != nil; p = p.Parent {
			wrapped = wrapped || p.DataAtom == atom.Label
		}
		if attr(n, "type") != "hidden" && !wrapped && attr(n, "aria-label") == "" && !labels[attr(n, "id")] {
			t.Errorf("the field %q has no label", attr(n, "name"))
		}
	case atom.Table:
		if n.FirstChild == nil || n.FirstChild.DataAtom != atom.Caption {
			t.Error("a table has no caption")
		}
	case atom.Th:
		if attr(n, "scope") == "" {
			t.Error("a <th> has no scope")
		}
	}
	for _, a := range n.Attr {
		switch a.Key {
		case "aria-labelledby", "aria-describedby", "commandfor", "data-copies", "data-shows", "for":
			for id := range strings.FieldsSeq(a.Val) {
				if !ids[id] {
					t.Errorf("<%s %s=%q> leads nowhere", n.Data, a.Key, id)
				}
			}
		case "href":
			if id, local := strings.CutPrefix(a.Val, "#"); local && !ids[id] {
				t.Errorf("<a href=%q> leads nowhere", a.Val)
			}
		}
	}
}

// maxFirstLoad bounds what a browser fetches for its first page: the page as it is, which is never compressed, and the
// files, which are.
const maxFirstLoad = 100_000

func TestFirstLoadIsSmall(t *testing.T) {
	t.Parallel()
	shared, k := 0, testkit.Start(t)
	for _, name := range []string{"app.css", "inter.woff2", "theme.js", "htmx.min.js", "app.js", "icon.svg"} {
		n := transferred(t, k.URL()+Asset(name))
		t.Logf("%-12s %6d bytes compressed", name, n)
		shared += n
	}
	for _, s := range samples() {
		n := len(render(t, s.page))
		t.Logf("%-16s %6d bytes, first load %d", s.name, n, shared+n)
		if shared+n > maxFirstLoad {
			t.Errorf("the first load of %s is %d bytes, want at most %d", s.name, shared+n, maxFirstLoad)
		}
	}
}

// asset is a file of the dashboard as it is served.
func asset(name string) []byte {
	r := httptest.NewRequest(http.MethodGet, Asset(name), nil)
	w := httptest.NewRecorder()
	Assets().ServeHTTP(w, r)
	return w.Body.Bytes()
}

// transferred is how many bytes a browser gets for a file.
func transferred(t *testing.T, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "br")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, a.Body)
	if closed := a.Body.Close(); err != nil || closed != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("GET %s = %d: %v, %v", url, a.StatusCode, err, closed)
	}
	return int(n)
}

func TestPasswordsAreNotShownAgain(t *testing.T) {
	t.Parallel()
	const secret = "correct horse battery"
	for _, p := range []templ.Component{
		SetUp(SetUpView{Password: Field{Value: secret, Error: "no"}}),
		Join(JoinView{Password: Field{Value: secret, Error: "no"}}),
		Account(Frame{}, AccountView{Current: Field{Value: secret, Error: "no"}, Password: Field{Value: secret}}),
	} {
		if text := render(t, p); strings.Contains(text, secret) {
			t.Errorf("the password is in the page: %s", text)
		}
	}
}
