package access_test

import (
	"cmp"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"postern/internal/access"
	"postern/internal/postern"
)

var update = flag.Bool("update", false, "write testdata/rights.txt anew")

// The table of who may do what is in testdata/rights.txt, found out by calling each
// method: a check for another scope or role shows there.
func TestRightsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	g, p := overAClosedStore(t)
	w := walk{ctx: t.Context(), listed: unchecked()}
	var lines []string
	w.visit = func(name string, m reflect.Value) { lines = append(lines, name+": "+w.rights(m)) }
	w.all("gateway", g)
	w.all("people", p)
	slices.Sort(lines)
	got, path := strings.Join(lines, "\n")+"\n", "testdata/rights.txt"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Split(string(want), "\n")
	for _, line := range append(lines, old...) {
		if slices.Contains(lines, line) != slices.Contains(old, line) && line != "" {
			t.Errorf("%q is in one of the table and the code; look why, and run the test with -update", line)
		}
	}
}

// rights names what a method asks for.
func (w *walk) rights(m reflect.Value) string {
	for i := range m.Type().NumIn() {
		switch m.Type().In(i) {
		case reflect.TypeFor[access.Caller]():
			return w.scopes(m)
		case reflect.TypeFor[access.Actor]():
			return w.role(m)
		case reflect.TypeFor[access.Self]():
			if w.refused(m, access.Self{ID: "usr_1"}) {
				return "the person, sure"
			}
			return "the person"
		case reflect.TypeFor[access.Pending]():
			return "the person, after the first step"
		}
	}
	return "nobody"
}

// scopes are those without one of which a caller is refused.
func (w *walk) scopes(m reflect.Value) string {
	caller := access.Caller{
		Key:    postern.Key{ID: "key_1", WorkspaceID: workspace, Scopes: postern.Scopes()},
		Plan:   postern.Plan{API: true},
		Member: postern.Member{UserID: "usr_1", WorkspaceID: workspace, Email: "bob@example.com"},
	}
	var needs []string
	for _, s := range postern.Scopes() {
		less := caller
		less.Key.Scopes = slices.DeleteFunc(postern.Scopes(), func(o postern.Scope) bool { return o == s })
		if w.refused(m, less) {
			needs = append(needs, string(s))
		}
	}
	caller.Member = postern.Member{}
	if w.refused(m, caller) {
		needs = append(needs, "and a member")
	}
	return cmp.Or(strings.Join(needs, " "), "any caller")
}

// role is the lowest one that is let through.
func (w *walk) role(m reflect.Value) string {
	for _, role := range slices.Backward(postern.Roles()) {
		member := postern.Member{UserID: "usr_1", WorkspaceID: workspace, Email: "bob@example.com", Role: role}
		if !w.refused(m, access.Actor{Member: member}) {
			return "role " + string(role)
		}
	}
	if !w.refused(m, access.AsOperator(postern.User{ID: "usr_1"}, "")) {
		return "operator"
	}
	return "operator at the socket"
}

// refused tells whether somebody is refused for lack of rights.
func (w *walk) refused(m reflect.Value, who any) bool {
	args, _ := w.args(m.Type(), who)
	return slices.Contains(
		[]postern.Reason{postern.MissingScope, postern.NotFound, postern.Unauthorized}, reasonOf(call(m, args)),
	)
}
