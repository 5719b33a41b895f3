package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"postern/internal/api/spec/spectest"
)

// dice are choices that a fuzzer makes. Where they end every choice is the
// first, which is always the ordinary one: no bytes make an ordinary request.
type dice struct {
	data []byte
	rare int // odd choices are made once in so many times; at least 8
}

// roll gives a number below n.
func (d *dice) roll(n int) int {
	if len(d.data) == 0 || n < 2 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return int(b) % n
}

// seldom tells, about once in eight times or less often, to do something odd.
func (d *dice) seldom() bool { return d.roll(max(d.rare, 8)) == 7 }

// of picks one of the list.
func of[T any](d *dice, list ...T) T { return list[d.roll(len(list))] }

// attempt is a request made from the document.
type attempt struct {
	op     operation
	method string
	target string
	header http.Header
	body   []byte
	plain  bool // everything in it is as described
	broken bool // something in it is certainly not
}

// generator makes requests from a document and things that are there.
type generator struct {
	*document
	*dice
	things map[string][]string // ids by their prefix; cursors
	n      int                 // requests made so far
	mark   string              // is put into every free text of a body
	keys   int                 // idempotency keys that others use too; 0: none is used twice
}

// request makes one.
func (g *generator) request(ops []operation) *attempt {
	g.n++
	a := &attempt{op: of(g.dice, ops...), header: http.Header{}, plain: true}
	a.method, a.target = a.op.method, g.path(a)
	if q := g.query(a); q != "" {
		a.target += "?" + q
	}
	g.headers(a)
	if _, takes := a.op.RequestBody.Content["application/json"]; takes {
		g.bodyOf(a)
	} else if len(a.op.RequestBody.Content) > 0 {
		g.fileOf(a)
	}
	if g.seldom() {
		a.odd(&a.method, of(g.dice, "PUT", "PATCH", "HEAD", "OPTIONS", "POST", "DELETE", "GET", "QUERY", "get"))
	}
	return a
}

// fileOf makes a body of a file, or of a form that may not be one.
func (g *generator) fileOf(a *attempt) {
	a.body = []byte("Hello")
	a.header.Set("Content-Type", of(g.dice, "text/plain", "application/octet-stream", "x", "application/json"))
	if g.seldom() {
		var body, kind string
		a.odd(&body, of(g.dice, "--b\r\nContent-Disposition: form-data; name=file\r\n\r\nHello\r\n--b--", "--b", "--b--",
			"--b\r\n\r\nHello\r\n--b--", "--b\r\nx\r\n\r\n--b--", ""))
		a.odd(&kind, of(g.dice, "multipart/form-data; boundary=b", "multipart/form-data", "multipart/form-data; boundary=\"",
			"multipart/mixed; boundary=b"))
		a.body = []byte(body)
		a.header.Set("Content-Type", kind)
	}
}

// odd sets something that is not as described, or may not be.
func (a *attempt) odd(what *string, value string) { *what, a.plain, a.broken = value, false, false }

// path fills the ids of a path in.
func (g *generator) path(a *attempt) string {
	prefix := "dev_"
	for family, of := range map[string]string{
		"/v1/messages": "msg_", "/v1/media": "med_", "/v1/contacts": "ct_", "/v1/webhooks": "whk_", "/v1/deliveries": "dlv_",
		"/v1/replays": "rpl_",
	} {
		if strings.HasPrefix(a.op.path, family) {
			prefix = of
		}
	}
	id := g.id(prefix)
	if g.seldom() {
		a.odd(&id, of(g.dice, "x", "%00", "%ff", "..%2f..", "%20", strings.Repeat("a", 3000), "", ".", prefix, "%25",
			id+"/x", id+"/", "//", strings.ToLower(id),
			id+"%0d%0aX-A:b"))
	}
	chat := theGroup().ChatID
	if strings.Contains(a.op.path, "/channels/") {
		chat = theChannel().ChatID
	}
	if strings.Contains(a.op.path, "/chats/") {
		chat = of(g.dice, chat, "+15551234567")
	}
	if strings.Contains(a.op.path, "/blocked/") {
		chat = of(g.dice, "+15551234567", "lid:123456789012345")
	}
	if strings.Contains(a.op.path, "{chatId}") && g.seldom() {
		a.odd(&chat, of(g.dice, "group:x", "+15551234567", "x", "%00", chat+"%2f", strings.Repeat("1", 3000)))
	}
	return strings.NewReplacer("{id}", id, "{chatId}", chat, "{callId}", "3EB0A1B2C3D4E5F60718",
		"{labelId}", "5", "{subgroupId}", "group:120363041234567891", "{contactId}", g.id("ct_")).Replace(a.op.path)
}

