package reference

import (
	"bytes"
	"html/template"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// article is a file of Markdown as HTML.
type article struct {
	Title    string
	Contents []entry       // the headings of the second level
	Body     template.HTML // without the title
}

// markdown reads and writes what our files use: CommonMark with tables. HTML in a file is left out.
func markdown() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(marks{}, 1))),
	)
}

// articleOf makes the article of an embedded file.
func articleOf(name string) article {
	md, src := markdown(), source(name)
	doc := md.Parser().Parse(text.NewReader(src))
	var a article
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		switch h, is := n.(*ast.Heading); {
		case is && h.Level == 1:
			a.Title = plain(h, src)
		case is && h.Level == 2:
			a.Contents = append(a.Contents, entry{plain(h, src), "#" + id(h)})
		}
	}
	if h, is := doc.FirstChild().(*ast.Heading); is {
		doc.RemoveChild(doc, h)
	}
	relink(doc, name)
	var b bytes.Buffer
	if err := md.Renderer().Render(&b, src, doc); err != nil {
		panic(err) // a buffer takes everything
	}
	a.Body = template.HTML(b.String()) //nolint:gosec // goldmark escapes, and the files are ours
	return a
}

// relink makes the links between files lead to the pages of these files. A link to a file that is not served
// becomes plain text.
func relink(doc ast.Node, name string) {
	pages := served()
	var links []*ast.Link
	walk(doc, func(n ast.Node) {
		if l, is := n.(*ast.Link); is {
			links = append(links, l)
		}
	})
	for _, l := range links {
		to, known := target(name, string(l.Destination), pages)
		if !known {
			unwrap(l)
		}
		l.Destination = []byte(to)
	}
}

// target is where a link in a file leads to, and whether it leads anywhere.
func target(from, to string, pages map[string]string) (string, bool) {
	if strings.Contains(to, ":") || strings.HasPrefix(to, "#") || strings.HasPrefix(to, "/") {
		return to, true
	}
	name, fragment, _ := strings.Cut(to, "#")
	to = address(path.Join(path.Dir(from), name))
	if _, known := pages[to]; !known {
		return "", false
	}
	if fragment != "" {
		to += "#" + fragment
	}
	return to, true
}

// unwrap replaces a link by its text.
func unwrap(l *ast.Link) {
	for c := l.FirstChild(); c != nil; c = l.FirstChild() {
		l.Parent().InsertBefore(l.Parent(), l, c)
	}
	l.Parent().RemoveChild(l.Parent(), l)
}

// walk visits a node and all below it.
func walk(n ast.Node, visit func(ast.Node)) {
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			visit(n)
		}
		return ast.WalkContinue, nil
	}) // only the visitor could fail
}

// plain is the text below a node. Blocks and lines are separated by spaces.
func plain(n ast.Node, src []byte) string {
	var b strings.Builder
	walk(n, func(n ast.Node) {
		if n.Type() == ast.TypeBlock {
			b.WriteByte(' ')
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Value(src))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.FencedCodeBlock:
			b.Write(n.Lines().Value(src))
		}
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// id is the anchor of a heading.
func id(h *ast.Heading) string {
	v, _ := h.AttributeString("id")
	b, _ := v.([]byte)
	return string(b)
}

// marks writes what we write in another way than goldmark does: a heading links to itself, a table that is wider
// than the page scrolls, and a cell is the heading of its column only if it says something.
type marks struct{}

// RegisterFuncs implements [renderer.NodeRenderer].
func (marks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		h, _ := n.(*ast.Heading)
		level := strconv.Itoa(h.Level)
		if entering {
			return write(w, "<h"+level+` id="`+id(h)+`"><a href="#`+id(h)+`">`)
		}
		return write(w, "</a></h"+level+">\n")
	})
	r.Register(tables.KindTable, func(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			return write(w, "<div class=\"scroll\"><table>\n")
		}
		return write(w, "</table></div>\n")
	})
	r.Register(tables.KindTableCell, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		name := "td"
		if n.Parent().Kind() == tables.KindTableHeader && n.HasChildren() {
			name = "th"
		}
		if entering {
			return write(w, "<"+name+">")
		}
		return write(w, "</"+name+">\n")
	})
}

func write(w util.BufWriter, html string) (ast.WalkStatus, error) {
	_, err := w.WriteString(html)
	return ast.WalkContinue, err
}

// section is a heading of a file with what follows it, up to the next one.
type section struct {
	Title  string
	Anchor string // "" for what follows the title of the file
	Text   string
	Rows   []entry // links in the first column of a table
}

// sectionsOf splits an embedded file at its headings. The first section has the title of the file.
func sectionsOf(name string) []section {
	src := source(name)
	doc := markdown().Parser().Parse(text.NewReader(src))
	relink(doc, name)
	list := []section{{}}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		last := &list[len(list)-1]
		switch h, is := n.(*ast.Heading); {
		case is && h.Level == 1:
			last.Title = plain(h, src)
		case is:
			list = append(list, section{Title: plain(h, src), Anchor: "#" + id(h)})
		default:
			last.Text = strings.TrimSpace(last.Text + " " + plain(n, src))
			last.Rows = slices.Concat(last.Rows, rows(n, src))
		}
	}
	return list
}

// rows are the links in the first column of a table.
func rows(table ast.Node, src []byte) (list []entry) {
	for row := table.FirstChild(); row != nil; row = row.NextSibling() {
		if row.Kind() != tables.KindTableRow {
			continue
		}
		if l, is := row.FirstChild().FirstChild().(*ast.Link); is {
			list = append(list, entry{plain(l, src), string(l.Destination)})
		}
	}
	return list
}
