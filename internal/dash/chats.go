package dash

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

// list shows the inbox: the conversations of one device or of all, or the messages that a search finds.
func (d chats) list(w http.ResponseWriter, r *http.Request, v visit) error {
	names, err := d.deviceNames(r.Context(), v, postern.DeviceID(r.FormValue("device")))
	if err != nil {
		return err
	}
	view := page.ChatsView{
		Device: r.FormValue("device"), Send: v.may(postern.MessagesWrite), Find: strings.TrimSpace(r.FormValue("q")),
		Status: r.FormValue("status"), Days: daysIn(r, nil), Beside: r.FormValue("beside") != "", Open: r.FormValue("beside"),
	}
	if show := r.FormValue("show"); show == "unread" || show == "mine" || show == "archived" {
		view.Show = show
	}
	if len(names) > 0 {
		view.Devices = append([]page.Choice{{Label: "All"}}, choices(names, view.Device)...)
	}
	fill := d.fill
	if view.Searches() {
		fill = d.find
	}
	if err := fill(r, v, names, &view); err != nil {
		return err
	}
	return d.write(w, r, http.StatusOK, page.Chats(d.frame(r, v, "Inbox", "/messages/chats"), view))
}

// find adds the messages that were searched for to the view.
func (d chats) find(r *http.Request, v visit, names map[postern.DeviceID]string, view *page.ChatsView) error {
	if id, is := messageID(view.Find); is {
		m, err := d.g.Messages.Get(r.Context(), v.caller, id)
		if postern.ReasonOf(err) == postern.NotFound || postern.ReasonOf(err) == postern.ResourceNotAllowed {
			return nil
		}
		view.Found = []page.Message{found(m, names)}
		return err
	}
	if err := d.people(r, v, names, view); err != nil {
		return err
	}
	q, err := search(r)
	if wrong, ok := faults(err); ok {
		view.Wrong = cmp.Or(wrong["q"], wrong["from"], wrong["until"])
		return nil
	}
	list, err := d.g.Messages.List(r.Context(), v.caller, q)
	same := asked(r, "beside")
	if err == nil && len(list.Data) == 0 && list.Next == "" && mayBeWords(view.Find, q) {
		q.ChatID, q.Text = "", view.Find
		same.Set("in", inWords)
		list, err = d.g.Messages.List(r.Context(), v.caller, q)
	}
	for _, m := range list.Data {
		view.Found = append(view.Found, found(m, names))
	}
	if list.Next != "" {
		same.Set("after", list.Next)
		view.More = "/messages/chats?" + same.Encode()
	}
	return err
}

// peopleFound is how many people with a name a search shows.
const peopleFound = 8

// people adds the people with the name that was searched for to the view.
func (d chats) people(r *http.Request, v visit, names map[postern.DeviceID]string, view *page.ChatsView) error {
	q := personIn(view.Find)
	if q.Text == "" || r.FormValue("after") != "" || !v.may(postern.ContactsRead) {
		return nil
	}
	q.DeviceID, q.Page = postern.DeviceID(view.Device), paging.Page{Limit: peopleFound}
	list, err := d.g.Contacts.List(r.Context(), v.caller, q)
	for _, c := range list.Data {
		c.DeviceIDs = c.DeviceIDs[:min(len(c.DeviceIDs), peopleFound)]
		d.addNames(r.Context(), v, names, c.DeviceIDs)
		view.People = append(view.People, contactOf(c, names))
	}
	return err
}

// found returns a message of a search, which leads to its place in its conversation.
func found(m postern.Message, names map[postern.DeviceID]string) page.Message {
	shown := messageOf(m, names, gistLength)
	if m.ChatID != "" {
		shown.Found = pathInChat(m)
	}
	return shown
}

// chatsShown is how many conversations the inbox lists when none is open: twice as many as a laptop's screen has room
// for. The page asks for all of them again whenever there is news.
const chatsShown = 30

