package schema

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
)

type text struct {
	_    struct{} `additionalProperties:"false"`
	Type string   `json:"type" enum:"text"`
	Body string   `json:"body" minLength:"1" maxLength:"3"`
}

type location struct {
	_         struct{} `additionalProperties:"false"`
	Type      string   `json:"type" enum:"location"`
	Latitude  float64  `json:"latitude" minimum:"-90" maximum:"90"`
	Longitude float64  `json:"longitude" exclusiveMinimum:"-180" maximum:"180"`
}

// content is a text or a location.
type content struct{}

func (content) Schema(r huma.Registry) *huma.Schema {
	text := r.Schema(reflect.TypeFor[text](), true, "")
	location := r.Schema(reflect.TypeFor[location](), true, "")
	return &huma.Schema{
		Type: huma.TypeObject, OneOf: []*huma.Schema{text, location},
		Discriminator: &huma.Discriminator{
			PropertyName: "type",
			Mapping:      map[string]string{"text": text.Ref, "location": location.Ref},
		},
	}
}

// place is a text or a location, and a text without a type.
type place struct{}

// usual is the form of a body without a type.
type usual struct {
	_    struct{} `additionalProperties:"false"`
	Body string   `json:"body" minLength:"1" maxLength:"3"`
}

func (place) Schema(r huma.Registry) *huma.Schema {
	return withoutType(r, content{}.Schema(r), reflect.TypeFor[usual]())
}

// withoutType is the choice between a typed body and one of a form that has no type.
func withoutType(r huma.Registry, typed *huma.Schema, usual reflect.Type) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, OneOf: []*huma.Schema{typed, r.Schema(usual, true, "")}}
}

type option struct {
	_    struct{} `additionalProperties:"false"`
	Name string   `json:"name"`
}

// everything has each keyword that a check knows.
type everything struct {
	_       struct{}          `additionalProperties:"false"`
	Number  string            `json:"number,omitempty" pattern:"^\\+[0-9]{7,15}$" example:"+15551234567"`
	Code    string            `json:"code,omitempty" pattern:"^[a-z]+$"`
	At      string            `json:"at,omitempty" format:"date-time"`
	Email   string            `json:"email,omitempty" format:"email"`
	URL     string            `json:"url,omitempty" format:"uri"`
	Ratio   float64           `json:"ratio,omitempty" minimum:"0" maximum:"1.5"`
	Count   int               `json:"count,omitempty" minimum:"1" maximum:"9"`
	Days    int               `json:"days,omitempty" enum:"1,7,2592000"`
	Options []option          `json:"options,omitempty" nullable:"false" minItems:"2" maxItems:"3"`
	Tags    map[string]string `json:"tags,omitempty"`
	On      bool              `json:"on,omitempty"`
	Name    string            `json:"name,omitempty" minLength:"1"`
	Content *content          `json:"content,omitempty"`
	Place   *place            `json:"place,omitempty"`
	List    []content         `json:"list,omitempty" nullable:"false"`
}

// prepared returns a checker and the schema of T.
func prepared[T any](tb testing.TB) (*Checker, *huma.Schema) {
	tb.Helper()
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	s := registry.Schema(reflect.TypeFor[T](), true, "")
	c := NewChecker(registry)
	if err := c.Prepare(s); err != nil {
		tb.Fatal(err)
	}
	return c, s
}

