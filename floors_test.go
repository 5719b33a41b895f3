// Package postern_test checks the order of the house: who may import whom.
package postern_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "postern/"

// floors lists, for each package, the packages of this module it may import;
// "*" is all of them. A package missing here fails the test, so that a new
// package is a decision and not an accident.
var floors = map[string]string{
	".":                            "",
	"cmd/postern":                  "internal/api internal/app internal/config internal/demo internal/gateway internal/listen internal/obs internal/postern internal/qrcode internal/seal",
	"cmd/vendorsim":                "vendorsim",
	"internal/app":                 "*",
	"internal/testkit":             "*",
	"internal/chaos":               "*",
	"bench/bare":                   "vendorsim",
	"internal/demo":                "*",
	"internal/api":                 "internal/gateway internal/obs internal/postern internal/qrcode internal/ratelimit internal/reference",
	"internal/listen":              "internal/egress internal/postern internal/seal",
	"internal/linkpage":            "internal/gateway internal/postern internal/qrcode",
	"internal/dash":                "internal/dash/page internal/gateway internal/mail internal/oidc internal/postern internal/qrcode",
	"internal/dash/page":           "",
	"internal/dash/browsertest":    "",
	"internal/reference":           "",
	"internal/session":             "internal/gateway internal/network internal/obs internal/postern internal/store",
	"internal/webhook":             "internal/egress internal/failpoint internal/obs internal/postern internal/ratelimit internal/seal internal/store",
	"internal/gateway":             "internal/factor internal/postern internal/ratelimit internal/seal internal/store",
	"internal/factor":              "",
	"internal/mail":                "internal/seal",
	"internal/mail/mailtest":       "",
	"internal/oidc":                "internal/seal",
	"internal/oidc/oidctest":       "",
	"internal/network/whatsapp":    "internal/egress internal/failpoint internal/network internal/postern internal/seal internal/store",
	"internal/network":             "internal/postern",
	"internal/network/networktest": "internal/network internal/postern",
	"internal/store":               "internal/failpoint internal/postern",
	"internal/store/storetest":     "",
	"internal/egress":              "",
	"internal/ratelimit":           "",
	"internal/seal":                "",
	"internal/failpoint":           "",
	"internal/config":              "internal/seal",
	"internal/obs":                 "",
	"internal/postern":             "",
	"internal/qrcode":              "",
	"vendorsim":                    "",
}

// owners lists outside modules and the only packages that may import them.
var owners = map[string]string{
	"github.com/a-h/templ":    "internal/dash internal/dash/page",
	"github.com/coreos/":      "internal/oidc",
	"github.com/go-webauthn/": "internal/factor",
	"golang.org/x/oauth2":     "internal/oidc",
	"github.com/throttled/":   "internal/ratelimit",
	"go.mau.fi/whatsmeow":     "internal/network/whatsapp vendorsim bench/bare",
	"github.com/jackc/pgx/v5": "internal/store internal/store/storetest internal/chaos",
	"modernc.org/sqlite":      "internal/store internal/store/storetest internal/chaos bench/bare",
}

// TestFloors reads the files itself, not through "go list", so that the test
// cache notices when an import changes.
func TestFloors(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (path != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "sdk" || d.Name() == "testdata" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		allowed, known := floors[pkg]
		if !known {
			t.Errorf("%s has no floor: give it one in floors_test.go", pkg)
			return nil
		}
		for _, spec := range f.Imports {
			imp := strings.Trim(spec.Path.Value, `"`)
			if dep, ours := strings.CutPrefix(imp, module); ours && allowed != "*" && !slices.Contains(strings.Fields(allowed), dep) {
				t.Errorf("%s: %s must not import %s", path, pkg, dep)
			}
			for outside, owner := range owners {
				if strings.HasPrefix(imp, outside) && !slices.Contains(strings.Fields(owner), pkg) {
					t.Errorf("%s: only %s may import %s", path, owner, outside)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