// fill adds the chats of the chosen device, or of all, to the view.
func (d chats) fill(r *http.Request, v visit, names map[postern.DeviceID]string, view *page.ChatsView) error {
	after := r.FormValue("after")
	q := gateway.ChatQuery{
		DeviceID: postern.DeviceID(view.Device), Unread: view.Show == "unread",
		Page: paging.Page{Cursor: after},
	}
	if view.Open == "" {
		q.Page.Limit = chatsShown
	}
	if view.Show == "archived" {
		q.Archived = new(true)
	}
	if view.Show == "mine" {
		q.Assignee = v.user()
	}
	list, err := d.g.Chats.List(r.Context(), v.caller, q)
	if err != nil {
		return err
	}
	for _, c := range list.Data {
		m := messageOf(*c.LatestMessage, names, gistLength)
		m.Unread, m.Archived, m.Muted = c.UnreadCount, c.Archived, c.Muted
		m.Labels, m.Assignee = labelNames(c.Labels), c.Note.Email
		switch m.Name = string(c.Name); c.Kind {
		case postern.GroupChat:
			m.Name = cmp.Or(m.Name, "Group")
		case postern.ChannelChat:
			m.Name = cmp.Or(m.Name, "Channel")
		case postern.StatusChat:
			m.Name = statusName
		}
		view.Chats = append(view.Chats, m)
	}
	asked := url.Values{"device": {view.Device}, "show": {view.Show}, "beside": {view.Open}}
	if after == "" {
		view.Live = "/messages/chats?" + asked.Encode()
	}
	if list.Next != "" {
		asked.Set("after", list.Next)
		view.More = "/messages/chats?" + asked.Encode()
	}
	return nil
}

// mostLabels is how many labels of a conversation a list names.
const mostLabels = 4

// labelNames returns the first labels of a conversation, and how many others there are.
func labelNames(labels []postern.Label) (names []string) {
	for i, l := range labels {
		if i == mostLabels {
			return append(names, fmt.Sprintf("and %d more", len(labels)-i))
		}
		names = append(names, l.Name)
	}
	return names
}

// chatIn returns the device and the chat in the path.
func chatIn(r *http.Request) (device postern.DeviceID, chat string) {
	return postern.DeviceID(r.PathValue("device")), r.PathValue("chat")
}

func chatPath(device postern.DeviceID, chat string) string {
	return "/messages/chats/" + url.PathEscape(string(device)) + "/" + url.PathEscape(chat)
}

func (d chats) show(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showAs(w, r, v, http.StatusOK, page.ChatView{})
}

// showAs shows a conversation, with the outcome of a form if there was one.
func (d chats) showAs(w http.ResponseWriter, r *http.Request, v visit, status int, view page.ChatView) error {
	device, chat := chatIn(r)
	one, err := d.g.Devices.Get(r.Context(), v.caller, device)
	if err != nil {
		return err
	}
	after, err := d.start(r, v)
	if err != nil {
		return err
	}
	list, err := d.g.Messages.List(r.Context(), v.caller, gateway.MessageQuery{
		DeviceID: device, ChatID: chat, Page: paging.Page{Cursor: after},
	})
	if err != nil {
		return err
	}
	view.Device, view.DeviceName, view.Chat, view.Newest = string(device), one.Name, chat, after == ""
	view.Down = whyDown(one)
	reachable, err := d.describe(r, v, &view)
	if err != nil {
		return err
	}
	if len(list.Data) == 0 && !reachable {
		return postern.Errorf(postern.NotFound, "this conversation does not exist")
	}
	if err := d.addSettings(r, v, &view); err != nil {
		return err
	}
	view.Send, view.Draft = reachable && v.may(postern.MessagesWrite), fresh(view.Draft)
	if err := d.choose(r, v, &view); err != nil {
		return err
	}
	for _, m := range slices.Backward(list.Data) {
		shown := messageOf(m, nil, bubbleLength)
		if postern.IsChannel(chat) {
			shown.Name = view.Name // nobody sees who wrote a post
		}
		if shown.Quote, err = d.quoteOf(r.Context(), v, m, list.Data); err != nil {
			return err
		}
		if view.Send {
			shown.May = mayWith(m, time.Now())
		}
		view.Messages = append(view.Messages, shown)
		if !shown.Out && shown.Name != "" && postern.IsDirect(chat) {
			view.Name = shown.Name
		}
	}
	if list.Next != "" {
		view.Older = chatPath(device, chat) + "?after=" + url.QueryEscape(list.Next)
	}
	return d.write(w, r, status, page.ChatPage(d.frame(r, v, "Conversation", "/messages/chats"), view))
}

