package browsertest

import (
	"fmt"
	"strings"
	"time"

	. "postern/internal/dash/page"
)

// hostileMessages are the pages of messages, with s wherever a text can be.
func hostileMessages(f Frame, s string) []sample {
	none := full[MessageFormView](s)
	none.Devices = nil
	return []sample{
		{"Messages", Messages(f, full[MessagesView](s))},
		{"Messages none", Messages(f, MessagesView{Find: Field{s, s}, More: s})},
		{"Message", MessagePage(f, full[MessageView](s))},
		{"MessageForm", MessageForm(f, full[MessageFormView](s))},
		{"MessageForm none", MessageForm(f, none)},
		{"Chats", Chats(f, full[ChatsView](s))},
		{"Chats none", Chats(f, ChatsView{Device: s, Live: s})},
		{"Chat", ChatPage(f, full[ChatView](s))},
		{"Chat options", ChatPage(f, chatAt("options", s))},
		{"Chat reply", ChatPage(f, chatAt("reply", s))},
		{"Chat edit", ChatPage(f, chatAt("edit", s))},
		{"Chat vote", ChatPage(f, chatAt("vote", s))},
		{"Chat delete", ChatPage(f, chatAt("delete", s))},
		{"Chat pictures", ChatPage(f, ChatView{Messages: filesOf(s)})},
		{"Chat none", ChatPage(f, ChatView{Device: s, Chat: s, Older: s})},
		{"Contacts", Contacts(f, full[ContactsView](s))},
		{"Contacts none", Contacts(f, ContactsView{Device: s, More: s})},
		{"Groups", Groups(f, full[GroupsView](s))},
		{"Group", GroupPage(f, full[GroupView](s))},
	}
}

