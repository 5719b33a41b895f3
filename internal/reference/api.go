package reference

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	overviewPath = "/docs"
	apiPath      = "/docs/api/"
	eventsName   = "webhook-events" // of the page about all events
	schemasName  = "schemas"        // of the page about all objects
)

// API are the pages of the API reference by their paths: an overview, one for each tag, the events, and all
// objects. They are made from an OpenAPI document, which is read again for each page and not kept.
func API(of func() ([]byte, error)) (map[string]Page, error) {
	doc, err := readDocument(of)
	if err != nil {
		return nil, err
	}
	list := map[string]Page{}
	for _, s := range doc.sections() {
		list[s.Address] = Page{htmlType, apiPolicy, func() []byte { return apiPage(of, s.Address) }}
	}
	return list, nil
}

// apiPage makes a page of a document that could be read before.
func apiPage(of func() ([]byte, error), address string) []byte {
	doc, err := readDocument(of)
	if err != nil {
		panic(err)
	}
	return render("api.html", doc.view(address))
}

// chapter is a page of the reference, as the navigation shows it.
type chapter struct {
	Name, Title, Address string
	Text                 string
	Entries              []line
}

// line is an operation, an event or an object in a list.
type line struct {
	Title, Method, Path, Address string
	Old                          string // the anchor that it had on the page of an earlier version
}

// sections are the chapters of the reference.
func (d *document) sections() []chapter {
	list := []chapter{{Title: "Overview", Address: overviewPath}}
	for _, t := range d.tags() {
		list = append(list, chapter{t.Name, capitalized(t.Name), apiPath + t.Name, t.Description, d.lines(t.Name)})
	}
	list = append(list, chapter{eventsName, "Webhook events", apiPath + eventsName, "What is posted to endpoints", nil},
		chapter{schemasName, "Objects", apiPath + schemasName, "Everything that bodies consist of", nil})
	events, objects := &list[len(list)-2], &list[len(list)-1]
	for _, e := range d.events() {
		old := "tag/" + e.Tags[0] + "/webhook/POST/" + strings.ReplaceAll(e.path, ".", "")
		events.Entries = append(events.Entries, line{e.path, "", "", eventAddress(e), old})
	}
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		objects.Entries = append(objects.Entries, line{name, "", "", schemaAddress(name), "model/" + strings.ToLower(name)})
	}
	return list
}

// lines are the operations of a tag.
func (d *document) lines(tag string) (list []line) {
	for _, o := range d.operations() {
		if o.Tags[0] == tag {
			list = append(list, line{o.Summary, o.method, o.path, operationAddress(o), "tag/" + tag + "/" + o.method + o.path})
		}
	}
	return list
}

func capitalized(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

func operationAddress(o *operation) string { return apiPath + o.Tags[0] + "#" + o.ID }
func eventAddress(o *operation) string     { return apiPath + eventsName + "#" + o.path }
func schemaAddress(name string) string     { return apiPath + schemasName + "#" + name }

// apiView is what the template of the reference shows.
type apiView struct {
	Title, Address string
	Text           [][]run
	Sections       []chapter
	Overview       *overview
	Operations     []described
	Headers        []field  // of each event
	Answers        []result // to each event
	Objects        []object
}

// overview is what concerns all operations.
type overview struct {
	Version        string
	Authentication [][]run
	First          sample // a request with a key
	Server         string
	Problem        shape
	Reasons        []string
	Refusal        *sample
	Headers        []field
}

// object is a schema with a name.
type object struct {
	Name  string
	Text  [][]run
	Type  kind
	Shape shape
}

// view is a page of the reference.
func (d *document) view(address string) apiView {
	v := apiView{Address: address, Sections: d.sections()}
	at := slices.IndexFunc(v.Sections, func(s chapter) bool { return s.Address == address })
	s := v.Sections[at]
	v.Title, v.Text = s.Title, paragraphs(s.Text)
	switch s.Name {
	case "":
		v.Title, v.Text, v.Overview = "API reference", paragraphs(d.Info.Description), d.overview()
	case eventsName:
		d.showEvents(&v)
	case schemasName:
		for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
			v.Objects = append(v.Objects, reader{doc: d, flat: true}.object(name))
		}
	default:
		for _, o := range d.operations() {
			if o.Tags[0] == s.Name {
				v.Operations = append(v.Operations, d.describe(o))
			}
		}
		v.Objects = d.objects(v.Operations)
	}
	return v
}

func (d *document) overview() *overview {
	o := &overview{Version: d.Info.Version, Server: d.server(), Reasons: slices.Sorted(maps.Keys(d.Components.Examples))}
	for _, name := range slices.Sorted(maps.Keys(d.Components.SecuritySchemes)) {
		o.Authentication = append(o.Authentication, runs(d.Components.SecuritySchemes[name].Description))
	}
	me := &operation{method: "GET", path: "/v1/me"}
	o.First = newSample("Request", "", d.curl(me))
	r := reader{doc: d}
	o.Problem = r.shape(&schema{Ref: schemaRef + "Problem"})
	if e, ok := d.Components.Examples["validation-failed"]; ok {
		s := newSample("Response", "422 application/problem+json", shown(e.Value))
		o.Refusal = &s
	}
	for _, name := range slices.Sorted(maps.Keys(d.Components.Headers)) {
		o.Headers = append(o.Headers, r.parameter(name, d.Components.Headers[name]))
	}
	return o
}

// showEvents shows once what all events have in common: headers and responses.
func (d *document) showEvents(v *apiView) {
	for i, e := range d.events() {
		shown := d.describe(e)
		shown.ID, shown.Title, shown.Method, shown.Path = e.path, e.path, "", ""
		if i == 0 {
			v.Answers = shown.Results
			if len(shown.Parameters) > 0 {
				v.Headers = shown.Parameters[0].Fields
			}
		}
		if len(shown.Parameters) > 0 && reflect.DeepEqual(shown.Parameters[0].Fields, v.Headers) {
			shown.Parameters = nil
		}
		if reflect.DeepEqual(shown.Results, v.Answers) {
			shown.Results = nil
		}
		if b := shown.Body; b != nil && b.Of.Schema != "" {
			b.Shape = shape{} // below, among the objects
		}
		v.Operations = append(v.Operations, shown)
	}
	v.Objects = d.objects(v.Operations)
}

// objects are those that operations return and events carry, each once.
func (d *document) objects(of []described) (list []object) {
	names := map[string]bool{}
	for _, o := range of {
		for _, r := range o.Results {
			names[r.Of] = true
		}
		if o.Method == "" && o.Body != nil {
			names[o.Body.Of.Schema] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if d.Components.Schemas[name] != nil {
			list = append(list, reader{doc: d}.object(name))
		}
	}
	return list
}

func (r reader) object(name string) object {
	s := r.doc.Components.Schemas[name]
	r.path = []string{name}
	return object{name, paragraphs(s.Description), r.kind(s), r.shape(s)}
}
