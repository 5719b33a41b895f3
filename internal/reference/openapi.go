package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// openAPI is what the search reads of the OpenAPI document.
type openAPI struct {
	Paths      map[string]map[string]operation `json:"paths"`
	Webhooks   map[string]map[string]operation `json:"webhooks"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

// operation is a request to the API, or a webhook.
type operation struct {
	Summary     string      `json:"summary"`
	Description string      `json:"description"`
	Tags        []string    `json:"tags"`
	Parameters  []described `json:"parameters"`
}

type schema struct {
	Description string               `json:"description"`
	Properties  map[string]described `json:"properties"`
}

// described is a parameter or a property.
type described struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// apiPassages are the operations, the events and the schemas of the API, with the anchors that the reference
// gives them.
func apiPassages(document func() ([]byte, error)) ([]passage, error) {
	if document == nil {
		return nil, nil
	}
	raw, err := document()
	var doc openAPI
	if err == nil {
		err = json.Unmarshal(raw, &doc)
	}
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document for the search: %w", err)
	}
	return slices.Concat(operations(doc), webhooks(doc), schemas(doc)), nil
}

func operations(doc openAPI) (list []passage) {
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			o := doc.Paths[path][method]
			text := []string{o.Description}
			for _, p := range o.Parameters {
				text = append(text, p.Name+": "+p.Description)
			}
			request := strings.ToUpper(method) + " " + path
			list = append(list, passage{
				Title: o.Summary, Page: request, Text: unmarked(text),
				Address: "/docs#tag/" + o.Tags[0] + "/" + strings.Replace(request, " ", "", 1),
			})
		}
	}
	return list
}

func webhooks(doc openAPI) (list []passage) {
	for _, name := range slices.Sorted(maps.Keys(doc.Webhooks)) {
		e := doc.Webhooks[name]["post"]
		list = append(list, passage{
			Title: name, Page: "Event", Text: unmarked([]string{e.Description}),
			Address: "/docs#tag/" + e.Tags[0] + "/webhook/POST/" + strings.ReplaceAll(name, ".", ""),
		})
	}
	return list
}

func schemas(doc openAPI) (list []passage) {
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		s := doc.Components.Schemas[name]
		text := []string{s.Description}
		for _, p := range slices.Sorted(maps.Keys(s.Properties)) {
			text = append(text, p+": "+s.Properties[p].Description)
		}
		list = append(list, passage{
			Title: name, Page: "Schema", Text: unmarked(text), Address: "/docs#model/" + strings.ToLower(name),
		})
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