// messageSamples are the pages of messages with example data.
func messageSamples(frame func(title, current string) Frame, at time.Time) []sample {
	f := frame("Messages", "/messages")
	devices := []Choice{{"", "All"}, {"dev_1", "Support"}, {"dev_2", "Sales"}}
	in := Message{
		ID: "msg_1", Device: "Support", DeviceID: "dev_1", Chat: "+15551234567", Name: "Ada", From: "+15551234567",
		Type: "text", Body: "Hello, are you there?", Gist: "Hello, are you there?", Status: "received", At: at,
	}
	out := Message{
		ID: "msg_2", Device: "Support", DeviceID: "dev_1", Chat: "+15551234567", From: "+15550001111", Out: true,
		Type: "text", Body: "Yes.\nWhat can I do for you?", Gist: "Yes. What can I do for you?", Status: "read", At: at,
	}
	failed := Message{
		ID: "msg_3", Device: "Sales", DeviceID: "dev_2", Chat: "+4915550002222", Out: true, Type: "text",
		Body: "A text that is longer than what others write, so that it takes more than one line of its cell or of its " +
			"bubble",
		Gist: "A text that is longer than what others write",
		Cut:  true, Status: "failed", At: at,
	}
	other := Message{
		ID: "msg_4", Device: "Sales", DeviceID: "dev_2", Chat: "lid:123456789012345", Type: "unsupported", Gist: "Unsupported message",
		Status: "received",
		At:     at,
	}
	unread := other
	unread.Unread, unread.Labels = 12, []string{"New customer", strings.Repeat("A long name ", 8), "and 3 more"}
	put := other // away
	put.Chat = "lid:123456789012346"
	put.Archived, put.Muted = true, true
	way := []WayStep{
		{Title: "Accepted", Text: "It is kept here.", At: at, Kind: "done"},
		{Title: "The message was handed to the network", Kind: "now"},
		{Title: "Failed", Text: "The number is not on the network.", Do: "Check it.", Kind: "bad"},
		{Title: "Delivered", Kind: "next"},
	}
	return []sample{
		{"messages-none", Messages(f, MessagesView{Devices: devices})},
		{"messages-refused", Messages(f, MessagesView{
			Find: Field{"!", "Enter words."}, Devices: devices, Days: DayRange{Until: Day{Field: Field{"x", "Enter a date."}}},
		})},
		{
			"messages",
			Messages(f, MessagesView{
				Devices: devices, Messages: []Message{in, out, failed, other}, More: "/messages?after=x",
				Export:     "/messages.csv",
				ExportRows: "100,000", Send: true,
			}),
		},
		{
			"message",
			MessagePage(f, MessageView{
				Message: failed, Source: "The API", NetworkID: "3EB0", Expires: at, Steps: way,
				Labels: []Header{{
					"order",
					"17",
				}},
				JSON: "{}", Every: 2 * time.Second, Chats: true,
			}),
		},
		{"message-new", MessageForm(f, MessageFormView{
			Draft: Draft{Key: "K", MaxFile: "104857600"}, Devices: devices[1:],
		})},
		{
			"message-refused",
			MessageForm(f, MessageFormView{
				Device: Field{"dev_2", "It is gone."}, Devices: devices[1:], To: Field{"12", "Not a number."},
				Draft: Draft{
					Key: "K", Body: Field{"Hello", "Too long."}, Problem: "The message was not sent.", Preview: true,
					File: Attachment{"med_1", "invoice.pdf", "48 kB"}, MaxFile: "104857600",
				},
			}),
		},
		{"contacts-none", Contacts(f, ContactsView{Devices: devices})},
		{"contacts-refused", Contacts(f, ContactsView{Find: Field{"Ada", "Enter a phone number."}, Devices: devices})},
		{"contacts", Contacts(f, ContactsView{Devices: devices, More: "/contacts?after=x", Contacts: []Contact{
			{Name: "Ada", Number: "+15551234567", Chat: "+15551234567", Devices: devices[1:], Since: at},
			{Name: "A bakery with quite a long name that its owner has chosen", Chat: "lid:123456789012345", Business: true},
		}})},
		{"groups-none", Groups(f, GroupsView{})},
		{"groups", Groups(f, GroupsView{Device: "dev_1", Devices: devices[1:], More: "/contacts/groups?after=x", Groups: []Group{
			{Chat: "group:1", Subject: "Orders", Members: 3, Role: "admin", Since: at},
			{Chat: "group:2", Members: 256, Role: "member", AnnounceOnly: true},
		}})},
		{"group", GroupPage(f, GroupView{
			Group: Group{
				Chat: "group:1", Subject: "Orders", Description: "Questions about orders", Members: 3, Role: "admin",
				AnnounceOnly: true,
			},
			Device: "dev_1", DeviceName: "Support", People: []Member{
				{Number: "+15550001111", Role: "owner", Self: true}, {LID: "lid:123456789012345", Role: "member"},
			},
		})},
		{"chats-none", Chats(f, ChatsView{})},
		{
			"chats",
			Chats(f, ChatsView{
				Device: "dev_1", Devices: devices[1:], Chats: []Message{in, failed, unread, put},
				More: "/messages/chats?after=x",
				Live: "/messages/chats", Send: true,
			}),
		},
		{"chats-all", Chats(f, ChatsView{Devices: devices, Show: "unread", Chats: []Message{unread, in}, Beside: true, Open: "dev_1/x"})},
		{"chats-found", Chats(f, ChatsView{Devices: devices, Find: "gate", Found: []Message{in, failed}})},
		{"chats-wrong", Chats(f, ChatsView{Devices: devices, Find: "?", Wrong: "Enter words, a phone number, or a message ID."})},
		{"chats-days", Chats(f, ChatsView{
			Devices: devices, Status: "failed", Days: DayRange{From: Day{Field: Field{Value: "2026-11-21"}}}, Found: []Message{failed},
		})},
		{"chat-down", ChatPage(f, ChatView{
			Device: "dev_1", DeviceName: "Support", Chat: "+15551234567", Newest: true, Send: true, Down: "Support is not connected.",
			Draft: Draft{Key: "K"},
		})},
		{
			"chat",
			ChatPage(f, ChatView{
				Device: "dev_1", DeviceName: "Support", Chat: "+15551234567", Name: "Ada",
				Messages: []Message{in, out, failed, other}, Older: "/messages/chats/dev_1/x?after=x", Newest: true,
				Send: true, Draft: Draft{Key: "K", Body: Field{"", "Write something."}}, Settings: true, Archived: true,
				Labels: []LabelOn{{"1", "New customer", true}, {"2", "Order", false}},
			}),
		},
		{"chat-kinds", ChatPage(f, kindsView(in, out))},
		{"chat-options", ChatPage(f, doing("options", in, out))},
		{"chat-reply", ChatPage(f, doing("reply", in, out))},
		{"chat-edit", ChatPage(f, doing("edit", in, out))},
		{"chat-vote", ChatPage(f, doing("vote", in, kinds(in, out)[13]))},
		{"chat-vote-many", ChatPage(f, doing("vote", in, manyOf(kinds(in, out)[13])))},
		{"chat-delete", ChatPage(f, doing("delete", in, out))},
		{"message-kind", MessagePage(f, MessageView{Message: kinds(in, out)[1], Steps: way, JSON: "{}"})},
		{"phone", Phone(f, PhoneView{
			Device: Device{ID: "dev_1", Name: "Support", Number: "+15550001111", Status: "connected"}, Type: "poll",
			Messages: kinds(in, out), Question: "Where?", Options: "Here", Problem: "A poll has 2 to 12 options.",
			Sent: []SentMessage{{"msg_1", "+15551234567", "Photo", "sent"}}, Faults: []Choice{{"drop", "Drop the connection"}},
		})},
		{"chat-old", ChatPage(f, ChatView{Device: "dev_1", DeviceName: "Support", Chat: "+15551234567"})},
	}
}

// chatAt is a conversation in which something is done with a message.
func chatAt(mode, s string) ChatView {
	v := full[ChatView](s)
	v.Mode = mode
	return v
}

// manyOf is a message with a poll in which several options can be chosen.
func manyOf(m Message) Message {
	m.Poll.One, m.Poll.Rule = false, "Choose any number."
	return m
}