// id is one that is there, the caller's or another's, or one that is nowhere.
func (g *generator) id(prefix string) string {
	if list := g.things[prefix]; len(list) > 0 {
		return of(g.dice, list...)
	}
	return prefix + "01JD8Z3NDEKTSV4RRFFQ69G5FA"
}

func (g *generator) query(a *attempt) string {
	var parts []string
	for _, p := range a.op.Parameters {
		if p.In != "query" || g.roll(3) != 2 {
			continue
		}
		value := g.queryValue(a, p)
		parts = append(parts, url.QueryEscape(p.Name)+"="+url.QueryEscape(value))
		if g.seldom() {
			a.plain, a.broken = false, true
			parts = append(parts, parts[len(parts)-1]) // twice
		}
	}
	if g.seldom() {
		a.plain, a.broken = false, true
		parts = append(parts, of(g.dice, "unknown=1", "%zz=1", "limit=", "=", "a=%00", "cursor=%ff", "Limit=5"))
	}
	return strings.Join(parts, "&")
}

func (g *generator) queryValue(a *attempt, p parameter) string {
	if g.seldom() {
		value := ""
		a.odd(&value, of(g.dice, "0", "-1", "201", "99999999999999999999", "1.5", "x", "*", "message.*,*", "2026-13-40",
			"null", "[]", " ", "é\x01", strings.Repeat("9",
				2000)))
		return value
	}
	switch p.Name {
	case "cursor":
		a.plain = false // it may be another list's
		return of(g.dice, append(slices.Clone(g.things["cursor"]), "x")...)
	case "after":
		a.plain = false // not beside a cursor
		return g.id("evt_")
	case "deviceId":
		return g.id("dev_")
	}
	v := g.value(p.Schema, 0)
	if list, ok := v.([]any); ok {
		v = list[0]
	}
	return fmt.Sprint(v)
}

func (g *generator) headers(a *attempt) {
	if g.seldom() {
		value := ""
		a.odd(&value, of(g.dice, "text/html", "application/json;q=0", "*/*;q=0.1", ";,;", "a;", "image/*",
			"application/problem+json"))
		a.header.Set("Accept", value)
	}
	for _, p := range a.op.Parameters {
		if p.In != "header" || g.roll(2) == 0 {
			continue
		}
		switch {
		case p.Name != "Idempotency-Key":
			a.header.Set(p.Name, g.id("evt_"))
		case g.seldom():
			a.plain = false
			a.header.Set(p.Name, of(g.dice, `"`, `"a`, "a b", strings.Repeat("k", 256), "", "é", "k", `"k"`))
		case g.keys > 0 && g.roll(4) == 3:
			a.plain = false // it may have been used with another body
			a.header.Set(p.Name, fmt.Sprintf("shared%d", g.roll(g.keys)))
		default:
			a.header.Set(p.Name, fmt.Sprintf("k%d", g.n))
		}
	}
	if g.seldom() {
		a.plain = false
		a.header.Set("X-Large", strings.Repeat("a", of(g.dice, 10, 15_000, 17_000)))
	}
}

// bodyOf makes the body of a request, as described or not.
func (g *generator) bodyOf(a *attempt) {
	schema := g.form(g.tree(spectest.Pointer(a.op.place, "requestBody", "content", "application/json", "schema")))
	value, _ := g.value(schema, 0).(map[string]any)
	inWords := slices.ContainsFunc([]string{"phoneNumber", "messageId", "replyTo", "status", "delete", "contacts", "poll"},
		func(name string) bool { return value[name] != nil })
	changesNothing := a.op.OperationID == "editMessage" && value["body"] == nil
	if inWords || changesNothing || value["method"] == "code" || value["url"] != nil && a.op.method == http.MethodPatch {
		a.plain = false // what goes with what is said in words
	}
	if g.seldom() {
		g.breakValue(a, schema, value)
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was made of plain values
	}
	if good := inWordsOnly()[a.op.OperationID]; good != "" {
		a.plain = false
		if g.roll(2) == 1 {
			text, a.broken = []byte(good), false
		}
	}
	a.header.Set("Content-Type", "application/json")
	if g.seldom() {
		kind := of(g.dice, "text/plain", "application/xml", "application/json; charset=utf-16",
			"application/merge-patch+json", "x")
		if _, takes := a.op.RequestBody.Content[kind]; !takes {
			a.plain, a.broken = false, true
		}
		a.header.Set("Content-Type", kind)
	}
	if a.body = text; g.seldom() {
		a.plain, a.broken = false, true
		a.body = g.garble(text)
	}
}

// inWordsOnly has bodies of operations that take what a schema cannot say.
func inWordsOnly() map[string]string {
	return map[string]string{"answerPasskey": credentialBody(theChallenge), "setGroupPicture": aPicture(), "setProfile": aPicture()}
}

