package reference

import (
	"bytes"
	"embed"
	"html/template"
	"sync"
)

//go:embed pages assets/docs.js assets/*.css
var files embed.FS

// The large files stay in the executable until somebody asks for them. An embed.FS would copy them
// into memory, where they would be for as long as the server runs.
var (
	//go:embed assets/scalar.js
	script []byte
	//go:embed assets/scalar.licences.txt
	licences []byte
)

// Page is served as it is, for as long as the server runs.
type Page struct {
	Type   string        // the media type
	Policy string        // the Content-Security-Policy
	Body   func() []byte // makes the body at the first call, and keeps it
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
	textType = "text/plain; charset=utf-8"
	// plainPolicy is for pages without scripts. They have a form, which searches the documentation.
	plainPolicy = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
	// docsPolicy lets the reference run its script, style itself, and ask this
	// server, for its document and for what a reader tries out.
	docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// Pages are the pages by their paths: the reference, its parts and the
// changelog, the guides, and one for each problem.
func Pages(problems []Problem) map[string]Page {
	list := map[string]Page{
		"/docs":                     {htmlType, docsPolicy, file("pages/docs.html")},
		"/docs/style.css":           {"text/css; charset=utf-8", plainPolicy, file("assets/style.css")},
		"/docs/reference.css":       {"text/css; charset=utf-8", plainPolicy, file("assets/reference.css")},
		"/docs/docs.js":             {"text/javascript; charset=utf-8", plainPolicy, file("assets/docs.js")},
		"/docs/scalar.js":           {"text/javascript; charset=utf-8", plainPolicy, func() []byte { return script }},
		"/docs/scalar.licences.txt": {textType, plainPolicy, func() []byte { return licences }},
	}
	for path, name := range served() {
		list[path] = pageOf(name)
	}
	for _, p := range problems {
		list["/problems/"+p.Reason] = page(func() view { return view{Title: p.Title, Problem: p} })
	}
	return list
}

// file is an embedded file.
func file(name string) func() []byte {
	return sync.OnceValue(func() []byte {
		b, err := files.ReadFile(name)
		if err != nil {
			panic(err) // the name is a constant of this package
		}
		return b
	})
}

// view is what the template shows: an article, a problem, or the results of a search.
type view struct {
	Title   string
	Address string  // of the page
	Guides  []group // beside the article
	Article article
	Problem Problem
	Query   string
	Results *results
}

// page is a page that the template makes.
func page(of func() view) Page {
	return Page{htmlType, plainPolicy, sync.OnceValue(func() []byte { return render(of()) })}
}

// render writes a page. It fails only if the template is wrong, which the tests of all pages show.
func render(v view) []byte {
	t := template.Must(template.ParseFS(files, "pages/page.html"))
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil {
		panic(err)
	}
	return b.Bytes()
}
