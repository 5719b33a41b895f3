package dash

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"postern/internal/dash/page"
	"postern/internal/media"
	"postern/internal/postern"
)

// The largest size at which a conversation shows a picture or a video, in CSS pixels, and that
// of a sticker.
const (
	pictureSide = 320
	stickerSide = 160
)

// messageOf returns a message as pages show it, with a text of that many characters; 0 means all.
func messageOf(m postern.Message, names map[postern.DeviceID]string, length int) page.Message {
	p := page.Message{
		ID: string(m.ID), DeviceID: string(m.DeviceID), Device: names[m.DeviceID], Chat: m.ChatID, Name: m.FromName,
		From: string(m.From), Out: m.Direction == postern.Outbound, Type: string(m.Content.Kind), Status: string(m.Status),
		At: m.CreatedAt.Std(), Forwarded: m.Content.Forwarded, ViewOnce: m.Content.ViewOnce,
		Reactions: reactionsOf(m.State.Reactions), Content: contentOf(m), Starred: m.State.StarredAt != 0,
	}
	p.Device = cmp.Or(p.Device, p.DeviceID)
	p.Gist, _ = begun(gist(m.Content), gistLength)
	p.Body, p.Cut = begun(m.Content.Text, length)
	p.Cut = p.Cut || m.Content.Truncated && length > 0
	for _, at := range []struct {
		to   *time.Time
		from postern.Time
	}{{&p.Edited, m.State.EditedAt}, {&p.Deleted, m.State.DeletedAt}} {
		if at.from != 0 {
			*at.to = at.from.Std()
		}
	}
	if until := m.State.PinnedUntil.Std(); m.State.PinnedAt != 0 && until.After(time.Now()) {
		p.Pinned = until
	}
	if m.Status == postern.Scheduled {
		p.Sends = m.SendAt.Std()
	}
	if m.Error != nil && !p.Out {
		p.Wrong = "This message could not be read: " + m.Error.Detail + "."
	}
	return p
}

// quoteOf returns the message to which m replies. A link to one that the conversation shows leads
// there.
func (d *core) quoteOf(
	ctx context.Context, v visit, m postern.Message, shown []postern.Message,
) (page.Quote, error) {
	if m.ReplyTo == "" {
		return page.Quote{}, nil
	}
	id := postern.MessageID(m.ReplyTo)
	if i := slices.IndexFunc(shown, func(o postern.Message) bool { return o.ID == id }); i >= 0 {
		q := citing(shown[i])
		q.Href = chatPath(m.DeviceID, m.ChatID) + "#m-" + string(id)
		return q, nil
	}
	quoted, err := d.g.Messages.Get(ctx, v.caller, id)
	switch reason := postern.ReasonOf(err); {
	case err == nil:
		return citing(quoted), nil
	case reason == postern.NotFound || reason == postern.ResourceNotAllowed:
		return page.Quote{Who: "Reply", Gist: "to a message that is no longer kept"}, nil
	}
	return page.Quote{}, err
}

// citing returns a message as others quote it.
func citing(m postern.Message) page.Quote {
	q := page.Quote{Who: cmp.Or(m.FromName, string(m.From), m.ChatID), Href: messagePath(m.ID)}
	if m.Direction == postern.Outbound {
		q.Who = "You"
	}
	q.Gist, _ = begun(cmp.Or(gist(m.Content), "A message"), gistLength)
	return q
}

// contentOf returns what a message has beside its text.
func contentOf(m postern.Message) page.Content {
	c := m.Content
	p := page.Content{Unknown: c.UnknownKind}
	if c.Call != nil {
		p.Call = calledAs(c)
	}
	if c.Media != nil {
		p.File = fileOf(c, *c.Media)
	}
	if c.Location != nil {
		p.Place = placeOf(*c.Location)
	}
	if l := c.LiveLocation; l != nil {
		p.Place = placeOf(postern.Location{Latitude: l.Latitude, Longitude: l.Longitude})
		p.Place.Live = true
		if l.Accuracy > 0 {
			p.Place.Note = fmt.Sprintf("Within %d m, where sharing began", l.Accuracy)
		}
	}
	if c.Event != nil {
		p.Occasion = occasionOf(*c.Event)
	}
	if c.Poll != nil {
		p.Poll = pollOf(m)
	}
	if c.LinkPreview != nil {
		p.Preview = previewOf(*c.LinkPreview)
	}
	for _, one := range c.Contacts {
		p.Cards = append(p.Cards, cardOf(m.DeviceID, one))
	}
	return p
}