// whyDown returns a sentence that says why a device cannot send now, and what happens to messages until it can. It returns
// "" if the device is connected.
func whyDown(d postern.Device) string {
	switch d.Status {
	case postern.Connected:
		return ""
	case postern.Paused:
		return d.Name + " is paused. Messages are sent once it is resumed."
	case postern.Connecting, postern.Disconnected, postern.Restricted, postern.Conflict:
		return d.Name + " is not connected. Messages are sent once it reconnects."
	case postern.Unlinked, postern.Linking, postern.LoggedOut, postern.Banned:
	}
	return d.Name + " is not linked to an account. Link it to send messages."
}

// start returns the cursor of the part of a conversation that a request asks for: near a message,
// or at a cursor; "" is the newest part.
func (d chats) start(r *http.Request, v visit) (cursor string, err error) {
	near := postern.MessageID(r.FormValue("near"))
	if near == "" || r.FormValue("after") != "" {
		return r.FormValue("after"), nil
	}
	cursor, err = d.g.Messages.Near(r.Context(), v.caller, near)
	if reason := postern.ReasonOf(err); reason == postern.NotFound || reason == postern.ResourceNotAllowed {
		return "", nil // it is no longer kept
	}
	return cursor, err
}

// pathInChat is where its conversation shows a message.
func pathInChat(m postern.Message) string {
	return chatPath(m.DeviceID, m.ChatID) + "?near=" + url.QueryEscape(string(m.ID)) + "#m-" + string(m.ID)
}

// editTime is how long a message that was sent can be edited.
const editTime = 15 * time.Minute

// mayWith returns what the account can do with a message.
func mayWith(m postern.Message, now time.Time) page.May {
	switch {
	case m.Content.Kind == postern.KindCall:
		return page.May{}
	case postern.IsChannel(m.ChatID) && m.Status != postern.Scheduled:
		return page.May{Cancel: m.Status == postern.Queued}
	case m.State.DeletedAt != 0 || m.Error != nil || m.Status.Rank() == 0 && m.Status != postern.Received:
		return page.May{}
	case m.Status == postern.Scheduled:
		return page.May{Edit: m.Content.Kind.HasText(), Cancel: true}
	}
	own := m.Direction == postern.Outbound
	if m.ChatID == postern.StatusChat {
		return page.May{Delete: own, Cancel: m.Status == postern.Queued}
	}
	late := m.SentAt > 0 && now.Sub(m.SentAt.Std()) >= editTime
	return page.May{
		Reply: true, React: true, Delete: own, Pin: true, Star: true, Vote: m.Content.Poll != nil,
		Cancel: m.Status == postern.Queued,
		Edit:   own && m.Content.CanBeEdited() && !late,
	}
}

// choose adds the message that the person wants to do something with.
func (d chats) choose(r *http.Request, v visit, view *page.ChatView) error {
	id := postern.MessageID(r.FormValue("message"))
	if id == "" || !view.Send {
		return nil
	}
	m, err := d.chosen(r, v, id)
	if err != nil {
		return err
	}
	view.About, view.Mode = messageOf(m, nil, gistLength), "options"
	view.About.May = mayWith(m, time.Now())
	switch do := r.FormValue("do"); {
	case do == "reply" && view.About.May.Reply, do == "delete" && view.About.May.Delete,
		do == "vote" && view.About.May.Vote:
		view.Mode = do
	case do == "edit" && view.About.May.Edit:
		view.Mode = do
		view.Body.Value = cmp.Or(view.Body.Value, m.Content.Text)
	}
	return nil
}