// filesOf are messages with every kind of file, and in every state.
func filesOf(s string) (list []Message) {
	for _, show := range []string{"picture", "video", "audio", "document"} {
		f := full[File](s)
		f.Show = show
		list = append(list, Message{Content: Content{File: f}})
	}
	for _, state := range []string{"pending", "failed", "expired"} {
		f := full[File](s)
		f.Src, f.State = "", state
		list = append(list, Message{Content: Content{File: f}})
	}
	return list
}

// doing is a conversation in which something is done with its last message.
func doing(mode string, in, out Message) ChatView {
	v := kindsView(in, out)
	v.Messages, v.Mode, v.About = []Message{in, out}, mode, out
	v.About.May = May{Reply: true, React: true, Edit: true, Delete: true, Pin: true, Vote: true, Cancel: true}
	v.Body = Field{Value: out.Body}
	v.File, v.Problem = Attachment{}, ""
	return v
}

func kindsView(in, out Message) ChatView {
	return ChatView{
		Device: "dev_1", DeviceName: "Support", Chat: "+15551234567", Name: "Ada", Messages: kinds(in, out), Newest: true,
		Send: true, Draft: Draft{
			Key: "K", MaxFile: "104857600", File: Attachment{"med_1", "invoice.pdf", "48 kB"},
			Body: Field{Error: "Audio has no caption."}, Problem: "The message was not sent.",
		},
	}
}

// kinds are messages of every kind and in every state.
func kinds(in, out Message) (list []Message) {
	file := func(show, kind string) File {
		return File{
			ID: "med_1", Show: show, Src: "/media/med_1", Kind: kind, Type: "application/pdf", Name: "invoice.pdf",
			Size: "48 kB", Length: "0:12", Alt: kind, Width: 320, Height: 180, State: "ready",
		}
	}
	add := func(m Message, change func(*Message)) {
		m.ID = fmt.Sprintf("msg_kind%d", len(list))
		m.May, m.Body, m.Gist = May{Reply: true, React: true}, "", "Photo"
		change(&m)
		list = append(list, m)
	}
	text := func(body string) func(*Message) { return func(m *Message) { m.Body, m.Gist = body, body } }
	add(in, text("Hello, are you there?"))
	add(in, func(m *Message) {
		m.File, m.Body = file("picture", "A gate"), "The gate, as it is today"
		m.Reactions = []Reaction{{"👍", []string{"You", "+15551234567"}}, {"❤️", []string{"You"}}}
	})
	add(out, func(m *Message) {
		m.Quote = Quote{"Ada", "Photo: The gate, as it is today", "/messages/chats/dev_1/+15551234567#m-msg_kind1"}
		m.Body, m.Edited = "Thank you. I send somebody.", m.At
	})
	add(in, func(m *Message) {
		m.File, m.Forwarded = file("video", "Video"), true
		m.File.Poster = "/media/med_1/poster"
	})
	add(in, func(m *Message) { m.File = file("audio", "Voice message") })
	add(out, func(m *Message) { m.File, m.Body = file("document", "Document"), "Your invoice" })
	add(in, func(m *Message) {
		m.File = file("picture", "Sticker")
		m.File.Width, m.File.Height = 160, 160
	})
	for _, state := range []string{"pending", "failed", "expired"} {
		add(in, func(m *Message) {
			m.File = file("picture", "Photo")
			m.File.Src, m.File.State, m.File.Why, m.File.Again = "", state, "The phone is off", true
			m.ViewOnce = state == "expired"
		})
	}
	gate := Place{Name: "Brandenburg Gate", Address: "Pariser Platz, Berlin", Latitude: "52.51630", Longitude: "13.37770"}
	add(in, func(m *Message) { m.Place = gate })
	add(in, func(m *Message) {
		m.Place = Place{Latitude: "52.51630", Longitude: "13.37770", Note: "Within 20 m, where sharing began", Live: true}
	})
	add(in, func(m *Message) {
		m.Cards = []Card{{"Grace Hopper", "Navy", []Number{{"+15557654321", "/messages/chats/dev_1/+15557654321"}, {"911", ""}}}}
	})
	add(out, func(m *Message) {
		m.Gist, m.May.Vote = "Poll: Where shall we meet?", true
		m.Poll = Poll{Question: "Where shall we meet?", Rule: "Choose one.", One: true, Options: []PollOption{
			{"At the office", []string{"Ada", "+15557654321"}, false},
			{"Online", []string{"You"}, true},
			{"Nowhere", nil, false},
		}, People: 3}
	})
	add(in, func(m *Message) {
		m.Occasion = Occasion{
			Name: "Summer party", Text: "Bring a cake.", Link: "https://example.com/call", Starts: m.At,
			Ends: m.At.Add(5 * time.Hour), Place: gate, Canceled: true,
		}
	})
	add(in, func(m *Message) { m.Call = "Video call" })
	add(in, func(m *Message) { m.Type, m.Unknown = "unsupported", "stickerPack" })
	add(in, func(m *Message) { m.Wrong = "This message could not be read: the key is missing." })
	add(out, func(m *Message) { m.Body, m.Deleted = "What was written by mistake", m.At })
	add(out, func(m *Message) {
		m.Body, m.Sends, m.Status = "A message for tomorrow", m.At.Add(24*time.Hour), "scheduled"
	})
	return list
}