// calledAs says what kind of call it was, in a line.
func calledAs(c postern.Content) string {
	if c.Call.Group {
		return kindWord(c) + " to several people"
	}
	return kindWord(c)
}

func previewOf(l postern.LinkPreview) page.Preview {
	p := page.Preview{Title: l.Title, Description: l.Description}
	if u, err := url.Parse(l.URL); err == nil {
		p.Host = u.Host
	}
	return p
}

// fileOf returns the file of a message.
func fileOf(c postern.Content, m postern.Media) page.File {
	f := page.File{
		Show: "document", Name: media.SafeName(m.Filename, m.MIMEType), Kind: kindWord(c), Type: m.MIMEType, ID: string(m.ID),
		Alt: altOf(c), Loops: c.GIF, State: string(m.Status), Why: word(m.Detail), Again: m.Recoverable,
		Length: length(m.Duration),
	}
	if m.Size > 0 {
		f.Size = bytesOf(m.Size)
	}
	if m.Status == postern.MediaReady {
		f.Src = filePath(m.ID)
	}
	side := pictureSide
	switch voiced := c.Kind == postern.KindAudio || c.Kind == postern.KindVoice; {
	case c.Kind == postern.KindDocument:
	case isPicture(m.MIMEType):
		f.Show = "picture"
		if c.Kind == postern.KindSticker {
			side = stickerSide
		}
	case isPlayed(m.MIMEType) && voiced:
		f.Show = "audio"
	case isPlayed(m.MIMEType):
		f.Show, f.Poster = "video", filePath(m.ID)+"/poster"
	}
	f.Width, f.Height = fit(m.Width, m.Height, side, f.Show == "video")
	return f
}

// fit returns the size at which a picture or a video is shown, so that nothing moves when it has come.
// A small video grows, so that its controls have room.
func fit(width, height, side int, grows bool) (w, h int) {
	if width <= 0 || height <= 0 {
		return side, side * 3 / 4
	}
	scale := float64(side) / float64(max(width, height))
	if !grows {
		scale = min(1, scale)
	}
	return max(1, int(math.Round(float64(width)*scale))), max(1, int(math.Round(float64(height)*scale)))
}

// altOf is what a picture is called where it cannot be seen.
func altOf(c postern.Content) string {
	text, _ := begun(strings.Join(strings.Fields(c.Text), " "), gistLength)
	switch c.Kind {
	case postern.KindSticker:
		return "Sticker"
	case postern.KindImage:
		return cmp.Or(text, "Picture")
	default:
		return cmp.Or(text, kindWord(c))
	}
}

func bytesOf(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10) + " bytes"
	case n < 1_000_000:
		return strconv.FormatInt(n/1000, 10) + " kB"
	}
	return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + " MB"
}

