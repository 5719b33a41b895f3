package access_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"testing"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/migrated"
)

// unchecked lists the exported methods that check no scope or role, each with its
// reason. A method that is not listed must refuse every caller without rights.
func unchecked() map[string]string {
	const (
		engine  = "the session engine's: it does what somebody with the rights asked for"
		upkeep  = "the server's own: it runs without anybody's request"
		linkURL = "the token of the link page, with that of its browser, allows seeing it"
		joinURL = "the token of the link allows using it; it is sent to one mailbox or shown once"
		setUp   = "the token of the set-up link makes its holder the owner; it is shown in the operator's terminal"
		signIn  = "it is the sign-in: it finds out who somebody is, and counts the attempts"
		browser = "the token of a browser's login session is the proof of that session"
		fact    = "a fact about the server that everybody may know"
	)
	return map[string]string{
		"gateway.Keys.Authenticate":        signIn,
		"gateway.Keys.Me":                  "every key of a plan with the API may read what it is",
		"gateway.Keys.Watch":               "every caller may wait for the end of its own key",
		"gateway.LinkPages.Answer":         linkURL,
		"gateway.LinkPages.Bind":           linkURL,
		"gateway.LinkPages.Compared":       linkURL,
		"gateway.LinkPages.Get":            linkURL,
		"gateway.LinkPages.Watch":          linkURL,
		"gateway.Maintenance.IndexWords":   upkeep,
		"gateway.Maintenance.RemoveOld":    upkeep,
		"gateway.Maintenance.Run":          upkeep,
		"gateway.Media.OpenLink":           "the signature of the link allows reading one file",
		"gateway.SandboxPhones.On":         fact,
		"gateway.Sessions.Book":            engine,
		"gateway.Sessions.ChatOf":          engine,
		"gateway.Sessions.Confirm":         engine,
		"gateway.Sessions.CodeCompared":    engine,
		"gateway.Sessions.CompareCode":     engine,
		"gateway.Sessions.Credential":      engine,
		"gateway.Sessions.EndLink":         engine,
		"gateway.Sessions.ForgetPasskey":   engine,
		"gateway.Sessions.WantPasskey":     engine,
		"gateway.Sessions.Linked":          engine,
		"gateway.Sessions.ForgetChecks":    engine,
		"gateway.Sessions.GroupsListed":    engine,
		"gateway.Sessions.Known":           engine,
		"gateway.Sessions.Presence":        engine,
		"gateway.Sessions.PhoneSeen":       engine,
		"gateway.Sessions.ReportUnseen":    engine,
		"gateway.Sessions.AddForm":         engine,
		"gateway.Sessions.NoteChannels":    engine,
		"gateway.Sessions.UnnamedChannels": engine,
		"gateway.Sessions.LiftLimits":      engine,
		"gateway.Sessions.ListGroups":      engine,
		"gateway.Sessions.NoteGroup":       engine,
		"gateway.Sessions.OpenLink":        engine,
		"gateway.Sessions.OpenSource":      engine,
		"gateway.Sessions.ProxyOf":         engine,
		"gateway.Sessions.Quoted":          engine,
		"gateway.Sessions.Receive":         engine,
		"gateway.Sessions.Requests":        engine,
		"gateway.Sessions.History":         engine,
		"gateway.Sessions.RecordHistory":   engine,
		"gateway.Sessions.Scanned":         engine,
		"gateway.Sessions.SealSource":      engine,
		"gateway.Sessions.SetDisplayName":  engine,
		"gateway.Sessions.SetNewChats":     engine,
		"gateway.Sessions.SetBook":         engine,
		"gateway.Sessions.SetChats":        engine,
		"gateway.Sessions.SetLabels":       engine,
		"gateway.Sessions.Identify":        engine,
		"gateway.Sessions.SetState":        engine,
		"gateway.Sessions.ShowCode":        engine,
		"gateway.Sessions.ReadElsewhere":   engine,
		"gateway.Sessions.Starred":         engine,
		"gateway.Sessions.TidyContacts":    engine,
		"gateway.Sessions.Unlinked":        engine,
		"gateway.Sessions.WatchLink":       engine,

		"people.Identities.SignIn":          signIn,
		"people.Identities.TakeSignOn":      signIn,
		"people.Invitations.Get":            joinURL,
		"people.Invitations.Join":           joinURL,
		"people.Invitations.JoinByIdentity": joinURL,
		"people.PasswordLinks.ByMail":       "the link is sent only to the mailbox of the account",
		"people.PasswordLinks.Forgot":       signIn,
		"people.SecondFactors.PasskeysOff":  fact,
		"people.SignIns.Create":             browser,
		"people.SignIns.End":                browser,
		"people.SignIns.Get":                browser,
		"people.SignIns.Update":             browser,
		"people.Users.CheckSetUp":           setUp,
		"people.Users.Confirm":              "a member of any role may prove who they are; it counts the attempts",
		"people.Users.IsSetUpOpen":          setUp,
		"people.Users.SetUp":                setUp,
		"people.Users.SignIn":               signIn,
	}
}

