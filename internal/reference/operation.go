package reference

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// described is an operation or an event as its page shows it.
type described struct {
	ID, Title, Method, Path string
	Text                    [][]run
	Parameters              []parameters
	Body                    *content
	Results                 []result
	Refusals                []result
	Samples                 []sample
}

// parameters are those in one place of a request.
type parameters struct {
	Title  string
	Fields []field
}

// content is the body of a request.
type content struct {
	Types    []string
	Required bool
	Of       kind
	Text     [][]run
	Shape    shape
}

// result is a response by its status.
type result struct {
	Status, Title string
	Text          []run
	Reasons       []string
	Types         []string
	List          bool // of what Of names
	Of            string
	Shape         shape // of what has no name
	Headers       []field
}

// describe shows an operation or an event.
func (d *document) describe(o *operation) described {
	v := described{
		ID: o.ID, Title: o.Summary, Method: o.method, Path: o.path, Text: paragraphs(o.Description),
		Parameters: d.parameters(o), Body: d.body(o),
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		r := d.result(status, d.response(o.Responses[status]))
		if len(r.Reasons) > 0 {
			v.Refusals = append(v.Refusals, r)
		} else {
			v.Results = append(v.Results, r)
		}
	}
	v.Samples = d.samples(o)
	return v
}

// parameters of an operation, by where they are.
func (d *document) parameters(o *operation) (list []parameters) {
	r := reader{doc: d}
	for _, place := range []struct{ in, title string }{
		{"path", "Path parameters"}, {"query", "Query parameters"}, {"header", "Request headers"},
	} {
		var fields []field
		for _, p := range o.Parameters {
			if p = d.parameter(p); p.In == place.in {
				f := r.parameter(p.Name, p)
				f.In = p.In
				fields = append(fields, f)
			}
		}
		if len(fields) > 0 {
			list = append(list, parameters{place.title, fields})
		}
	}
	return list
}

// parameter is a field with what a parameter or a header says itself.
func (r reader) parameter(name string, p *parameter) field {
	if p.Schema == nil {
		p.Schema = &schema{}
	}
	f := r.field(name, p.Schema, p.Required)
	if p.Description != "" {
		f.Text = paragraphs(p.Description)
	}
	if len(p.Example) > 0 {
		f.Notes = append(f.Notes, note{"example", literal(p.Example)})
	}
	return f
}

// types are the media types of a body, JSON first.
func types(of map[string]media) []string {
	list := slices.Sorted(maps.Keys(of))
	slices.SortStableFunc(list, func(a, b string) int { return rank(a) - rank(b) })
	return list
}

func rank(media string) int {
	return 1 - strings.Count(media[:min(len(media), len("application/json"))], "application/json")
}

func (d *document) body(o *operation) *content {
	if o.RequestBody == nil || len(o.RequestBody.Content) == 0 {
		return nil
	}
	c := &content{Types: types(o.RequestBody.Content), Required: o.RequestBody.Required}
	s := o.RequestBody.Content[c.Types[0]].Schema
	if s == nil {
		return c
	}
	r := reader{doc: d}
	c.Of, c.Text, c.Shape = r.kind(s), paragraphs(d.resolve(s).Description), r.shape(s)
	return c
}

// reason is a reason in the description of a response.
var reason = regexp.MustCompile("`([a-z][a-z-]*[a-z])`")

// result shows a response. The description of a refusal lists its reasons.
func (d *document) result(status string, r *response) result {
	v := result{Status: status, Text: runs(r.Description), Types: types(r.Content)}
	if _, refused := r.Content["application/problem+json"]; refused {
		v.Title, _, _ = strings.Cut(r.Description, ":")
		for _, m := range reason.FindAllStringSubmatch(r.Description, -1) {
			v.Reasons = append(v.Reasons, m[1])
		}
		return v
	}
	if len(v.Types) > 0 {
		v.Of, v.List, v.Shape = d.returned(r.Content[v.Types[0]].Schema)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		if h := r.Headers[name]; h.Ref == "" {
			v.Headers = append(v.Headers, reader{doc: d}.parameter(name, h))
		}
	}
	return v
}

