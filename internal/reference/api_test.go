package reference_test

import (
	"encoding/json"
	"html"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"postern/internal/reference"
)

// object is a part of a document as it is, so that what the reference leaves out is found.
type object = map[string]any

func in(from object, path ...string) object {
	for _, name := range path {
		from, _ = from[name].(object)
	}
	return from
}

func committed() ([]byte, error) { return os.ReadFile("../api/spec/openapi.json") }

// bodies are those of the reference's pages.
func bodies(of func() ([]byte, error)) (map[string]string, error) {
	list, err := reference.API(of)
	made := map[string]string{}
	for path, p := range list {
		made[path] = string(p.Body())
	}
	return made, err
}

// ours are the pages of the committed document.
var ours = sync.OnceValues(func() (map[string]string, error) { return bodies(committed) })

// of makes the pages of another document.
func of(document []byte) func() (map[string]string, error) {
	return func() (map[string]string, error) { return bodies(func() ([]byte, error) { return document, nil }) }
}

func pages(t *testing.T, of func() (map[string]string, error)) map[string]string {
	t.Helper()
	list, err := of()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// part is the section of a page about something, as text: without its marks.
func part(page, id string) string {
	_, from, found := strings.Cut(page, `<h2 id="`+html.EscapeString(id)+`"`)
	if !found {
		return ""
	}
	text, _, _ := strings.Cut(from, "</section>")
	return text
}

// marks are those of HTML that colors examples.
var marks = regexp.MustCompile(`</?i[^>]*>`)

func decodedDocument(t *testing.T) object {
	t.Helper()
	raw, err := committed()
	doc := object{}
	if err == nil {
		err = json.Unmarshal(raw, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// named are the names of all members below a schema.
func named(doc, schema object, seen []string) (list []string) {
	if ref, is := schema["$ref"].(string); is {
		if slices.Contains(seen, ref) {
			return nil
		}
		return named(doc, in(doc, strings.Split(ref, "/")[1:]...), append(slices.Clip(seen), ref))
	}
	for name, p := range in(schema, "properties") {
		list = append(append(list, name), named(doc, p.(object), seen)...)
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if s := in(schema, key); s != nil {
			list = append(list, named(doc, s, seen)...)
		}
	}
	forms, _ := schema["oneOf"].([]any)
	for _, form := range forms {
		list = append(list, named(doc, form.(object), seen)...)
	}
	return list
}

// TestEachOperationIsInTheReference with its parameters, its body to the last field, its statuses and reasons.
func TestEachOperationIsInTheReference(t *testing.T) {
	t.Parallel()
	doc, pages, seen := decodedDocument(t), pages(t, ours), 0
	for path, item := range in(doc, "paths") {
		for method, o := range item.(object) {
			op := o.(object)
			seen++
			page := pages["/docs/api/"+op["tags"].([]any)[0].(string)]
			text := part(page, op["operationId"].(string))
			want := []string{
				">" + html.EscapeString(op["summary"].(string)) + "<",
				`<b class="` + strings.ToUpper(method) + `">`, "<code>" + path + "</code>",
			}
			list, _ := op["parameters"].([]any)
			for _, p := range list {
				want = append(want, "<code>"+p.(object)["name"].(string)+"</code>")
			}
			for _, body := range in(op, "requestBody", "content") {
				for _, name := range named(doc, in(body.(object), "schema"), nil) {
					if name != "file" { // of a form, which takes what the body may be itself
						want = append(want, "<code>"+name+"</code>")
					}
				}
			}
			for status, r := range in(op, "responses") {
				want = append(want, "<b>"+status+"</b>")
				for _, reason := range reasonsOf(doc, r.(object)) {
					want = append(want, `<a href="/problems/`+reason+`">`)
				}
			}
			for _, words := range want {
				if !strings.Contains(text, words) {
					t.Errorf("%s %s is shown without %s", method, path, words)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("the document has %d operations", seen)
	}
}

// reasonsOf are the reasons of a response, by its examples.
func reasonsOf(doc, response object) []string {
	if ref, is := response["$ref"].(string); is {
		response = in(doc, strings.Split(ref, "/")[1:]...)
	}
	return slices.Sorted(maps.Keys(in(response, "content", "application/problem+json", "examples")))
}

// TestEachFieldOfAnObjectIsInTheReference: of all objects on their page, and of those that operations return and
// events carry beside these.
func TestEachFieldOfAnObjectIsInTheReference(t *testing.T) {
	t.Parallel()
	doc, pages := decodedDocument(t), pages(t, ours)
	for name, s := range in(doc, "components", "schemas") {
		text := part(pages["/docs/api/schemas"], name)
		for field, p := range in(s.(object), "properties") {
			about, _ := p.(object)["description"].(string)
			about, _, _ = strings.Cut(about, "`")
			if !strings.Contains(text, "<code>"+field+"</code>") || !strings.Contains(text, html.EscapeString(strings.TrimSpace(about[:min(20, len(about))]))) {
				t.Errorf("%s of %s is not shown", field, name)
			}
		}
		if text == "" {
			t.Errorf("%s is not shown", name)
		}
	}
	for path, of := range map[string]string{
		"/docs/api/messages": "Message", "/docs/api/devices": "Device", "/docs/api/webhook-events": "ActionEvent",
	} {
		text := part(pages[path], of)
		for _, field := range named(doc, in(doc, "components", "schemas", of), nil) {
			if !strings.Contains(text, "<code>"+field+"</code>") {
				t.Errorf("%s shows %s without %s", path, of, field)
			}
		}
	}
}

// TestEachEventIsInTheReference with what it carries, and an example.
func TestEachEventIsInTheReference(t *testing.T) {
	t.Parallel()
	doc, page := decodedDocument(t), pages(t, ours)["/docs/api/webhook-events"]
	for name, item := range in(doc, "webhooks") {
		op := in(item.(object), "post")
		body := in(op, "requestBody", "content", "application/json")
		text := marks.ReplaceAllString(part(page, name), "")
		of := in(body, "schema")["$ref"].(string)
		for _, words := range []string{
			">" + name + "<", `<a href="#` + of[strings.LastIndex(of, "/")+1:] + `">`,
			html.EscapeString(`"type": "` + name + `"`), html.EscapeString(op["description"].(string)[:20]),
		} {
			if !strings.Contains(text, words) {
				t.Errorf("%s is shown without %s", name, words)
			}
		}
	}
	for name := range in(doc, "components", "parameters") {
		if !strings.Contains(page, "<code>"+name+"</code>") {
			t.Errorf("the header %s is not shown", name)
		}
	}
}

const hostile = `<script>alert(1)</script>"'><img src=x onerror=alert(1)> [x](javascript:alert(1)) {{.}} </code></pre> ` +
	"`</title><b>`"

// worse puts a hostile text into all texts below a value, and into the names of fields.
func worse(v any) any {
	switch v := v.(type) {
	case string:
		return v + hostile
	case []any:
		for i := range v {
			v[i] = worse(v[i])
		}
	case object:
		for key, below := range v {
			switch {
			case slices.Contains([]string{"$ref", "required", "type", "tags", "in", "mapping", "operationId"}, key):
			case key == "properties":
				renamed := object{}
				for name, p := range below.(object) {
					renamed[name+hostile] = worse(p)
				}
				v[key] = renamed
			default:
				v[key] = worse(below)
			}
		}
	}
	return v
}

// TestTextsOfTheDocumentStayTexts: no text of a document becomes a mark, a link that runs something, or a template.
func TestTextsOfTheDocumentStayTexts(t *testing.T) {
	t.Parallel()
	doc := decodedDocument(t)
	for _, key := range []string{"info", "paths", "webhooks", "components", "servers"} {
		doc[key] = worse(doc[key])
	}
	tags := doc["tags"].([]any)
	for _, tag := range tags {
		tag.(object)["description"] = hostile
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	for path, page := range pages(t, of(raw)) {
		if !strings.Contains(page, "&lt;script&gt;alert(1)") {
			t.Errorf("%s does not show the text", path)
		}
		for _, bad := range []string{"<script>", "<img", "<b>alert", "</title><b>", `href="javascript:`, `"'>`, "ZgotmplZ"} {
			if at := strings.Index(page, bad); at >= 0 {
				t.Errorf("%s has %q: %.200s", path, bad, page[max(0, at-100):])
			}
		}
	}
}

// TestCirclesEnd: an object may contain itself, and a name may lead nowhere or to itself.
func TestCirclesEnd(t *testing.T) {
	t.Parallel()
	const doc = `{
		"paths": {"/v1/x": {"post": {"operationId": "x", "summary": "X", "tags": ["t"],
			"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Tree"}}}},
			"responses": {"200": {"description": "OK", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Circle"}}}},
				"204": {"$ref": "#/components/responses/none"}}}}},
		"components": {"schemas": {
			"Tree": {"type": "object", "properties": {"left": {"$ref": "#/components/schemas/Tree"},
				"all": {"type": "array", "items": {"oneOf": [{"$ref": "#/components/schemas/Tree"}, {"$ref": "#/components/schemas/Choice"}]}},
				"lost": {"$ref": "#/components/schemas/Nothing"}}},
			"Choice": {"oneOf": [{"$ref": "#/components/schemas/Choice"}, {"type": "string"}]},
			"Circle": {"$ref": "#/components/schemas/Circle"}}}}`
	list := pages(t, of([]byte(doc)))
	for _, words := range []string{"<code>left</code>", "<code>lost</code>", `href="#Circle"`} {
		if !strings.Contains(list["/docs/api/t"], words) {
			t.Errorf("the page has no %s: %s", words, list["/docs/api/t"])
		}
	}
}
