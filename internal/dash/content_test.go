package dash

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"
)

func TestGists(t *testing.T) {
	t.Parallel()
	clip := &postern.Media{Duration: 12.2, Filename: "../a\u202eb.pdf", MIMEType: "application/pdf"}
	for want, c := range map[string]postern.Content{
		"hello":                    postern.Text("hello"),
		"Photo":                    {Kind: postern.KindImage},
		"Photo: the gate":          {Kind: postern.KindImage, Text: "the gate"},
		"Video, 0:12":              {Kind: postern.KindVideo, Media: clip},
		"GIF, 0:12: haha":          {Kind: postern.KindVideo, Media: clip, Text: "haha", Extra: postern.Extra{GIF: true}},
		"Video note":               {Kind: postern.KindVideo, Extra: postern.Extra{Round: true}},
		"Voice message, 0:12":      {Kind: postern.KindVoice, Media: clip},
		"Audio, 1:02:03":           {Kind: postern.KindAudio, Media: &postern.Media{Duration: 3723}},
		"Document: file.pdf, bill": {Kind: postern.KindDocument, Media: &postern.Media{MIMEType: "application/pdf"}, Text: "bill"},
		"Sticker":                  {Kind: postern.KindSticker, Media: &postern.Media{}},
		"Location: Gate, 1.00000, 2.00000": {Kind: postern.KindLocation, Extra: postern.Extra{
			Location: &postern.Location{Latitude: 1, Longitude: 2, Name: "Gate"},
		}},
		"Live location: 1.00000, 2.00000": {Kind: postern.KindLiveLocation, ReceivedOnly: postern.ReceivedOnly{
			LiveLocation: &postern.LiveLocation{Latitude: 1, Longitude: 2},
		}},
		"Contact: Ada, +15551234567": {Kind: postern.KindContact, Extra: postern.Extra{
			Contacts: []postern.Contact{{Name: "Ada", PhoneNumbers: []string{contact}}},
		}},
		"Poll: Where?": {Kind: postern.KindPoll, Extra: postern.Extra{Poll: &postern.Poll{Question: "Where?"}}},
		"Event: Party": {Kind: postern.KindEvent, ReceivedOnly: postern.ReceivedOnly{
			Event: &postern.CalendarEvent{Name: "Party"},
		}},
		"Unsupported message (stickerPack)": postern.Unsupported("stickerPack"),
		"Unsupported message":               postern.Unsupported(""),
	} {
		if got := gist(c); got != want {
			t.Errorf("the gist of a %s is %q, want %q", c.Kind, got, want)
		}
	}
}

func TestVotesAndReactionsAreCounted(t *testing.T) {
	t.Parallel()
	m := postern.Message{
		Content: postern.Content{Kind: postern.KindPoll, Extra: postern.Extra{
			Poll: &postern.Poll{Question: "Where?", Options: []string{"Here", "There", "Nowhere"}},
		}},
		State: postern.State{
			Votes: []postern.Vote{
				{Options: []string{"Here"}},
				{From: contact, FromLID: "lid:1", Options: []string{"Here", "There"}},
				{FromLID: "lid:2", Options: nil},
			},
			Reactions: []postern.Reaction{{Emoji: "👍"}, {Emoji: "🎉", FromLID: "lid:1"}, {Emoji: "👍", FromLID: "lid:2"}},
		},
	}
	p := messageOf(m, nil, 0)
	if o := p.Poll.Options; p.Poll.People != 2 || !o[0].Own || o[1].Own || strings.Join(o[0].Voters, " ") != "You "+contact ||
		strings.Join(o[1].Voters, " ") != contact || len(o[2].Voters) != 0 {
		t.Errorf("the poll is %+v", p.Poll)
	}
	if r := p.Reactions; len(r) != 2 || strings.Join(r[0].Who, " ") != "You lid:2" {
		t.Errorf("the reactions are %+v", r)
	}
}

