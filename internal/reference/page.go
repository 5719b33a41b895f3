package reference

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"

	root "postern"
)

//go:embed pages assets/docs.js assets/style.css
var files embed.FS

// The large files stay in the executable until somebody asks for them. An embed.FS would copy them
// into memory, where they would be for as long as the server runs.
var (
	//go:embed assets/scalar.js
	script []byte
	//go:embed assets/scalar.licences.txt
	licences []byte
)

// Page is a file that is served as it is.
type Page struct {
	Type   string // the media type
	Body   []byte
	Policy string // the Content-Security-Policy
}

// Problem is what the page of a reason shows: of a refusal, which has a status, or of the
// state of a device, a link attempt or an endpoint.
type Problem struct {
	Reason, Title, Code    string
	Status                 int
	Means, When, Do, Shown string
	Session, Endpoint      bool // whose state it explains
}

const (
	htmlType = "text/html; charset=utf-8"
	// plainPolicy is for pages without scripts.
	plainPolicy = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	// docsPolicy lets the reference run its script, style itself, and ask this
	// server, for its document and for what a reader tries out.
	docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// Pages are the pages by their paths: the reference, its parts and the
// changelog, and one for each problem.
func Pages(problems []Problem) (map[string]Page, error) {
	sections, err := sectionsOf(root.Changelog)
	if err != nil {
		return nil, err
	}
	changelog, err := render(view{Title: "Changelog", Changelog: sections})
	if err != nil {
		return nil, err
	}
	list := map[string]Page{
		"/docs":                     {htmlType, file("pages/docs.html"), docsPolicy},
		"/docs/changelog":           changelog,
		"/docs/style.css":           {"text/css; charset=utf-8", file("assets/style.css"), plainPolicy},
		"/docs/docs.js":             {"text/javascript; charset=utf-8", file("assets/docs.js"), plainPolicy},
		"/docs/scalar.js":           {"text/javascript; charset=utf-8", script, plainPolicy},
		"/docs/scalar.licences.txt": {"text/plain; charset=utf-8", licences, plainPolicy},
	}
	for _, p := range problems {
		if list["/problems/"+p.Reason], err = render(view{Title: p.Title, Problem: p}); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// file is an embedded file: what is not there does not compile.
func file(name string) []byte {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the name is a constant of this package
	}
	return b
}

// view is what the template shows: the changelog, or a problem.
type view struct {
	Title     string
	Changelog []section
	Problem   Problem
}

func render(v view) (Page, error) {
	t, err := template.ParseFS(files, "pages/page.html")
	if err != nil {
		return Page{}, fmt.Errorf("read the template of pages: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil {
		return Page{}, fmt.Errorf("write the page %q: %w", v.Title, err)
	}
	return Page{htmlType, b.Bytes(), plainPolicy}, nil
}
