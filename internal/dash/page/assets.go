package page

import (
	"bytes"
	"compress/gzip"
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
	path       string // contains the hash of the content, so that it can be cached forever
	kind       string
	raw, small []byte // small is compressed
}

// assets reads and compresses the files once.
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
		all[base] = asset{
			path: prefix + strings.TrimSuffix(base, ext) + "-" + hex.EncodeToString(sum[:6]) + ext,
			kind: kind, raw: raw, small: squeeze(raw),
		}
		return nil
	})
	if err != nil {
		panic(err) // the files are part of the program
	}
	return all
})

func squeeze(raw []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	_, _ = w.Write(raw) // a buffer never fails
	_ = w.Close()
	return b.Bytes()
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
// can be cached forever.
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
		body := a.raw
		if takesGzip(r.Header.Get("Accept-Encoding")) && len(a.small) < len(a.raw) {
			h.Set("Content-Encoding", "gzip")
			body = a.small
		}
		h.Set("Content-Length", strconv.Itoa(len(body)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(body) // the browser may be gone
		}
	})
}

// takesGzip reports whether an Accept-Encoding header accepts gzip.
func takesGzip(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		coding, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			q, found := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
			weight, err := strconv.ParseFloat(q, 64)
			return !found || err == nil && weight > 0
		}
	}
	return false
}
