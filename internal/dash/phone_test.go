package dash

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/migrated"
)

// vendor is a simulated vendor whose phones show what contacts write.
type vendor struct {
	mu    sync.Mutex
	wrote []gateway.SandboxInbound
	files []string
	calls []string // from whom, and of what kind
}

func (v *vendor) Of(postern.WorkspaceID) (gateway.SandboxNetwork, error) { return v, nil }

func (*vendor) Scan(context.Context, string, string) error               { return nil }
func (*vendor) EnterCode(context.Context, string, string) error          { return nil }
func (*vendor) Fault(context.Context, string, string) error              { return nil }
func (*vendor) SetContactPicture(string, []byte) error                   { return nil }
func (*vendor) SetContact(context.Context, string, string, string) error { return nil }

func (*vendor) SetChat(context.Context, string, gateway.SandboxChat) error { return nil }

func (*vendor) ReadOnPhone(string, string) error { return nil }

func (*vendor) Appear(string, gateway.SandboxAppearance) error { return nil }

func (*vendor) Passkey(postern.PasskeyOptions, string, string) (postern.PasskeyCredential, error) {
	return postern.PasskeyCredential{}, nil
}

func (*vendor) Receipt(context.Context, string, string, string, postern.MessageStatus) error {
	return nil
}

func (*vendor) ChangeGroup(context.Context, string, string, gateway.SandboxGroupChange) error {
	return nil
}
func (*vendor) Remember(context.Context, string, string, []gateway.SandboxPast, bool) error {
	return nil
}

func (*vendor) CreateGroup(string, string, []string) (string, error) { return "group:1203", nil }

func (*vendor) CreateChannel(string, string, string, bool) (c gateway.SandboxChannel, err error) {
	return c, nil
}

func (v *vendor) Call(_ context.Context, _, from string, c postern.Call) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls = append(v.calls, fmt.Sprint(from, " ", c))
	return "3EB0", nil
}

func (v *vendor) Inbound(_ context.Context, _ string, m gateway.SandboxInbound) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	content := ""
	if m.File != nil {
		b, err := io.ReadAll(m.File)
		if err != nil {
			return "", err
		}
		content = string(b)
	}
	v.wrote, v.files = append(v.wrote, m), append(v.files, content)
	return "3EB0" + string(rune('A'+len(v.wrote)-1)), nil
}

func (v *vendor) Phone(string) (list []gateway.PhoneMessage) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, m := range v.wrote {
		p := gateway.PhoneMessage{
			ID: "3EB0" + string(rune('A'+i)), From: m.From, Type: m.Content.Kind, Body: m.Content.Text, Extra: m.Content.Extra,
			Starred: i == 0,
		}
		if f := m.Content.Media; f != nil {
			p.Media = &gateway.PhoneMedia{MIMEType: f.MIMEType, Size: f.Size, SHA256: f.SHA256, Filename: f.Filename}
		}
		list = append(list, p)
	}
	return list
}

func (v *vendor) File(_, id string) (io.ReadCloser, postern.Media, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := int(id[len(id)-1]) - 'A'
	if i < 0 || i >= len(v.files) || v.files[i] == "" {
		return nil, postern.Media{}, postern.Errorf(postern.NotFound, "the phone shows no such file")
	}
	m := *v.wrote[i].Content.Media
	m.MIMEType = "image/png" // as it is declared
	return io.NopCloser(strings.NewReader(v.files[i])), m, nil
}

func TestContactsWriteEveryKind(t *testing.T) {
	t.Parallel()
	v := &vendor{}
	s := newSiteAt(t, store.Options{Dir: migrated.Dir(t, "")}, v, func(*Options) {})
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	phone := pathOf(d.ID) + "/phone"
	from := [2]string{"from", contact}
	c.says(phone, "linked to Support and", "Send a location", "Send a contact", "Send a poll", `type="file"`)
	for _, tt := range []struct{ kind, name, content string }{
		{"", "a.png", drawn(t)}, {"document", "../<b>.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>"},
	} {
		fields := [][2]string{from, {"body", "the caption"}, {"kind", tt.kind}}
		c.want(c.sendsFile(phone+"/write", fields, tt.name, tt.content), http.StatusSeeOther, phone)
	}
	for _, form := range []url.Values{
		{"type": {"location"}, "latitude": {"52.5163"}, "longitude": {"13.3777"}, "place": {"<i>Gate"}},
		{"type": {"contact"}, "name": {"<i>Ada"}, "phone": {"+1 555 765 4321"}, "organization": {"Engines"}},
		{"type": {"poll"}, "question": {"<i>Where?"}, "options": {"Here\r\n\r\nThere\r\n"}, "many": {"yes"}},
		{"body": {"only text"}},
	} {
		form.Set("from", contact)
		c.want(c.post(phone+"/write", form), http.StatusSeeOther, phone)
	}
	p := c.says(phone, `src="`+phone+`/files/3EB0A"`, phone+"/files/3EB0B?download", "_b_.svg", "the caption", "Starred",
		"52.51630, 13.37770", "&lt;i&gt;Gate", "&lt;i&gt;Ada", "Engines", "&lt;i&gt;Where?", "Choose any number.", "only text", "openstreetmap.org")
	if strings.Contains(p.body, "<i>") || strings.Contains(p.body, "<b>") {
		t.Error("what a stranger wrote is part of the page")
	}
	if got := v.wrote[4].Content.Poll.Options; strings.Join(got, ",") != "Here,There" {
		t.Errorf("the poll has the options %q", got)
	}
	c.want(c.get(phone+"/files/3EB0F"), http.StatusNotFound, "")
	if p := c.get(phone + "/files/3EB0A"); p.body != drawn(t) || p.header.Get("Content-Type") != "image/png" ||
		!strings.HasPrefix(p.header.Get("Content-Disposition"), "inline") {
		t.Errorf("the picture is served with %v", p.header)
	}
	if p := c.get(phone + "/files/3EB0B"); p.header.Get("Content-Type") != "image/svg+xml" ||
		!strings.HasPrefix(p.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("an SVG that calls itself PNG is served with %v", p.header)
	}
	if p := c.do(http.MethodGet, phone+"/files/3EB0B", nil, "Range", "bytes=1-3"); p.body != "svg" {
		t.Errorf("a part of a file is %q", p.body)
	}
}