// A preview names the host of its link, and is no link itself.
func TestPreviewsAreShown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	text := postern.Text("see below")
	text.LinkPreview = &postern.LinkPreview{
		URL: "https://shop.example/<a>", Title: "<b>Apples</b>", Description: "Cheap & good",
	}
	m := s.receives(d, contact, "Ada", text)
	for _, path := range []string{chatPath(d.ID, contact), "/messages/" + string(m.ID)} {
		c.says(path, "&lt;b&gt;Apples&lt;/b&gt;", "Cheap &amp; good", "shop.example</bdi>")
		c.saysNot(path, `href="https://shop.example`)
	}
}

func TestPicturesKeepTheirShape(t *testing.T) {
	t.Parallel()
	for _, tt := range [][4]int{
		{1280, 720, 320, 180}, {720, 1280, 180, 320}, {40, 20, 40, 20}, {0, 0, 320, 240}, {100000, 1, 320, 1},
	} {
		if w, h := fit(tt[0], tt[1], pictureSide, false); w != tt[2] || h != tt[3] {
			t.Errorf("%d × %d is shown as %d × %d, want %d × %d", tt[0], tt[1], w, h, tt[2], tt[3])
		}
	}
	if w, h := fit(64, 48, pictureSide, true); w != 320 || h != 240 {
		t.Errorf("a small video is shown as %d × %d", w, h)
	}
}

func TestEveryKindIsShown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	talk := chatPath(d.ID, contact)
	ready := func(mimeType string) postern.Media {
		return postern.Media{
			ID: postern.NewMediaID(), MIMEType: mimeType, Size: 1_234_567, SHA256: strings.Repeat("a", 64),
			Filename: "../<b>\u202e.svg", Status: postern.MediaReady, Width: 1280, Height: 720, Duration: 12,
		}
	}
	for name, tt := range map[string]struct {
		kind postern.Kind
		file postern.Media
		says []string
	}{
		"picture": {
			postern.KindImage, ready("image/jpeg"),
			[]string{`width="320" height="180"`, `loading="lazy"`, `alt="Picture"`, "/media/med_"},
		},
		"svg":     {postern.KindImage, ready("image/svg+xml"), []string{"_b_.svg", "?download", "1.2 MB"}},
		"sticker": {postern.KindSticker, ready("image/webp"), []string{`alt="Sticker"`, `width="160"`}},
		"video":   {postern.KindVideo, ready("video/mp4"), []string{"<video", `preload="none"`, "0:12"}},
		"voice": {
			postern.KindVoice, ready("audio/ogg"), []string{"<audio", `aria-label="Voice message"`, "Download"},
		},
		"amr":      {postern.KindAudio, ready("audio/amr"), []string{"?download", "0:12 · 1.2 MB · audio/amr"}},
		"document": {postern.KindDocument, ready("image/png"), []string{"?download", "_b_.svg"}},
		"pending":  {postern.KindImage, postern.Media{Status: postern.MediaPending}, []string{"being fetched"}},
		"failed": {
			postern.KindVideo,
			postern.Media{Status: postern.MediaFailed, Detail: "no <such> file"},
			[]string{"could not be fetched", "No &lt;such&gt; file."},
		},
		"again": {
			postern.KindImage, postern.Media{Status: postern.MediaFailed, Recoverable: true}, []string{"Try again"},
		},
		"expired": {postern.KindImage, postern.Media{Status: postern.MediaExpired}, []string{"no longer available"}},
	} {
		m := s.receivesFile(d, tt.kind, tt.file)
		p := c.says(messagePath(m.ID), tt.says...)
		shown := strings.Contains(p.body, "<img") || strings.Contains(p.body, "<video") || strings.Contains(p.body, "<audio")
		if strings.Contains(p.body, "<b>") || strings.Contains(p.body, `src="/media/`) != shown {
			t.Errorf("%s is shown as what it is not", name)
		}
	}
	c.says("/messages", "Photo", "Video, 0:12", "Voice message, 0:12", "Sticker", "Document: _b_.svg")
	for _, extra := range []struct {
		kind postern.Kind
		postern.Extra
		postern.ReceivedOnly
	}{
		{kind: postern.KindLiveLocation, ReceivedOnly: postern.ReceivedOnly{
			LiveLocation: &postern.LiveLocation{Latitude: 1, Longitude: 2, Accuracy: 20},
		}},
		{kind: postern.KindContact, Extra: postern.Extra{Contacts: []postern.Contact{
			{Name: "<i>Ada", PhoneNumbers: []string{contact, "<i>1"}, Organization: "Engines"},
		}}},
		{kind: postern.KindPoll, Extra: postern.Extra{
			Poll: &postern.Poll{Question: "<i>Where?", Options: []string{"<i>Here", "There"}, MaxSelections: 1},
		}},
		{kind: postern.KindEvent, ReceivedOnly: postern.ReceivedOnly{Event: &postern.CalendarEvent{
			Name: "<i>Party", JoinLink: "javascript:alert(1)", StartsAt: s.db.Now(), Canceled: true,
			Location: &postern.Location{Latitude: 3},
		}}},
		{kind: postern.KindUnsupported, ReceivedOnly: postern.ReceivedOnly{UnknownKind: "<i>pack"}},
		{kind: postern.KindText, Extra: postern.Extra{Forwarded: true}},
	} {
		s.receives(d, contact, "Ada", postern.Content{Kind: extra.kind, Extra: extra.Extra, ReceivedOnly: extra.ReceivedOnly})
	}
	p := c.says(talk, "Within 20 m", "&lt;i&gt;Ada", "Engines", `href="`+talk+`"`, "&lt;i&gt;Where?", "Choose one.",
		"No votes yet.", "<progress", "&lt;i&gt;Party", "(canceled)", "(&lt;i&gt;pack)", "Forwarded",
		`href="https://www.openstreetmap.org/?mlat=1.00000&amp;mlon=2.00000#map=16/1.00000/2.00000" `+
			`target="_blank" rel="noopener noreferrer"`)
	if strings.Contains(p.body, "<i>") || strings.Contains(p.body, `href="javascript:`) {
		t.Error("what a stranger wrote is part of the page")
	}
	if !strings.Contains(p.header.Get("Content-Security-Policy"), "media-src 'self'") {
		t.Error("the page cannot play its files")
	}
}

