package reference

import (
	"bytes"
	"embed"
	"html/template"
)

//go:embed pages assets
var files embed.FS

// Page is served as it is, for as long as the server runs.
type Page struct {
	Type   string        // the media type
	Policy string        // the Content-Security-Policy
	Body   func() []byte // makes the body, and keeps nothing
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
	// apiPolicy lets the reference run its script, and ask this server for what a reader tries out.
	apiPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)

// Pages are the pages by their paths: the changelog, the guides, one for each problem, and the files that
// these and the reference need. [API] has those of the reference.
func Pages(problems []Problem) map[string]Page {
	list := map[string]Page{
		"/docs/style.css": {"text/css; charset=utf-8", plainPolicy, file("assets/style.css")},
		"/docs/api.css":   {"text/css; charset=utf-8", plainPolicy, file("assets/api.css")},
		"/docs/api.js":    {"text/javascript; charset=utf-8", plainPolicy, file("assets/api.js")},
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
	return func() []byte {
		b, err := files.ReadFile(name)
		if err != nil {
			panic(err) // the name is a constant of this package
		}
		return b
	}
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
	return Page{htmlType, plainPolicy, func() []byte { return render("page.html", of()) }}
}

// render writes a page. It fails only if the template is wrong, which the tests of all pages show.
func render(name string, v any) []byte {
	t := template.Must(template.ParseFS(files, "pages/*.html"))
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, v); err != nil {
		panic(err)
	}
	return b.Bytes()
}
