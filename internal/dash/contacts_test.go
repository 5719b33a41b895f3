package dash

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"postern/internal/postern"
)

// People are listed with their numbers and their conversations, by device, and found by number.
func TestContactsAreListedAndFound(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	c.says("/contacts", "No contacts yet")
	support, sales := s.connected(s.workspace(), "Support"), s.connected(s.workspace(), "Sales")
	s.comes(support, contact, "Ada <b>", "hello")
	s.comes(sales, "lid:123456789012345", "Grace", "hello")
	talk := `href="/messages/chats/` + string(support.ID) + "/" + contact + `"`
	c.says("/contacts", "Ada &lt;b&gt;", contact, talk, "Grace", "Hidden")
	for _, path := range []string{
		"/contacts?device=" + string(support.ID), "/contacts?q=" + url.QueryEscape(" "+contact),
	} {
		if p := c.says(path, "Ada &lt;b&gt;", talk); strings.Contains(p.body, "Grace") {
			t.Errorf("%s lists others", path)
		}
	}
	c.says("/contacts?q=%2B15550009999", "No contacts found")
	for _, path := range []string{"/contacts?q=ada", "/messages/chats?q=ada", "/messages/chats?q=ada&device=" + string(support.ID)} {
		if p := c.says(path, "Ada &lt;b&gt;", talk); strings.Contains(p.body, "Grace") {
			t.Errorf("%s lists others", path)
		}
	}
	c.saysNot("/messages/chats?q=ada&device="+string(sales.ID), "Ada")
	c.says("/contacts?q="+url.QueryEscape("group:120363041234567890"), "No contacts found")
	c.want(c.get("/contacts?device=dev_none"), http.StatusNotFound, "")
}

func TestContactsAreListedPageByPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	for i := range 51 {
		s.comes(d, fmt.Sprintf("+155500000%02d", i), "", "hi")
	}
	first := c.says("/contacts", "+15550000050", "+15550000001")
	if strings.Contains(first.body, "+15550000000") {
		t.Error("51 contacts are on a page of 50")
	}
	c.says(next(first), "+15550000000")
}

// Groups are listed for a device. Their members are asked from the network, which needs a connection.
func TestGroupsAreListed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	c.says("/contacts/groups", "Add a device first")
	d := s.connected(s.workspace(), "Support")
	c.says("/contacts/groups", "The groups of the account appear here")
	at := postern.TimeOf(time.Now())
	err := s.g.Sessions.ListGroups(t.Context(), d, []postern.Group{{GroupSummary: postern.GroupSummary{
		ChatID: "group:120363041234567890", Subject: "Orders <i>", Size: 3, Role: "admin", AnnounceOnly: true, CreatedAt: at,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	path := "/contacts/groups/" + string(d.ID) + "/group:120363041234567890"
	c.says("/contacts/groups", "Orders &lt;i&gt;", "Administrator", "Only administrators write", `href="`+path+`"`)
	c.want(c.get("/contacts/groups?device=dev_none"), http.StatusNotFound, "")
	c.want(c.get(path), http.StatusConflict, "")
}
