package problem

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"postern/internal/postern"
)

// TestEveryReasonHasARow reads the reasons from their source, so that a new
// one cannot be forgotten.
func TestEveryReasonHasARow(t *testing.T) {
	t.Parallel()
	f, err := parser.ParseFile(token.NewFileSet(), "../postern/error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "Reason" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		n++
		k, ok := table[postern.Reason(value)]
		if !ok || k.Status < 400 || k.Status > 599 || k.Code == "" || strings.ToUpper(k.Code) != k.Code ||
			k.Title == "" || k.Page == "" {
			t.Errorf("the reason %s has the row %+v", value, k)
		}
		if e := Explain(postern.Reason(value)); e.Means == "" || e.When == "" || e.Do == "" || e.Shown == "" {
			t.Errorf("the reason %s is explained as %+v", value, e)
		}
		return true
	})
	if n != len(table) || n != len(explanations) {
		t.Errorf("%d reasons, %d rows, %d explanations", n, len(table), len(explanations))
	}
}
