package reference

import (
	"io/fs"
	"path"
	"strings"

	root "postern"
)

// index is the guide that names all others.
const index = "docs/guides/README.md"

// served are the names of the embedded files by the paths at which they are served.
func served() map[string]string {
	list := map[string]string{}
	_ = fs.WalkDir(root.Docs, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list[address(name)] = name
		}
		return err
	}) // an embedded file system is never unreadable
	list[address("CHANGELOG.md")] = "CHANGELOG.md"
	return list
}

// address is the path at which a file of the repository is served: docs/backup.md at /docs/backup.
func address(name string) string {
	name = "/docs/" + strings.TrimPrefix(name, "docs/")
	if path.Base(name) == "README.md" {
		return path.Dir(name)
	}
	return strings.ToLower(strings.TrimSuffix(name, ".md"))
}

// source is the text of an embedded file, without the comments that only tests read.
func source(name string) []byte {
	if name == "CHANGELOG.md" {
		return []byte(comment.ReplaceAllString(root.Changelog, ""))
	}
	text, err := root.Docs.ReadFile(name)
	if err != nil {
		panic(err) // the name is one that served has listed
	}
	return text
}

// pageOf is the page of an embedded file: Markdown becomes HTML, and everything else is shown as text.
func pageOf(name string) Page {
	if !strings.HasSuffix(name, ".md") {
		return Page{textType, plainPolicy, func() []byte { return source(name) }}
	}
	return page(func() view {
		a := articleOf(name)
		return view{Title: a.Title, Address: address(name), Guides: groups(), Article: a}
	})
}

// group is a part of the index of guides.
type group struct {
	Title  string
	Guides []entry
}

// entry is a link to a guide, or to a heading.
type entry struct{ Title, Address string }

// groups are the parts of the index: its headings that have tables, with the links in their first columns.
func groups() (list []group) {
	for _, s := range sectionsOf(index) {
		if len(s.Rows) > 0 {
			list = append(list, group{s.Title, s.Rows})
		}
	}
	return list
}
