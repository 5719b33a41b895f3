// Package postern_test checks the layers: which package may import which.
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

// layers lists, for each package, the packages of this module it may import;
// "*" is all of them. A package missing here fails the test, so that a new
// package is a decision and not an accident.
var layers = map[string]string{
	".":                                 "",
	"cmd/postern":                       "internal/api internal/app internal/backup internal/config internal/demo internal/doctor internal/gateway internal/health internal/listen internal/obs internal/people internal/postern internal/qrcode internal/seal",
	"cmd/vendorsim":                     "vendorsim",
	"internal/app":                      "*",
	"internal/testkit":                  "*",
	"internal/chaos":                    "*",
	"internal/balance":                  "",
	"internal/health":                   "",
	"internal/alert":                    "internal/egress internal/mail internal/postern internal/seal internal/store/alerts",
	"internal/store/alerts":             "internal/db internal/postern internal/store",
	"internal/metrics":                  "internal/health internal/postern internal/store",
	"internal/doctor":                   "internal/health",
	"internal/backup":                   "internal/db/dbcopy internal/media/blob internal/postern internal/store internal/store/transfer",
	"scripts/balancer":                  "internal/balance",
	"scripts/zip":                       "",
	"tools/clients/go":                  "",
	"tools/deploy":                      "",
	"bench/bare":                        "vendorsim",
	"internal/demo":                     "*",
	"internal/api":                      "internal/access internal/api/schema internal/api/spec internal/gateway internal/media internal/media/blob internal/obs internal/paging internal/postern internal/problem internal/qrcode internal/ratelimit internal/reference internal/sse",
	"internal/api/schema":               "internal/postern",
	"internal/api/spec":                 "internal/postern internal/problem internal/reference",
	"internal/api/spec/spectest":        "",
	"internal/problem":                  "internal/obs internal/postern",
	"internal/web":                      "internal/obs internal/postern internal/problem internal/ratelimit internal/reference",
	"internal/listen":                   "internal/egress internal/postern internal/seal",
	"internal/linkpage":                 "internal/gateway internal/passkey internal/postern internal/qrcode",
	"internal/dash":                     "internal/access internal/dash/charts internal/dash/limits internal/dash/numbers internal/dash/page internal/gateway internal/mail internal/media internal/oidc internal/paging internal/people internal/postern internal/problem internal/qrcode internal/ratelimit internal/sse",
	"internal/dash/charts":              "internal/dash/numbers internal/dash/page internal/postern",
	"internal/dash/limits":              "internal/dash/numbers internal/dash/page internal/gateway internal/postern",
	"internal/dash/numbers":             "",
	"internal/dash/page":                "",
	"internal/dash/browsertest":         "",
	"internal/reference":                "",
	"internal/blackbox":                 "",
	"internal/session":                  "internal/blackbox internal/egress internal/fair internal/gateway internal/lease internal/linkpreview internal/media internal/media/library internal/network internal/obs internal/postern internal/presence internal/store internal/store/chats internal/store/history internal/store/requests internal/trace",
	"internal/webhook":                  "internal/egress internal/failpoint internal/lease internal/obs internal/postern internal/ratelimit internal/seal internal/store internal/trace",
	"internal/gateway":                  "internal/access internal/linkpreview internal/media/blob internal/media/library internal/paging internal/passkey internal/postern internal/presence internal/seal internal/store internal/store/accounts internal/store/alerts internal/store/apilog internal/store/channels internal/store/chats internal/store/contacts internal/store/groups internal/store/history internal/store/newchats internal/store/passkeys internal/store/phones internal/store/profiles internal/store/requests internal/throttle internal/trace",
	"internal/presence":                 "internal/db internal/postern internal/seal",
	"internal/lease":                    "internal/failpoint internal/postern internal/store",
	"internal/people":                   "internal/access internal/factor internal/paging internal/postern internal/seal internal/store internal/store/accounts internal/store/alerts internal/throttle",
	"internal/access":                   "internal/postern",
	"internal/paging":                   "internal/postern internal/seal",
	"internal/throttle":                 "internal/postern internal/ratelimit",
	"internal/factor":                   "",
	"internal/mail":                     "internal/seal",
	"internal/mail/mailtest":            "",
	"internal/oidc":                     "internal/seal",
	"internal/oidc/oidctest":            "",
	"internal/network/whatsapp/logline": "",
	"internal/network/whatsapp":         "internal/egress internal/failpoint internal/network internal/network/whatsapp/content internal/network/whatsapp/history internal/network/whatsapp/keys internal/network/whatsapp/live internal/network/whatsapp/logline internal/network/whatsapp/retries internal/network/whatsapp/state internal/postern internal/seal internal/store",
	"internal/fair":                     "internal/postern",
	"internal/media":                    "internal/fair internal/media/ogg internal/media/smalljpeg internal/postern",
	"internal/media/blob":               "internal/postern internal/seal",
	"internal/media/library":            "internal/media internal/media/blob internal/postern",
	"internal/media/ogg":                "",
	"internal/media/smalljpeg":          "",
	"internal/network":                  "internal/postern",
	"internal/network/networktest":      "internal/network internal/postern",
	"internal/store":                    "internal/db internal/failpoint internal/postern internal/store/contactid internal/words",
	"internal/store/contactid":          "internal/db internal/postern",
	"internal/db":                       "internal/failpoint",
	"internal/db/dbcopy":                "",
	"internal/db/dbtest":                "",
	"internal/store/storetest":          "",
	"internal/store/transfer":           "internal/db internal/db/dbcopy internal/postern internal/store",
	"internal/store/accounts":           "internal/db internal/postern internal/store",
	"internal/store/channels":           "internal/db internal/postern internal/store",
	"internal/store/chats":              "internal/db internal/postern internal/store",
	"internal/store/contacts":           "internal/db internal/postern internal/store internal/store/contactid",
	"internal/store/groups":             "internal/db internal/postern internal/store",
	"internal/store/history":            "internal/db internal/postern internal/seal internal/store",
	"internal/network/whatsapp/history": "internal/network internal/network/whatsapp/content internal/postern",
	"internal/passkey":                  "internal/postern",
	"internal/store/passkeys":           "internal/db internal/postern internal/seal internal/store",
	"internal/store/newchats":           "internal/db internal/postern internal/store",
	"internal/store/apilog":             "internal/db internal/postern internal/store",
	"internal/store/phones":             "internal/db internal/postern internal/store",
	"internal/store/profiles":           "internal/db internal/postern internal/store",
	"internal/store/requests":           "internal/db internal/postern internal/seal internal/store",
	"internal/network/whatsapp/live":    "internal/network internal/network/whatsapp/keys internal/postern",
	"internal/store/secretkey":          "internal/db internal/postern internal/seal internal/store",
	"internal/store/migrated":           "internal/db/dbtest internal/store",
	"internal/egress":                   "",
	"internal/ratelimit":                "",
	"internal/sse":                      "",
	"internal/trace":                    "",
	"internal/trace/tracetest":          "",
	"internal/words":                    "",
	"internal/linkpreview":              "",
	"internal/seal":                     "",
	"internal/failpoint":                "",
	"internal/config":                   "internal/seal",
	"internal/obs":                      "internal/health",
	"internal/postern":                  "",
	"internal/qrcode":                   "",
	"vendorsim":                         "",

	"internal/network/whatsapp/content": "internal/network internal/postern",
	"internal/network/whatsapp/keys":    "internal/network internal/postern internal/seal internal/store",
	"internal/network/whatsapp/retries": "internal/network/whatsapp/keys",
	"internal/network/whatsapp/state":   "internal/network/whatsapp/content internal/network/whatsapp/keys internal/postern",
}

