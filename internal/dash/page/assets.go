package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

//go:embed assets
var files embed.FS

// prefix is where assets are served.
const prefix = "/assets/"

// asset is a file as it is served.
type asset struct {
	path string // contains the hash of the content, so that it can be cached forever
	tag  string // the same hash, as an entity tag
	kind string
	raw  []byte
}

// assets reads the files once.
var assets = sync.OnceValue(func() map[string]asset { //nolint:gochecknoglobals // made once, never changed
	all := map[string]asset{}
	list, err := files.ReadDir("assets")
	if err != nil {
		panic(err) // the files are part of the program
	}
	for _, file := range list {
		raw, err := files.ReadFile("assets/" + file.Name())
		if err != nil {
			panic(err)
		}
		all[file.Name()] = newAsset(file.Name(), raw)
	}
	all["app.css"] = newAsset("app.css", linked(all["app.css"].raw, all))
	return all
})

func newAsset(name string, raw []byte) asset {
	// mime.TypeByExtension would depend on the machine.
	kinds := map[string]string{
		".css":   "text/css; charset=utf-8",
		".js":    "text/javascript; charset=utf-8",
		".svg":   "image/svg+xml",
		".txt":   "text/plain; charset=utf-8",
		".woff2": font,
	}
	ext, sum := filepath.Ext(name), sha256.Sum256(raw)
	kind, ok := kinds[ext]
	if !ok {
		panic("page: no media type for " + name)
	}
	hash := hex.EncodeToString(sum[:6])
	return asset{
		path: prefix + strings.TrimSuffix(name, ext) + "-" + hash + ext, tag: `W/"` + hash + `"`, kind: kind, raw: raw,
	}
}

// font is the media type of fonts, which are compressed already.
const font = "font/woff2"

var fontURL = regexp.MustCompile(`url\("?([a-z-]+\.woff2)"?\)`)

// linked is a style sheet that names its fonts by the paths under which they are served.
func linked(css []byte, all map[string]asset) []byte {
	return fontURL.ReplaceAllFunc(css, func(url []byte) []byte {
		return []byte("url(" + all[string(fontURL.FindSubmatch(url)[1])].path + ")")
	})
}

// Asset returns the path of a file of the dashboard, such as "app.css". The path changes with
// the file's content.
func Asset(name string) string {
	a, ok := assets()[name]
	if !ok {
		panic("page: no asset " + name) // a programming error that every page would show
	}
	return a.path
}

// Assets serves the files of the dashboard under /assets/. Their names contain a hash, so they
// can be cached forever. They contain nothing that is secret, so they may be compressed, except fonts.
func Assets() http.Handler {
	served := map[string]asset{}
	for _, a := range assets() {
		served[a.path] = a
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := served[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.kind)
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'")
		if a.kind != font {
			h.Set("Vary", "Accept-Encoding")
		}
		h.Set("ETag", a.tag)
		h.Set("Content-Length", strconv.Itoa(len(a.raw)))
		_, _ = w.Write(a.raw) // the browser may be gone
	})
}