const workspace = postern.WorkspaceID("ws_1")

// powerless are the values that stand for somebody without rights, by their type,
// each with the reasons that a refusal may have.
type powerless struct {
	what string
	who  any
	want []postern.Reason
}

func everybodyWithoutRights() []powerless {
	member := postern.Member{UserID: "usr_1", WorkspaceID: workspace, Email: "bob@example.com"}
	key := postern.Key{ID: "key_1", WorkspaceID: workspace}
	return []powerless{
		{"nobody", access.Caller{}, []postern.Reason{postern.Unauthorized, postern.MissingScope}},
		{
			"a key without scopes",
			access.Caller{Key: key, Plan: postern.Plan{API: true}},
			[]postern.Reason{postern.MissingScope},
		},
		{
			"a member without a role",
			access.Caller{Key: key, Plan: postern.Plan{API: true}, Member: member},
			[]postern.Reason{postern.MissingScope, postern.Unauthorized},
		},
		{"nobody", access.Actor{}, []postern.Reason{postern.NotFound}},
		{
			"a member without a role",
			access.Actor{Member: member},
			[]postern.Reason{postern.MissingScope, postern.NotFound},
		},
		{"a browser without a session", access.Self{}, []postern.Reason{postern.Unauthorized}},
		{"a browser without a password", access.Pending{}, []postern.Reason{postern.Unauthorized}},
	}
}

// Every method that works for somebody refuses everybody without rights, before it
// asks the database: that is closed here, so that whatever gets through fails with
// another reason.
func TestEveryMethodChecksWhoAsks(t *testing.T) {
	t.Parallel()
	g, p := overAClosedStore(t)
	w := walk{ctx: t.Context(), listed: unchecked()}
	w.all("gateway", g)
	w.all("people", p)
	w.end()
	for _, problem := range w.problems {
		t.Error(problem)
	}
	if w.called < 100 {
		t.Errorf("only %d methods were called; there are more than a hundred", w.called)
	}
}

