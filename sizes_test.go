package postern_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

const (
	maxFiles   = 25 // production files of a package, except vendorsim
	maxMethods = 60 // methods of a type
)

// TestSizes keeps packages and types small enough to know. Generated files and those of
// vendorsim, which simulates all of the vendor's server, do not count.
func TestSizes(t *testing.T) {
	files, methods := map[string]int{}, map[string]int{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipped(path, d.Name()):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(f) {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		files[pkg]++
		for _, decl := range f.Decls {
			if name := receiver(decl); name != "" {
				methods[pkg+"."+name]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg, n := range files {
		if n > maxFiles && pkg != "vendorsim" {
			t.Errorf("%s has %d production files, want at most %d", pkg, n, maxFiles)
		}
	}
	for name, n := range methods {
		if n > maxMethods {
			t.Errorf("%s has %d methods, want at most %d", name, n, maxMethods)
		}
	}
}

// skipped tells whether a directory holds nothing of the module's own.
func skipped(path, name string) bool {
	return path != "." && strings.HasPrefix(name, ".") || name == "sdk" || name == "testdata" || name == "node_modules"
}

// receiver is the name of the type that a declaration adds a method to; "" for others.
func receiver(decl ast.Decl) string {
	f, is := decl.(*ast.FuncDecl)
	if !is || f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	kind := f.Recv.List[0].Type
	if star, is := kind.(*ast.StarExpr); is {
		kind = star.X
	}
	switch k := kind.(type) {
	case *ast.Ident:
		return k.Name
	case *ast.IndexExpr:
		return k.X.(*ast.Ident).Name
	}
	return ""
}