// returned is the name of what a response has: an object, or those of a list. What has no name has a shape.
func (d *document) returned(s *schema) (name string, list bool, rest shape) {
	if s == nil {
		return "", false, shape{}
	}
	of := d.resolve(s)
	if data := of.Properties["data"]; data != nil && data.Items != nil && data.Items.Ref != "" {
		return strings.TrimPrefix(data.Items.Ref, schemaRef), true, shape{}
	}
	if s.Ref != "" {
		return strings.TrimPrefix(s.Ref, schemaRef), false, shape{}
	}
	return "", false, reader{doc: d}.shape(s)
}

// samples are the examples of an operation: a request, and each response that is not a refusal.
func (d *document) samples(o *operation) (list []sample) {
	if d.Paths[o.path] != nil {
		list = append(list, newSample("Request", "", d.curl(o)))
	} else if o.RequestBody != nil {
		for _, t := range types(o.RequestBody.Content) {
			if raw := o.RequestBody.Content[t].Example; len(raw) > 0 {
				list = append(list, newSample("Payload", "", shown(raw)))
			}
		}
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		r := d.response(o.Responses[status])
		for _, t := range types(r.Content) {
			if raw := r.Content[t].Example; len(raw) > 0 && t != "application/problem+json" {
				list = append(list, newSample("Response", strings.TrimSuffix(status+" "+t, " application/json"), shown(raw)))
			}
		}
	}
	return list
}

// server is where the examples send their requests.
func (d *document) server() string {
	if len(d.Servers) > 0 && strings.HasPrefix(d.Servers[0].URL, "http") {
		return strings.TrimSuffix(d.Servers[0].URL, "/")
	}
	return "$URL"
}

// hole is a parameter in a path.
var hole = regexp.MustCompile(`\{(\w+)\}`)

// capital matches where a word begins in a name such as chatId.
var capital = regexp.MustCompile(`([a-z])([A-Z])`)

// variable is the variable of a shell that stands for a parameter: $CHAT_ID.
func variable(name string) string {
	return "$" + strings.ToUpper(capital.ReplaceAllString(strings.ReplaceAll(name, "-", "_"), "${1}_${2}"))
}

// curl is a request of an operation as a command.
func (d *document) curl(o *operation) []word {
	address := d.server() + hole.ReplaceAllStringFunc(o.path, func(m string) string { return variable(m[1 : len(m)-1]) })
	mark, options := "?", ""
	for _, p := range o.Parameters {
		switch p = d.parameter(p); {
		case p.In == "query" && p.Required:
			address += mark + p.Name + "=" + variable(p.Name)
			mark = "&"
		case p.In == "header" && p.Required:
			options += " \\\n  -H \"" + p.Name + ": " + variable(p.Name) + "\""
		}
	}
	command := "curl -sS"
	if o.method != "GET" && (o.method != "POST" || o.RequestBody == nil) {
		command += " -X " + o.method
	}
	list := []word{{command + " \"" + address + "\" \\\n  -H \"Authorization: Bearer $KEY\"" + options, ""}}
	if o.RequestBody == nil {
		return append(list, received(d, o)...)
	}
	return append(list, sent(o.RequestBody.Content)...)
}

// received are the options for a response that is a stream or a file.
func received(d *document, o *operation) []word {
	for status, r := range o.Responses {
		for t := range d.response(r).Content {
			switch {
			case t == "text/event-stream":
				return []word{{" \\\n  --no-buffer", ""}}
			case strings.HasPrefix(status, "2") && (t == "*/*" || t == "image/png"):
				return []word{{" \\\n  --output file", ""}}
			}
		}
	}
	return nil
}

// sent are the options for the body of a request: JSON, or a file.
func sent(of map[string]media) []word {
	t := types(of)
	if len(t) == 0 {
		return nil
	}
	list := []word{{" \\\n  -H \"Content-Type: " + t[0] + "\" \\\n  ", ""}}
	if !strings.Contains(t[0], "json") {
		return append(list, word{"--data-binary @file", ""})
	}
	list = append(list, word{"-d '", ""})
	for _, w := range words(indented(exampleOf(of[t[0]]))) {
		list = append(list, word{strings.ReplaceAll(w.Text, "'", `'\''`), w.Class})
	}
	return append(list, word{"'", ""})
}

// exampleOf is the example of a body, or an empty object.
func exampleOf(m media) json.RawMessage {
	if len(m.Example) > 0 {
		return m.Example
	}
	return json.RawMessage("{}")
}