// chosen finds a message of the conversation.
func (d chats) chosen(r *http.Request, v visit, id postern.MessageID) (postern.Message, error) {
	m, err := d.g.Messages.Get(r.Context(), v.caller, id)
	if device, chat := chatIn(r); err == nil && (m.DeviceID != device || m.ChatID != chat) {
		err = postern.Errorf(postern.NotFound, "the message belongs to another conversation")
	}
	return m, err
}

// post does what a form of a conversation asks for: it sends a message, or changes one.
func (d chats) post(w http.ResponseWriter, r *http.Request, v visit) error {
	do := r.PostFormValue("do")
	if do == "" || do == "reply" {
		return d.reply(w, r, v)
	}
	if said := settingSaid(do); said != "" {
		return d.set(w, r, v, do, said)
	}
	m, err := d.chosen(r, v, postern.MessageID(r.PostFormValue("message")))
	if err != nil {
		return err
	}
	said, err := d.change(r, v, m, do)
	if wrong, ok := faults(err); ok || isImpossible(err) {
		draft := page.Draft{Body: page.Field{Value: written(r), Error: wrong["body"]}, Problem: "Nothing was changed."}
		if wrong["body"] == "" {
			draft.Problem = cmp.Or(wrong["emoji"], wrong["options"], word(err.Error())+".")
		}
		return d.showAs(w, r, v, http.StatusUnprocessableEntity, page.ChatView{Draft: draft})
	}
	if err != nil {
		return err
	}
	return d.done(w, r, said, chatPath(m.DeviceID, m.ChatID)+"#m-"+string(m.ID))
}

// addSettings adds what the account has set for a conversation with a person or in a group.
func (d chats) addSettings(r *http.Request, v visit, view *page.ChatView) error {
	id, wrong := postern.ParseChat(view.Chat)
	if can := wrong == nil && (postern.IsDirect(id) || postern.IsGroup(id)); !can {
		return nil
	}
	c, err := d.g.Chats.Get(r.Context(), v.caller, postern.DeviceID(view.Device), view.Chat)
	if err != nil && postern.ReasonOf(err) != postern.NotFound { // it has no messages yet
		return err
	}
	view.Archived, view.Muted, view.Settings = c.Archived, c.Muted, v.may(postern.MessagesWrite)
	view.Notable = err == nil && view.Settings
	note, err := d.g.Chats.Note(r.Context(), v.caller, postern.DeviceID(view.Device), view.Chat)
	if err != nil {
		return err
	}
	view.Assignee, view.Mine, view.NoteSeen = note.Email, note.Assignee == v.user(), stateOf(note.Text)
	if !view.Typed {
		view.Note = note.Text
	}
	all, err := d.g.Labels.List(r.Context(), v.caller, postern.DeviceID(view.Device))
	for _, l := range all {
		view.Labels = append(view.Labels, page.LabelOn{ID: l.ID, Name: l.Name, On: slices.Contains(c.Labels, l)})
	}
	return err
}

// settingSaid is what is said when the settings of a conversation were changed; "" for other actions.
func settingSaid(do string) string {
	return map[string]string{
		"read": "The conversation is being marked as read.", "archive": "The conversation was archived.",
		"unarchive": "The conversation is no longer archived.", "mute": "The conversation was muted.",
		"unmute": "The conversation is no longer muted.", "label": "The label was added.",
		"unlabel": "The label was removed.", "new-label": "The label was created and added.",
		"assign": "The conversation was assigned.", "assign-me": "The conversation is assigned to you.",
		"unassign": "The conversation is assigned to nobody.", "note": "The note was saved.",
	}[do]
}

