package reference

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// apiPassages are the operations, the events and the objects of the API, at their places in the reference.
func apiPassages(of func() ([]byte, error)) ([]passage, error) {
	if of == nil {
		return nil, nil
	}
	doc, err := readDocument(of)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	var list []passage
	for _, o := range doc.operations() {
		text := []string{o.Description}
		for _, p := range o.Parameters {
			p = doc.parameter(p)
			text = append(text, p.Name+": "+p.Description)
		}
		list = append(list, passage{
			Title: o.Summary, Page: o.method + " " + o.path, Text: unmarked(text), Address: operationAddress(o),
		})
	}
	for _, e := range doc.events() {
		list = append(list, passage{
			Title: e.path, Page: "Event", Text: unmarked([]string{e.Description}), Address: eventAddress(e),
		})
	}
	return slices.Concat(list, schemaPassages(doc.Components.Schemas)), nil
}

func schemaPassages(of map[string]*schema) (list []passage) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		text := []string{of[name].Description}
		for _, p := range slices.Sorted(maps.Keys(of[name].Properties)) {
			text = append(text, p+": "+of[name].Properties[p].Description)
		}
		list = append(list, passage{Title: name, Page: "Object", Text: unmarked(text), Address: schemaAddress(name)})
	}
	return list
}

// linkMark is a link in the Markdown of a description.
var linkMark = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// unmarked is a text of several descriptions, without their Markdown: code and links.
func unmarked(descriptions []string) string {
	text := linkMark.ReplaceAllString(strings.Join(descriptions, " "), "$1")
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "`", "")), " ")
}
