package browsertest

import (
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
		{"Chat none", ChatPage(f, ChatView{Device: s, Chat: s, Older: s})},
	}
}

// messageSamples are the pages of messages with example data.
func messageSamples(frame func(title, current string) Frame, at time.Time) []sample {
	f := frame("Messages", "/messages")
	devices := []Choice{{"", "All"}, {"dev_1", "Support"}, {"dev_2", "Sales"}}
	in := Message{
		ID: "msg_1", Device: "Support", DeviceID: "dev_1", Chat: "+15551234567", Name: "Ada", From: "+15551234567",
		Type: "text", Body: "Hello, are you there?", Status: "received", At: at,
	}
	out := Message{
		ID: "msg_2", Device: "Support", DeviceID: "dev_1", Chat: "+15551234567", From: "+15550001111", Out: true,
		Type: "text", Body: "Yes.\nWhat can I do for you?", Status: "read", At: at,
	}
	failed := Message{
		ID: "msg_3", Device: "Sales", DeviceID: "dev_2", Chat: "+4915550002222", Out: true, Type: "text",
		Body: "A text that is longer than what others write, so that it takes more than one line of its cell or of its " +
			"bubble",
		Cut: true, Status: "failed", At: at,
	}
	other := Message{
		ID: "msg_4", Device: "Sales", DeviceID: "dev_2", Chat: "lid:123456789012345", Type: "unsupported",
		Status: "received",
		At:     at,
	}
	way := []WayStep{
		{Title: "Accepted", Text: "It is kept here.", At: at, Kind: "done"},
		{Title: "The message was handed to the network", Kind: "now"},
		{Title: "Failed", Text: "The number is not on the network.", Do: "Check it.", Kind: "bad"},
		{Title: "Delivered", Kind: "next"},
	}
	return []sample{
		{"messages-none", Messages(f, MessagesView{Devices: devices})},
		{"messages-refused", Messages(f, MessagesView{Find: Field{"hello", "Write a number."}, Devices: devices})},
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
				Labels: []Header{{"order",
					"17"}},
				JSON: "{}", Every: 2 * time.Second, Chats: true,
			}),
		},
		{"message-new", MessageForm(f, MessageFormView{Key: "K", Devices: devices[1:]})},
		{
			"message-refused",
			MessageForm(f, MessageFormView{
				Key: "K", Device: Field{"dev_2", "It is gone."}, Devices: devices[1:], To: Field{"12", "Not a number."},
				Body: Field{"Hello", "Too long."}, Problem: "The message was not sent.",
			}),
		},
		{"chats-none", Chats(f, ChatsView{})},
		{
			"chats",
			Chats(f, ChatsView{
				Device: "dev_1", Devices: devices[1:], Chats: []Message{in, failed, other},
				More: "/messages/chats?after=x",
				Live: "/messages/chats", Send: true,
			}),
		},
		{
			"chat",
			ChatPage(f, ChatView{
				Device: "dev_1", DeviceName: "Support", Chat: "+15551234567", Name: "Ada",
				Messages: []Message{in, out, failed, other}, Older: "/messages/chats/dev_1/x?after=x", Newest: true,
				Send: true,
				Key:  "K", Body: Field{"", "Write something."},
			}),
		},
		{"chat-old", ChatPage(f, ChatView{Device: "dev_1", DeviceName: "Support", Chat: "+15551234567"})},
	}
}