func TestAReplyQuotes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	first := s.comes(d, contact, "Ada", "the <first> one")
	talk := chatPath(d.ID, contact)
	form := map[string][]string{"key": {c.form(talk)}, "body": {"the answer"}, "do": {"reply"}, "message": {string(first.ID)}}
	c.want(c.post(talk, form), http.StatusSeeOther, talk)
	c.says(talk, "<blockquote", `href="`+talk+"#m-"+string(first.ID)+`"`, "the &lt;first&gt; one")
}

// The page of a message says of an action that it could not be sent, with the code and the reason.
func TestActionThatCouldNotBeSentIsShown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	m := s.comes(d, contact, "Ada", "hello")
	caller, err := s.g.Workspaces.Caller(t.Context(), access.Operator(), d.WorkspaceID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.g.Actions.React(t.Context(), caller, m.ID, "👍"); err != nil {
		t.Fatal(err)
	}
	waiting, err := s.db.Outbox.Next(t.Context(), d.ID, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range slices.Concat(waiting[:]...) {
		if err := s.db.Outbox.Finish(t.Context(), store.FinishOutbound{
			MessageID: action.ID, Status: postern.Failed, At: postern.TimeOf(time.Now()),
			Failure: postern.Failure{Code: postern.DeviceLoggedOut, Detail: "the link was removed"},
		}); err != nil {
			t.Fatal(err)
		}
	}
	c.says("/messages/"+string(m.ID), "Reaction 👍", "It could not be sent. (DEVICE_LOGGED_OUT)", "The link was removed.")
}
