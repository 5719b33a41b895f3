package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
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
	// mime.TypeByExtension would depend on the machine.
	kinds := map[string]string{
		".css": "text/css; charset=utf-8",
		".js":  "text/javascript; charset=utf-8",
		".svg": "image/svg+xml",
		".txt": "text/plain; charset=utf-8",
	}
	err := fs.WalkDir(files, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		base, ext := strings.TrimPrefix(name, "assets/"), filepath.Ext(name)
		sum := sha256.Sum256(raw)
		kind, ok := kinds[ext]
		if !ok {
			return fmt.Errorf("no media type for %s", name)
		}
		hash := hex.EncodeToString(sum[:6])
		all[base] = asset{
			path: prefix + strings.TrimSuffix(base, ext) + "-" + hash + ext, tag: `W/"` + hash + `"`, kind: kind, raw: raw,
		}
		return nil
	})
	if err != nil {
		panic(err) // the files are part of the program
	}
	return all
})

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
// can be cached forever. They contain nothing that is secret, so they may be compressed.
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
		h.Set("Vary", "Accept-Encoding")
		h.Set("ETag", a.tag)
		h.Set("Content-Length", strconv.Itoa(len(a.raw)))
		_, _ = w.Write(a.raw) // the browser may be gone
	})
}