// overAClosedStore is both packages over a database that answers nothing.
func overAClosedStore(t *testing.T) (*gateway.Gateway, *people.People) {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Dir: migrated.Dir(t, "")})
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.NewBox(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	p := people.New(people.Options{DB: db, Box: box, BaseURL: "https://example.com", PasswordMemory: 64})
	g := gateway.New(gateway.Options{
		DB: db, Box: box, Log: slog.New(slog.DiscardHandler), CheckURL: func(string) error { return nil },
		Confirm: p.Users.Confirm,
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return g, p
}

// walk calls the exported methods of all nouns with everybody without rights.
type walk struct {
	ctx      context.Context
	listed   map[string]string
	seen     []string
	called   int
	problems []string

	visit func(name string, m reflect.Value) // instead of calling a method with everybody without rights
}

func (w *walk) say(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// all walks the methods of a package's nouns, and those of what holds them.
func (w *walk) all(pkg string, root any) {
	v := reflect.ValueOf(root)
	w.noun(pkg, v)
	for i := range v.Elem().NumField() {
		if f := v.Elem().Type().Field(i); f.IsExported() {
			w.noun(pkg+"."+f.Name, v.Elem().Field(i).Addr())
		}
	}
}

func (w *walk) noun(name string, v reflect.Value) {
	for i := range v.NumMethod() {
		method := name + "." + v.Type().Method(i).Name
		w.seen = append(w.seen, method)
		switch {
		case w.listed[method] != "":
		case w.visit != nil:
			w.visit(method, v.Method(i))
		default:
			w.method(method, v.Method(i))
		}
	}
}

// method calls one method for each value that it can be called with.
func (w *walk) method(name string, m reflect.Value) {
	w.called++
	who := false
	for _, p := range everybodyWithoutRights() {
		args, ok := w.args(m.Type(), p.who)
		if !ok {
			continue
		}
		who = true
		if err := call(m, args); !slices.Contains(p.want, reasonOf(err)) {
			w.say("%s for %s: %v, want one of %v", name, p.what, err, p.want)
		}
	}
	if !who {
		w.say(
			"%s takes nobody whose rights it could check: pass it one of access.Caller, Actor, Self "+
				"and Pending, or list it here with its reason",
			name,
		)
	}
}

// args are the arguments of a call for somebody; ok is false when the method takes
// somebody else.
func (w *walk) args(m reflect.Type, who any) (args []reflect.Value, ok bool) {
	for i := range m.NumIn() {
		switch in := m.In(i); in {
		case reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(w.ctx))
		case reflect.TypeFor[postern.WorkspaceID]():
			args = append(args, reflect.ValueOf(workspace))
		case reflect.TypeOf(who):
			args, ok = append(args, reflect.ValueOf(who)), true
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	return args, ok
}

// call gives the error of a call, or what it panicked with as one.
func call(m reflect.Value, args []reflect.Value) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	out := m.Call(args)
	if len(out) > 0 {
		err, _ = out[len(out)-1].Interface().(error)
	}
	return err
}

func reasonOf(err error) postern.Reason {
	if err == nil {
		return ""
	}
	return postern.ReasonOf(err)
}

// end compares the list with the methods that there are.
func (w *walk) end() {
	for name := range w.listed {
		if !slices.Contains(w.seen, name) {
			w.say("%s is listed and does not exist", name)
		}
	}
}

// sample has a method of each kind that the walk must tell apart.
type sample struct{ Noun noun }

type noun struct{}

func (noun) Checked(_ context.Context, c access.Caller) error { return c.Permit(postern.DevicesRead) }

func (noun) Listed() {}

func (noun) Unchecked(context.Context, access.Caller) (int, error) { return 0, nil }

func (noun) ForNobody(context.Context, postern.WorkspaceID) error { return nil }

func (noun) Late(_ context.Context, c access.Caller, device *postern.Device) error {
	device.Name = "x" // before the check
	return c.Permit(postern.DevicesWrite)
}

func (*noun) ThroughAPointer(context.Context, access.Self) error { return nil }

func TestTheWalkFindsMethodsWithoutACheck(t *testing.T) {
	t.Parallel()
	w := walk{
		ctx:    t.Context(),
		listed: map[string]string{"sample.Noun.Listed": "a reason", "sample.Noun.Gone": "a reason"},
	}
	w.all("sample", &sample{})
	w.end()
	want := map[string]int{"Unchecked": 3, "ForNobody": 1, "Late": 3, "ThroughAPointer": 1, "Gone": 1}
	got := map[string]int{}
	for _, problem := range w.problems {
		for name := range want {
			if bytes.HasPrefix([]byte(problem), []byte("sample.Noun."+name+" ")) {
				got[name]++
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || len(w.problems) != 9 {
		t.Errorf("the walk found %v, want %v; it says\n%q", got, want, w.problems)
	}
}