// set marks the conversation as read, or changes what the account has set for it.
func (d chats) set(w http.ResponseWriter, r *http.Request, v visit, do, said string) error {
	device, chat := chatIn(r)
	var err error
	switch do {
	case "read":
		_, err = d.g.Chats.MarkRead(r.Context(), v.caller, device, chat)
	case "archive", "unarchive":
		_, err = d.g.Chats.Archive(r.Context(), v.caller, device, chat, do == "archive")
	case "mute":
		_, err = d.g.Chats.Mute(r.Context(), v.caller, device, chat, postern.MutedForEver)
	case "unmute":
		_, err = d.g.Chats.Mute(r.Context(), v.caller, device, chat, 0)
	case "label", "unlabel":
		_, err = d.g.Labels.Put(r.Context(), v.caller, device, chat, r.PostFormValue("label"), do == "label")
	case "new-label":
		err = d.newLabel(r, v)
	case "assign":
		err = d.g.Chats.Assign(r.Context(), v.caller, device, chat, r.PostFormValue("assignee"))
	case "assign-me":
		err = d.g.Chats.Assign(r.Context(), v.caller, device, chat, v.caller.Member.Email)
	case "unassign":
		err = d.g.Chats.Assign(r.Context(), v.caller, device, chat, "")
	case "note":
		err = d.setNote(r, v)
	}
	if errors.Is(err, errOutdated) {
		draft := page.Draft{Problem: word(err.Error()) + "."}
		view := page.ChatView{Draft: draft, Note: noteIn(r), Typed: do == "note"}
		return d.showAs(w, r, v, http.StatusUnprocessableEntity, view)
	}
	switch postern.ReasonOf(err) {
	case postern.ValidationFailed, postern.ResourceLimit:
		wrong, _ := faults(err)
		draft := page.Draft{Problem: cmp.Or(wrong["name"], wrong["assignee"], wrong["note"], word(err.Error())+".")}
		view := page.ChatView{Draft: draft, Note: noteIn(r), Typed: do == "note"}
		return d.showAs(w, r, v, http.StatusUnprocessableEntity, view)
	case postern.DeviceNotConnected, postern.NetworkTimeout, postern.NetworkRefused:
		draft := page.Draft{Problem: word(err.Error()) + "."}
		return d.showAs(w, r, v, http.StatusUnprocessableEntity, page.ChatView{Draft: draft})
	}
	if err != nil {
		return err
	}
	return d.done(w, r, said, chatPath(device, chat))
}

// setNote replaces the note of the conversation, unless somebody else has changed it since it was shown.
func (d chats) setNote(r *http.Request, v visit) error {
	device, chat := chatIn(r)
	note, err := d.g.Chats.Note(r.Context(), v.caller, device, chat)
	if err == nil {
		err = checkState(r, stateOf(note.Text))
	}
	if err == nil {
		err = d.g.Chats.SetNote(r.Context(), v.caller, device, chat, noteIn(r))
	}
	return err
}

// noteIn is the note in a form, with LF line ends.
func noteIn(r *http.Request) string { return strings.ReplaceAll(r.PostFormValue("note"), "\r\n", "\n") }

// newLabel makes a label and puts it on the conversation.
func (d chats) newLabel(r *http.Request, v visit) error {
	device, chat := chatIn(r)
	label, err := d.labelNamed(r, v, device, strings.TrimSpace(r.PostFormValue("name")))
	if err == nil {
		_, err = d.g.Labels.Put(r.Context(), v.caller, device, chat, label.ID, true)
	}
	return err
}

// labelNamed returns the label with the given name, creating it if the device has none.
func (d chats) labelNamed(r *http.Request, v visit, device postern.DeviceID, name string) (postern.Label, error) {
	all, err := d.g.Labels.List(r.Context(), v.caller, device)
	if err != nil {
		return postern.Label{}, err
	}
	if i := slices.IndexFunc(all, func(l postern.Label) bool { return l.Name == name }); i >= 0 {
		return all[i], nil
	}
	made, err := d.g.Labels.Create(r.Context(), v.caller, device, name, 0, nil)
	return made.Value, err
}