// owners lists outside modules and the only packages that may import them.
var owners = map[string]string{
	"github.com/a-h/templ":       "internal/dash internal/dash/page",
	"github.com/coreos/":         "internal/oidc",
	"github.com/go-webauthn/":    "internal/factor",
	"github.com/throttled/":      "internal/ratelimit",
	"go.opentelemetry.io/":       "internal/trace internal/trace/tracetest",
	"golang.org/x/oauth2":        "internal/oidc",
	"go.mau.fi/whatsmeow":        "internal/network/whatsapp internal/network/whatsapp/content internal/network/whatsapp/history internal/network/whatsapp/keys internal/network/whatsapp/live internal/network/whatsapp/logline internal/network/whatsapp/retries internal/network/whatsapp/state vendorsim bench/bare",
	"github.com/jackc/pgx/v5":    "internal/db internal/db/dbcopy internal/db/dbtest internal/chaos",
	"modernc.org/sqlite":         "internal/db internal/db/dbcopy internal/store/storetest internal/chaos bench/bare",
	"github.com/gabriel-vasile/": "internal/media",
	"github.com/minio/":          "internal/media/blob",
	"golang.org/x/image":         "internal/media",
	"golang.org/x/net/html":      "internal/linkpreview",
	"mvdan.cc/xurls":             "internal/linkpreview",
	"github.com/yuin/goldmark":   "internal/reference",
}

// TestLayers reads the files itself, not through "go list", so that the test
// cache notices when an import changes.
func TestLayers(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (path != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "sdk" ||
			d.Name() == "testdata" || d.Name() == "node_modules") {
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
		allowed, known := layers[pkg]
		if !known {
			t.Errorf("%s has no layer: add it to layers_test.go", pkg)
			return nil
		}
		for _, spec := range f.Imports {
			imp := strings.Trim(spec.Path.Value, `"`)
			if dep, ours := strings.CutPrefix(imp, module); ours && allowed != "*" &&
				!slices.Contains(strings.Fields(allowed),
					dep) {
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