// garble makes something of a JSON object that is not one in UTF-8.
func (g *generator) garble(text []byte) []byte {
	switch g.roll(8) {
	case 0:
		return text[:len(text)/2]
	case 1:
		return append(text, '}')
	case 2:
		return []byte(`[` + string(text) + `]`)
	case 3:
		return bytes.Replace(text, []byte(`{`), []byte(`{"x":"\ud800",`), 1)
	case 4:
		return []byte(strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40))
	case 5:
		return bytes.Replace(text, []byte(`{`), []byte(`{"name":1,"name":1,"deviceId":"`+"\xff"+`",`), 1)
	case 6:
		return append(bytes.Repeat([]byte(" "), 1<<20), text...)
	}
	return []byte("\x00")
}

// breakValue puts something into an object that its schema does not allow, or
// takes away what it wants.
func (g *generator) breakValue(a *attempt, schema, value map[string]any) {
	names := slices.Sorted(maps.Keys(value))
	required, _ := schema["required"].([]any)
	a.plain = false
	switch {
	case g.roll(4) == 0 && len(required) > 0:
		name, _ := of(g.dice, required...).(string)
		delete(value, name)
		a.broken = name != "type" // without a type, it may be of another form
	case len(names) > 0 && g.roll(3) > 0:
		value[of(g.dice, names...)] = of[any](g.dice, nil, map[string]any{"a": nil}, []any{[]any{}}, -1, 1e300, 0.5, "",
			strings.Repeat("é", 40_000), true, "\u202e\u0000",
			map[string]any{})
	default:
		value[of(g.dice, "unknown", "deviceID", "__proto__", "name ", "$schema")] = of[any](g.dice, 1, nil, "x")
		a.broken = true
	}
}

// value makes what a schema describes. Strings without an example are left out
// of objects where they may be: their form is in words only.
func (g *generator) value(s map[string]any, depth int) any {
	s = g.form(s)
	if list, ok := s["enum"].([]any); ok {
		return of(g.dice, slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == nil })...)
	}
	kind := s["type"]
	if list, ok := kind.([]any); ok { // or null
		kind = list[0]
	}
	switch kind {
	case "object":
		return g.object(s, depth)
	case "array":
		if shown, ok := s["examples"].([]any); ok {
			return g.withIDs(shown[0])
		}
		items, _ := s["items"].(map[string]any)
		return []any{g.value(items, depth+1)}
	case "boolean":
		return g.roll(2) == 1
	case "integer":
		return of(g.dice, slices.DeleteFunc([]any{s["minimum"], s["maximum"]}, func(n any) bool { return n == nil })...)
	}
	if shown, ok := s["examples"].([]any); ok {
		return g.withIDs(shown[0])
	}
	return "x"
}

func (g *generator) object(s map[string]any, depth int) map[string]any {
	v := map[string]any{}
	required, _ := s["required"].([]any)
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p := g.resolve(properties[name].(map[string]any)) // schemas are objects
		_, shown := p["examples"]
		must := slices.Contains(required, any(name))
		if must || g.roll(2) == 1 && (shown || p["type"] != "string" || p["enum"] != nil) {
			v[name] = g.value(p, depth+1)
			g.marked(v, name)
		}
	}
	if free, ok := s["additionalProperties"].(map[string]any); ok && g.roll(2) == 1 {
		v["X-Order"] = g.value(free, depth+1)
		g.marked(v, "X-Order")
	}
	if v["group"] != nil {
		delete(v, "channel") // a message is in one of them, as their descriptions say
	}
	return v
}

// marked puts the mark into a member that takes any text.
func (g *generator) marked(v map[string]any, name string) {
	text, ok := v[name].(string)
	if ok && g.mark != "" && slices.Contains([]string{"name", "body", "description", "url", "X-Order"}, name) {
		v[name] = text + "-" + g.mark
	}
}

// withIDs puts an id that is there in place of an example's.
func (g *generator) withIDs(v any) any {
	switch v := v.(type) {
	case string:
		if anID.MatchString(v) {
			return g.id(v[:4])
		}
	case []any:
		list := slices.Clone(v)
		for i := range list {
			list[i] = g.withIDs(list[i])
		}
		return list
	}
	return v
}

// form follows references, and picks a form where there are several.
func (g *generator) form(s map[string]any) map[string]any {
	s = g.resolve(s)
	forms, ok := s["oneOf"].([]any)
	if !ok {
		return s
	}
	one, _ := of(g.dice, forms...).(map[string]any)
	return g.form(one)
}

// resolve follows references.
func (g *generator) resolve(s map[string]any) map[string]any {
	for {
		ref, ok := s["$ref"].(string)
		if !ok {
			return s
		}
		s = g.tree(strings.TrimPrefix(ref, "#"))
	}
}