func isImpossible(err error) bool {
	reason := postern.ReasonOf(err)
	return reason == postern.ActionNotPossible || reason == postern.MessageNotCancelable ||
		reason == postern.PayloadTooLarge
}

// change does something with a message, and says what.
func (d chats) change(r *http.Request, v visit, m postern.Message, do string) (said string, err error) {
	switch do {
	case "react":
		_, err = d.g.Actions.React(r.Context(), v.caller, m.ID, strings.TrimSpace(r.PostFormValue("emoji")))
		return "The reaction was accepted.", err
	case "edit":
		_, err = d.g.Actions.Edit(r.Context(), v.caller, m.ID, gateway.MessageChange{Text: written(r)})
		return "The edit was accepted.", err
	case "pin":
		_, err = d.g.Actions.Pin(r.Context(), v.caller, m.ID, postern.DefaultPin)
		return "The message is being pinned for 7 days.", err
	case "unpin":
		_, err = d.g.Actions.Unpin(r.Context(), v.caller, m.ID)
		return "The message is being unpinned.", err
	case "star":
		_, err = d.g.Actions.Star(r.Context(), v.caller, m.ID)
		return "The message is being starred.", err
	case "unstar":
		_, err = d.g.Actions.Unstar(r.Context(), v.caller, m.ID)
		return "The star is being removed.", err
	case "delete":
		_, err = d.g.Actions.Delete(r.Context(), v.caller, m.ID)
		return "The message is being deleted for everyone.", err
	case "cancel":
		_, err = d.g.Actions.Cancel(r.Context(), v.caller, m.ID)
		return "The message was canceled.", err
	case "vote":
		return d.vote(r, v, m)
	}
	return "", postern.Invalid("/do", "a message can be answered, edited, deleted, canceled, pinned, starred, voted on or reacted to")
}

// vote votes for the options that a form names, in place of an earlier vote.
func (d chats) vote(r *http.Request, v visit, m postern.Message) (said string, err error) {
	options, err := optionsIn(r, m)
	if err == nil {
		_, err = d.g.Actions.Vote(r.Context(), v.caller, m.ID, options)
	}
	if len(options) == 0 {
		return "The vote is being removed.", err
	}
	return "The vote was accepted.", err
}

// optionsIn returns the options of a poll that a form names by their places.
func optionsIn(r *http.Request, m postern.Message) (options []string, err error) {
	if r.PostFormValue("none") != "" || m.Content.Poll == nil {
		return nil, nil
	}
	for _, place := range r.PostForm["option"] {
		i, err := strconv.Atoi(place)
		if err != nil || i < 0 || i >= len(m.Content.Poll.Options) {
			return nil, postern.Invalid("/options", "choose among the options of the poll")
		}
		options = append(options, m.Content.Poll.Options[i])
	}
	if len(options) == 0 && !slices.ContainsFunc(m.State.Votes, isOwn) {
		return nil, postern.Invalid("/options", "choose an option")
	}
	return options, nil
}

// statusName is the name of the chat with the status posts of an account and its contacts.
const statusName = "Status"

// describe adds the name of a group or a channel to a conversation, and reports whether messages can be sent to it.
func (d chats) describe(r *http.Request, v visit, view *page.ChatView) (reachable bool, err error) {
	id, err := postern.ParseChat(view.Chat)
	if err != nil {
		return false, nil //nolint:nilerr // nothing is there
	}
	device := postern.DeviceID(view.Device)
	switch postern.KindOfChat(id) {
	case postern.GroupChat:
		view.Group = true
		view.Name, err = d.g.Groups.Subject(r.Context(), v.caller, device, id)
		return true, err
	case postern.ChannelChat:
		var role string
		view.Name, role, err = d.g.Channels.Known(r.Context(), v.caller, device, id)
		view.Name = cmp.Or(view.Name, "Channel")
		return role == postern.ChannelAdmin || role == postern.ChannelOwner, err
	case postern.StatusChat:
		view.Name = statusName
	case postern.DirectChat:
		return true, nil
	}
	return false, nil
}