// TestKeywords has a good and a bad body for each keyword. want is "" for a body
// that is accepted, the places with their details, or a reason.
func TestKeywords(t *testing.T) {
	c, s := prepared[everything](t)
	for _, tt := range []struct{ body, want string }{
		{`{}`, ""},
		{`{"number":"+15551234567","code":"abc"}`, ""},
		{`{"number":"5551234567"}`, "/number expected a text of the form +15551234567"},
		{`{"code":"ABC"}`, "/code expected a text that matches ^[a-z]+$"},
		{`{"at":"2026-12-01T09:00:00+01:00","email":"a@example.com","url":"https://example.com/a?b"}`, ""},
		{`{"at":"tomorrow"}`, "/at expected a time in RFC 3339 form, such as 2026-12-01T09:00:00.000Z"},
		{`{"email":"Ada <a@example.com>"}`, "/email expected an email address, such as name@example.com"},
		{`{"url":"/a"}`, "/url expected an absolute URI, such as https://example.com/a"},

		{`{"days":2592000}`, ""},
		{`{"days":8}`, "/days expected one of 1, 7, 2592000"},
		{`{"days":7.0}`, "/days expected a whole number"},

		{`{"ratio":0.25}`, ""},
		{`{"ratio":1.5e0}`, ""},
		{`{"ratio":1}`, ""},
		{`{"ratio":1.5000001}`, "/ratio expected at most 1.5"},
		{`{"ratio":-1e-300}`, "/ratio expected at least 0"},
		{`{"ratio":1e400}`, "/ratio expected a number"},
		{`{"ratio":"1"}`, "/ratio expected a number"},
		{`{"count":9}`, ""},
		{`{"count":1.5}`, "/count expected a whole number"},
		{`{"count":1.0}`, "/count expected a whole number"},
		{`{"count":1e0}`, "/count expected a whole number"},
		{`{"count":0}`, "/count expected at least 1"},

		{`{"options":[{"name":"a"},{"name":"b"}]}`, ""},
		{`{"options":[{"name":"a"}]}`, "/options expected at least 2 items"},
		{`{"options":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}`, "/options expected at most 3 items"},
		{`{"options":[{"name":"a"},{"name":7,"x":1},{}]}`, "/options/1/name expected a string; /options/1/x there is no such field; /options/2/name this field is required"},
		{`{"options":{}}`, "/options expected an array"},
		{`{"tags":{"a.b":"x","c[0]":"y"}}`, ""},
		{`{"tags":{"a.b":1,"c[0]":true,"d/e~f":null}}`, "/tags/a.b expected a string; /tags/c[0] expected a string; /tags/d~1e~0f expected a string"},
		{`{"on":"yes"}`, "/on expected a boolean"},
		{`{"name":""}`, "/name expected at least 1 character"},

		{`{"content":{"type":"text","body":"Hi"}}`, ""},
		{`{"content":{"latitude":52.52,"longitude":13.405,"type":"location"}}`, ""},
		{`{"content":{"type":"text","latitude":1}}`, "/content/body this field is required; /content/latitude this field is for another type: location"},
		{`{"content":{"latitude":91,"longitude":-180,"type":"location"}}`, "/content/latitude expected at most 90; /content/longitude expected more than -180"},
		{`{"content":{"type":"poll","body":"Hi"}}`, "/content/type expected one of location, text"},
		{`{"content":{"body":"Hi"}}`, "/content/type this field is required"},
		{`{"content":{"type":7}}`, "/content/type expected a string"},
		{`{"content":[]}`, "/content expected an object"},
		{`{"list":[{"type":"text","body":"a"},{"type":"location","latitude":"x","longitude":0}]}`, "/list/1/latitude expected a number"},

		{`{"place":{"body":"Hi"}}`, ""},
		{`{"place":{"body":"Hi","type":"text"}}`, ""},
		{`{"place":{"latitude":52.52,"longitude":13.405,"\u0074ype":"location"}}`, ""},
		{`{"place":{"latitude":52.52,"longitude":13.405,"type":"location"}}`, ""},
		{`{"place":{}}`, "/place/body this field is required"},
		{`{"place":{"latitude":52.52,"longitude":13.405}}`, "/place/body this field is required; /place/latitude this field is for another type: location; /place/longitude this field is for another type: location"},
		{`{"place":{"type":"poll","body":"long"}}`, "/place/body expected at most 3 characters; /place/type expected one of location, text"},
		{`{"place":{"type":7}}`, "/place/body this field is required; /place/type expected a string"},
		{`{"place":{"type":{"a":1},"body":7}}`, "/place/body expected a string; /place/type expected a string"},
		{`{"place":{"Type":"location","body":"a"}}`, "malformed-request"},
		{`{"place":{"type":"\u0000","body":"a"}}`, "malformed-request"},

		{`{"content":{"type":"text","body":"Hi","body":"a"}}`, "malformed-request"},
		{`{"content":{"type":"text","Body":"Hi"}}`, "malformed-request"},
		{`{"content":{"type":"text","body":"\u0000"}}`, "malformed-request"},
		{`{"content":{"type":"text","body":"Hi"`, "malformed-request"},
		{`{"list":[{"type":"text","x":` + strings.Repeat("[", 29) + strings.Repeat("]", 29) + `}]}`, "/list/0/body this field is required; /list/0/x there is no such field"},
		{`{"list":[{"type":"text","x":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `}]}`, "malformed-request"},
	} {
		if got := shown(c.Check([]byte(tt.body), s)); got != tt.want {
			t.Errorf("%s\n got %q\nwant %q", tt.body, got, tt.want)
		}
	}
}

// shown writes an error as the places and their details, or as its reason.
func shown(err error) string {
	if err == nil {
		return ""
	}
	e, ok := err.(*postern.Error) //nolint:errorlint // Check returns nothing else
	if !ok {
		return err.Error()
	}
	if e.Reason != postern.ValidationFailed {
		return string(e.Reason)
	}
	var list []string
	for _, f := range e.Fields {
		list = append(list, f.Pointer+" "+f.Detail)
	}
	return strings.Join(list, "; ")
}

// TestEveryFormat has a text that is accepted and one that is not for each format.
func TestEveryFormat(t *testing.T) {
	for name, texts := range map[string][2]string{
		"date-time": {"2026-12-01T09:00:00Z", "2026-12-01"}, "date": {"2026-12-01", "2026-13-01"}, "uri": {"tel:+1555", "a b"},
		"uri-reference": {"../a", "%zz"}, "email": {"a@b.c", "a"}, "uuid": {"123e4567-e89b-12d3-a456-426614174000", "123e4567"},
		"ipv4": {"192.0.2.1", "2001:db8::1"}, "ipv6": {"2001:db8::1", "192.0.2.1"},
	} {
		f, ok := formats[name]
		if !ok || !f.valid(texts[0]) || f.valid(texts[1]) {
			t.Errorf("the format %s does not tell %q from %q", name, texts[0], texts[1])
		}
	}
}

// TestPrepareRefusesWhatNoCheckHonours: a schema must not promise more.
func TestPrepareRefusesWhatNoCheckHonours(t *testing.T) {
	one, two := 1, 2.0
	plain, open := &huma.Schema{Type: huma.TypeString}, &huma.Schema{Type: huma.TypeObject}
	typed := func(forms ...*huma.Schema) *huma.Schema {
		d := &huma.Discriminator{PropertyName: "type", Mapping: map[string]string{}}
		for i := range forms {
			d.Mapping[string(rune('a'+i))] = ""
		}
		return &huma.Schema{Type: huma.TypeObject, OneOf: forms, Discriminator: d}
	}
	for name, s := range map[string]*huma.Schema{
		"multipleOf":                         {Type: huma.TypeInteger, MultipleOf: &two},
		"uniqueItems":                        {Type: huma.TypeArray, UniqueItems: true, Items: plain},
		"minProperties":                      {Type: huma.TypeObject, MinProperties: &one},
		"allOf":                              {Type: huma.TypeObject, AllOf: []*huma.Schema{plain}},
		"no discriminator":                   {OneOf: []*huma.Schema{plain, plain}},
		"encoding":                           {Type: huma.TypeString, ContentEncoding: "base32"},
		"enum":                               {Type: huma.TypeNumber, Enum: []any{1}},
		"format":                             {Type: huma.TypeString, Format: "iri"},
		"pattern":                            {Type: huma.TypeString, Pattern: "("},
		"type":                               {Type: "null"},
		"does not require the discriminator": typed(plain, plain),
		"that allows one":                    {Type: huma.TypeObject, OneOf: []*huma.Schema{typed(), open}},
	} {
		c := NewChecker(huma.NewMapRegistry("#/", huma.DefaultSchemaNamer))
		inner := &huma.Schema{
			Type: huma.TypeObject,
			Properties: map[string]*huma.Schema{"a": {
				Type:  huma.TypeArray,
				Items: s,
			}},
		}
		if err := c.Prepare(inner); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// source is one of two forms, each known by a field of its own.
type source struct{}

func (source) Schema(r huma.Registry) *huma.Schema {
	form := func(t reflect.Type) *huma.Schema { return r.Schema(t, true, "") }
	return &huma.Schema{
		Type: huma.TypeObject, OneOf: []*huma.Schema{form(reflect.TypeFor[byID]()), form(reflect.TypeFor[inline]())},
	}
}

type byID struct {
	_    struct{} `additionalProperties:"false"`
	ID   string   `json:"id"`
	Name string   `json:"name,omitempty"`
}

type inline struct {
	_    struct{} `additionalProperties:"false"`
	Name string   `json:"name"`
	Data []byte   `json:"data" minLength:"1"`
}

func TestFormsAreKnownByTheirFields(t *testing.T) {
	c, s := prepared[struct {
		_    struct{} `additionalProperties:"false"`
		File *source  `json:"file"`
	}](t)
	for body, want := range map[string]string{
		`{"id":"x"}`:                       "",
		`{"id":"x","name":"y"}`:            "",
		`{"name":"y","data":"SGk="}`:       "",
		`{"data":"SGk="}`:                  "/file/name",
		`{"id":"x","data":"SGk="}`:         "/file/data",
		`{"id":"x","extra":1}`:             "/file/extra",
		`{}`:                               "/file expected one of the fields id, data",
		`{"name":"y"}`:                     "/file expected one of the fields id, data",
		`{"ID":"x"}`:                       "malformed-request",
		`"x"`:                              "/file expected an object",
		`[]`:                               "/file expected an object",
		`{"name":"y","data":""}`:           "/file/data",
		`{"name":"y","data":"SGk"}`:        "/file/data expected base64",
		`{"name":"y","data":"SGl="}`:       "/file/data expected base64",
		`{"name":"y","data":"SG\nk="}`:     "/file/data expected base64",
		`{"name":"y","data":"-_8="}`:       "/file/data expected base64",
		`{"name":"y","data":"SGk=\u0000"}`: "malformed-request",
	} {
		err := c.Check([]byte(`{"file":`+body+`}`), s)
		if got := strings.ReplaceAll(shown(err), ": ", " "); (want == "") != (err == nil) || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", body, got, want)
		}
	}
}

func TestOneRefusalNamesTwentyPlaces(t *testing.T) {
	c, s := prepared[everything](t)
	for name, body := range map[string]string{
		"members": `{"tags":{` + members(500, "7") + `}}`,
		"items":   `{"list":[` + strings.TrimSuffix(strings.Repeat(`{"type":"text"},`, 500), ",") + `]}`,
	} {
		err := c.Check([]byte(body), s)
		if got := strings.Count(shown(err), ";") + 1; got < MaxPlaces || got > MaxPlaces+1 {
			t.Errorf("%s: %d places", name, got)
		}
	}
}

// members writes n members with different names.
func members(n int, value string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"m%d":%s`, i, value)
	}
	return strings.Join(list, ",")
}