// length is a duration as players show it; "" if it is not known.
func length(seconds float64) string {
	n := int(math.Min(math.Round(seconds), 1e6))
	switch {
	case seconds <= 0:
		return ""
	case n < 3600:
		return fmt.Sprintf("%d:%02d", n/60, n%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", n/3600, n/60%60, n%60)
}

func placeOf(l postern.Location) page.Place {
	return page.Place{
		Name: l.Name, Address: l.Address, URL: l.URL, Latitude: fmt.Sprintf("%.5f", l.Latitude),
		Longitude: fmt.Sprintf("%.5f", l.Longitude),
	}
}

func occasionOf(e postern.CalendarEvent) page.Occasion {
	o := page.Occasion{Name: e.Name, Text: e.Description, Link: e.JoinLink, Canceled: e.Canceled}
	if e.StartsAt != 0 {
		o.Starts = e.StartsAt.Std()
	}
	if e.EndsAt != 0 {
		o.Ends = e.EndsAt.Std()
	}
	if e.Location != nil {
		o.Place = placeOf(*e.Location)
	}
	return o
}

func cardOf(device postern.DeviceID, one postern.Contact) page.Card {
	c := page.Card{Name: one.Name, Organization: one.Organization}
	for _, number := range one.PhoneNumbers {
		n := page.Number{Text: number}
		if chat, err := postern.ParsePhone(number); err == nil && device != "" {
			n.Href = chatPath(device, chat)
		}
		c.Numbers = append(c.Numbers, n)
	}
	return c
}

// pollOf returns a poll with its votes.
func pollOf(m postern.Message) page.Poll {
	poll := m.Content.Poll
	p := page.Poll{Question: poll.Question, Rule: "Choose any number.", One: poll.MaxSelections == 1}
	switch n := poll.MaxSelections; n {
	case 0:
	case 1:
		p.Rule = "Choose one."
	default:
		p.Rule = fmt.Sprintf("Choose up to %d.", n)
	}
	for _, v := range m.State.Votes {
		if len(v.Options) > 0 {
			p.People++
		}
	}
	for _, option := range poll.Options {
		o := page.PollOption{Text: option}
		for _, v := range m.State.Votes {
			if slices.Contains(v.Options, option) {
				o.Voters, o.Own = append(o.Voters, whoOf(v.From, v.FromLID)), o.Own || isOwn(v)
			}
		}
		p.Options = append(p.Options, o)
	}
	return p
}

// isOwn reports whether a vote is that of the account.
func isOwn(v postern.Vote) bool { return v.FromLID == "" }

// whoOf names somebody who reacts or votes. The account itself has no LID there.
func whoOf(from postern.Maybe, lid string) string {
	if lid == "" {
		return "You"
	}
	return cmp.Or(string(from), lid)
}

// reactionsOf returns reactions, those with the same emoji as one.
func reactionsOf(all []postern.Reaction) (list []page.Reaction) {
	for _, r := range all {
		i := slices.IndexFunc(list, func(o page.Reaction) bool { return o.Emoji == r.Emoji })
		if i < 0 {
			i = len(list)
			list = append(list, page.Reaction{Emoji: r.Emoji})
		}
		list[i].Who = append(list[i].Who, whoOf(r.From, r.FromLID))
	}
	return list
}

// kindWord names the kind of a message for people.
func kindWord(c postern.Content) string {
	switch {
	case c.GIF:
		return "GIF"
	case c.Round:
		return "Video note"
	case c.Call != nil && c.Call.Video:
		return "Video call"
	case c.Call != nil:
		return "Voice call"
	}
	known, ok := map[postern.Kind]string{
		postern.KindImage: "Photo", postern.KindVoice: "Voice message", postern.KindLiveLocation: "Live location",
		postern.KindUnsupported: "Unsupported message",
	}[c.Kind]
	if ok {
		return known
	}
	return word(string(c.Kind))
}

// gist is the content of a message in a line: "Photo: caption", "Voice message, 0:12".
func gist(c postern.Content) string {
	if c.Kind == postern.KindText {
		return c.Text
	}
	said := kindWord(c)
	if c.Kind == postern.KindUnsupported && c.UnknownKind != "" {
		said += " (" + c.UnknownKind + ")"
	}
	if c.Media != nil && c.Kind.IsPlayed() && length(c.Media.Duration) != "" {
		said += ", " + length(c.Media.Duration)
	}
	if about := gistOf(c); about != "" {
		said += ": " + about
	}
	return said
}

// gistOf is what a message is about, for kinds that are not text.
func gistOf(c postern.Content) string {
	switch {
	case c.Kind == postern.KindDocument && c.Media != nil:
		name := media.SafeName(c.Media.Filename, c.Media.MIMEType)
		return strings.Join(slices.DeleteFunc([]string{name, c.Text}, isEmpty), ", ")
	case c.Event != nil:
		return c.Event.Name
	case c.Poll != nil:
		return c.Poll.Question
	}
	return strings.Join(strings.Split(shownText(c), "\n"), ", ")
}

func isEmpty(s string) bool { return s == "" }

// shownText returns the content of a message as lines of text.
func shownText(c postern.Content) string {
	lines := []string{c.Text}
	switch {
	case c.Location != nil:
		lines = place(*c.Location)
	case c.LiveLocation != nil:
		at := postern.Location{Latitude: c.LiveLocation.Latitude, Longitude: c.LiveLocation.Longitude}
		lines = append(place(at), c.Text)
	case c.Event != nil:
		lines = []string{c.Event.Name, c.Event.Description, c.Event.JoinLink}
	case c.Poll != nil:
		lines = []string{c.Poll.Question}
		for _, option := range c.Poll.Options {
			lines = append(lines, "• "+option)
		}
	}
	for _, one := range c.Contacts {
		lines = append(lines, one.Name, one.Organization, strings.Join(one.PhoneNumbers, ", "))
	}
	return strings.Join(slices.DeleteFunc(lines, isEmpty), "\n")
}

func place(l postern.Location) []string {
	return []string{l.Name, l.Address, fmt.Sprintf("%.5f, %.5f", l.Latitude, l.Longitude), l.URL}
}

// begun cuts a text to a number of characters, so that a page of long texts stays small; 0 means
// all of it.
func begun(s string, length int) (text string, cut bool) {
	n := 0
	for i := range s {
		if n++; length > 0 && n > length {
			return s[:i] + "…", true
		}
	}
	return s, false
}
