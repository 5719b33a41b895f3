package page

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestAssetsAreCachedAndMayBeCompressed(t *testing.T) {
	t.Parallel()
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		Assets().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	for name, a := range assets() {
		got := get(a.path)
		h := got.Header()
		if got.Code != http.StatusOK || h.Get("Cache-Control") != "public, max-age=31536000, immutable" ||
			(h.Get("Vary") == "Accept-Encoding") == (a.kind == font) || h.Get("ETag") == "" || h.Get("Content-Length") != strconv.Itoa(len(a.raw)) {
			t.Errorf("%s: %d %v", name, got.Code, h)
		}
	}
	for _, path := range []string{"/assets/", "/assets/app.css", "/assets/../page.go", "/assets/app-000000000000.css"} {
		if got := get(path).Code; got != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", path, got)
		}
	}
}

// What a template names and the style sheet does not draw would be a square.
func TestEveryIconIsDrawn(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("*.templ")
	if err != nil || len(sources) == 0 {
		t.Fatalf("there are no templates: %v", err)
	}
	css, named := string(assets()["app.css"].raw), 0
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`[" ](i-[a-z0-9-]+)[" ]`).FindAllStringSubmatch(string(text), -1) {
			if named++; !strings.Contains(css, "."+m[1]+"{--icon:url(") {
				t.Errorf("%s: there is no icon %s", source, m[1])
			}
		}
	}
	if named == 0 {
		t.Error("no template names an icon")
	}
}

// A font is fetched by the path that says which version of it the style sheet was made for.
func TestStyleSheetNamesItsFonts(t *testing.T) {
	t.Parallel()
	css := string(assets()["app.css"].raw)
	for _, name := range []string{"inter.woff2", "inter-ext.woff2"} {
		if !strings.Contains(css, "url("+Asset(name)+")") {
			t.Errorf("the style sheet does not name %s", Asset(name))
		}
	}
}