func TestContactsCall(t *testing.T) {
	t.Parallel()
	v := &vendor{}
	s := newSiteAt(t, store.Options{Dir: migrated.Dir(t, "")}, v, func(*Options) {})
	c := s.setUp()
	phone := pathOf(s.connected(s.workspace(), "Support").ID) + "/phone"
	c.says(phone, "Call the device")
	form := url.Values{"type": {"call"}, "from": {"+1 555 123 4567"}}
	c.want(c.post(phone+"/write", form), http.StatusSeeOther, phone)
	c.says(phone, "The contact called the device.")
	form.Set("video", "yes")
	form.Set("group", "yes")
	c.want(c.post(phone+"/write", form), http.StatusSeeOther, phone)
	if want := []string{contact + " {false false}", contact + " {true true}"}; !slices.Equal(v.calls, want) {
		t.Errorf("the calls are %q, want %q", v.calls, want)
	}
	form.Set("from", "12")
	p := c.post(phone+"/write", form)
	if p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, "Write a phone number") ||
		!regexp.MustCompile(`name="video" value="yes" checked`).MatchString(p.body) {
		t.Errorf("a wrong number is answered %d, or the form is empty", p.status)
	}
	s.as(postern.Viewer)
	c.want(c.post(phone+"/write", form), http.StatusForbidden, "")
}

func TestRefusedContactsKeepWhatWasEntered(t *testing.T) {
	t.Parallel()
	v := &vendor{}
	s := newSiteAt(t, store.Options{Dir: migrated.Dir(t, "")}, v, func(*Options) {})
	c := s.setUp()
	phone := pathOf(s.connected(s.workspace(), "Support").ID) + "/phone"
	for name, tt := range map[string]struct {
		form url.Values
		says []string
	}{
		"number": {
			url.Values{"from": {"12"}, "body": {"kept"}}, []string{"Write a phone number", "kept"},
		},
		"degrees": {
			url.Values{"type": {"location"}, "latitude": {"north"}, "longitude": {"1"}},
			[]string{"Write degrees as numbers", `value="north"`},
		},
		"infinity": {
			url.Values{"type": {"location"}, "latitude": {"NaN"}, "longitude": {"1e400"}}, []string{"degrees"},
		},
		"contact": {
			url.Values{"type": {"contact"}, "name": {"Ada"}, "phone": {"12"}},
			[]string{"Write a phone number", `value="Ada"`},
		},
		"poll": {
			url.Values{"type": {"poll"}, "question": {"Where?"}, "options": {"Here"}},
			[]string{"2 to 12 options", "\nHere</textarea>"},
		},
	} {
		if tt.form.Get("from") == "" {
			tt.form.Set("from", contact)
		}
		p := c.post(phone+"/write", tt.form)
		for _, text := range tt.says {
			if p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, text) {
				t.Errorf("%s is answered %d without %q", name, p.status, text)
			}
		}
	}
	s.as(postern.Viewer)
	c.want(c.sendsFile(phone+"/write", [][2]string{{"from", contact}}, "a.txt", "x"), http.StatusForbidden, "")
	if len(v.wrote) != 0 {
		t.Errorf("%d messages were written", len(v.wrote))
	}
}

func TestEachFaultHasWords(t *testing.T) {
	t.Parallel()
	for _, kind := range gateway.SandboxFaults() {
		if faultWords(kind) == "" {
			t.Errorf("the button of %q has no label", kind)
		}
	}
}
