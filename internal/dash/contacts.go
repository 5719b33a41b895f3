package dash

import (
	"net/http"
	"net/url"
	"strings"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

// list shows the people whom the devices know.
func (d contacts) list(w http.ResponseWriter, r *http.Request, v visit) error {
	names, err := d.deviceNames(r.Context(), v, postern.DeviceID(r.FormValue("device")))
	if err != nil {
		return err
	}
	view := page.ContactsView{Find: page.Field{Value: r.FormValue("q")}, Device: r.FormValue("device")}
	view.Devices = append([]page.Choice{{Label: "All"}}, choices(names, view.Device)...)
	if err := d.fill(r, v, names, &view); err != nil {
		return err
	}
	return d.write(w, r, http.StatusOK, page.Contacts(d.frame(r, v, "Contacts", "/contacts"), view))
}

// personIn returns the query for what a search field has: a number or a LID, or else a part of a name.
func personIn(find string) (q gateway.ContactQuery) {
	find = strings.TrimSpace(find)
	chat, err := postern.ParseChat(find)
	if err == nil && (chat == "" || postern.IsDirect(chat)) {
		return gateway.ContactQuery{ChatID: chat}
	}
	return gateway.ContactQuery{Text: find}
}

// fill adds the people of the chosen device, or those who were searched for, to the view.
func (d contacts) fill(r *http.Request, v visit, names map[postern.DeviceID]string, view *page.ContactsView) error {
	q := personIn(view.Find.Value)
	q.DeviceID, q.Page = postern.DeviceID(view.Device), paging.Page{Cursor: r.FormValue("after")}
	list, err := d.g.Contacts.List(r.Context(), v.caller, q)
	if err != nil {
		return err
	}
	for _, c := range list.Data {
		d.addNames(r.Context(), v, names, c.DeviceIDs)
		view.Contacts = append(view.Contacts, contactOf(c, names))
	}
	if list.Next != "" {
		view.More = "/contacts?" + url.Values{"q": {view.Find.Value}, "device": {view.Device}, "after": {list.Next}}.Encode()
	}
	return nil
}

func contactOf(c postern.KnownContact, names map[postern.DeviceID]string) page.Contact {
	p := page.Contact{
		Name: string(c.Name), Number: string(c.PhoneNumber), Chat: c.ChatID, Since: c.CreatedAt.Std(),
		Business: c.Names.Business != "",
	}
	for _, id := range c.DeviceIDs {
		if name := names[id]; name != "" {
			p.Devices = append(p.Devices, page.Choice{Value: string(id), Label: name})
		}
	}
	return p
}

// groups shows the groups that a device is in.
func (d contacts) groups(w http.ResponseWriter, r *http.Request, v visit) error {
	names, err := d.deviceNames(r.Context(), v, postern.DeviceID(r.FormValue("device")))
	if err != nil {
		return err
	}
	view := page.GroupsView{Device: r.FormValue("device"), Devices: choices(names, r.FormValue("device"))}
	if view.Device == "" && len(view.Devices) > 0 {
		view.Device = view.Devices[0].Value
	}
	if view.Device != "" {
		if err := d.fillGroups(r, v, &view); err != nil {
			return err
		}
	}
	return d.write(w, r, http.StatusOK, page.Groups(d.frame(r, v, "Groups", "/contacts"), view))
}

func (d contacts) fillGroups(r *http.Request, v visit, view *page.GroupsView) error {
	list, err := d.g.Groups.List(
		r.Context(), v.caller, postern.DeviceID(view.Device), paging.Page{Cursor: r.FormValue("after")},
	)
	if err != nil {
		return err
	}
	for _, g := range list.Data {
		view.Groups = append(view.Groups, groupOf(g))
	}
	if list.Next != "" {
		view.More = "/contacts/groups?" + url.Values{"device": {view.Device}, "after": {list.Next}}.Encode()
	}
	return nil
}

func groupOf(g postern.GroupSummary) page.Group {
	return page.Group{
		Chat: g.ChatID, Subject: g.Subject, Description: g.Description, Members: g.Size, Role: g.Role,
		AnnounceOnly: g.AnnounceOnly, Since: g.CreatedAt.Std(),
	}
}

// group shows a group with its members, as the network has them now.
func (d contacts) group(w http.ResponseWriter, r *http.Request, v visit) error {
	device, chat := chatIn(r)
	one, err := d.g.Devices.Get(r.Context(), v.caller, device)
	if err != nil {
		return err
	}
	g, err := d.g.Groups.Get(r.Context(), v.caller, device, chat)
	if err != nil {
		return err
	}
	view := page.GroupView{Group: groupOf(g.GroupSummary), Device: string(device), DeviceName: one.Name}
	for _, p := range g.Participants {
		view.People = append(view.People, page.Member{
			Number: string(p.PhoneNumber), LID: string(p.LID), Role: p.Role, Self: p.PhoneNumber == one.PhoneNumber,
		})
	}
	return d.write(w, r, http.StatusOK, page.GroupPage(d.frame(r, v, "Group", "/contacts"), view))
}
