package vendorsim

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// The ids of the queries about channels.
const (
	channelQuery          = "6563316087068696"
	followedChannelsQuery = "6388546374527196"
	followChannelQuery    = "9926858900719341"
	unfollowChannelQuery  = "6392786840836363"
)

// mex answers a query whose subject is in JSON. One that the simulator does not know gets an empty result.
func (v queries) mex(c *conn, n *waBinary.Node) {
	query := n.GetChildByTag("query")
	switch id := attr(&query, "query_id"); id {
	case setAboutQuery:
		v.people.changeAbout(c, n)
	case channelQuery, followedChannelsQuery, followChannelQuery, unfollowChannelQuery:
		v.channels.answer(c, n, id, content(query))
	default:
		c.reply(n)
	}
}

// channelVariables are what queries about channels say.
type channelVariables struct {
	Variables struct {
		NewsletterID string `json:"newsletter_id"`
		Input        struct {
			Key  string `json:"key"`
			Type string `json:"type"` // JID or INVITE
		} `json:"input"`
		Viewer bool `json:"fetch_viewer_metadata"`
	} `json:"variables"`
}

// answer answers a query about channels.
func (v channels) answer(c *conn, n *waBinary.Node, query string, raw []byte) {
	var in channelVariables
	if json.Unmarshal(raw, &in) != nil {
		c.replyError(n, http.StatusBadRequest, "bad-request")
		return
	}
	v.mu.Lock()
	name, data, status := v.result(c.companion, query, in)
	v.mu.Unlock()
	c.replyInJSON(n, name, data, status)
}

// replyInJSON answers a query whose subject is in JSON. status is that of an error; 0 for none.
func (c *conn) replyInJSON(n *waBinary.Node, name string, data any, status int) {
	answer := map[string]any{"data": map[string]any{name: data}}
	if status != 0 {
		answer["errors"] = []map[string]any{{
			"message": http.StatusText(status), "path": []string{name},
			"extensions": map[string]any{"error_code": status, "is_retryable": false, "severity": "CRITICAL"},
		}}
	}
	raw, err := json.Marshal(answer)
	if err != nil { // it consists of texts
		c.core.log.Error("encode an answer", "error", err)
		return
	}
	c.replyDurably(n, waBinary.Node{Tag: "result", Content: raw})
}

// result returns the answer to a query, and the status of its error; 0 for none. The caller holds v.mu.
func (v channels) result(cp *companion, query string, in channelVariables) (name string, data any, status int) {
	own := cp.account.number
	switch query {
	case followedChannelsQuery:
		return "xwa2_newsletter_subscribed", v.followed(own), 0
	case channelQuery:
		ch := v.named(in)
		if ch == nil {
			return "xwa2_newsletter", nil, http.StatusNotFound
		}
		d := ch.describe(own)
		if !in.Variables.Viewer {
			delete(d, "viewer_metadata")
		}
		return "xwa2_newsletter", d, 0
	case followChannelQuery:
		name = "xwa2_newsletter_join_v2"
	default:
		name = "xwa2_newsletter_leave_v2"
	}
	ch := v.channelsByID[channelID(in.Variables.NewsletterID)]
	switch {
	case ch == nil:
		return name, nil, http.StatusNotFound
	case query == followChannelQuery:
		v.follow(ch, own, cp)
	case ch.Admins[0] == own:
		return name, nil, http.StatusForbidden
	default:
		v.unfollow(ch, own, cp)
	}
	return name, map[string]any{"id": ch.jid()}, 0
}

// followed describes the channels that a number follows, in the order of their ids. The caller holds v.mu.
func (v channels) followed(n number) []map[string]any {
	list := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(v.channelsByID)) {
		if ch := v.channelsByID[id]; ch.follows(n) {
			list = append(list, ch.describe(n))
		}
	}
	return list
}

// named returns the channel that a query names by its address or its invitation; nil if there is none. The caller
// holds v.mu.
func (v channels) named(in channelVariables) *channel {
	key := in.Variables.Input
	if key.Type != "INVITE" {
		return v.channelsByID[channelID(key.Key)]
	}
	for _, ch := range v.channelsByID {
		if ch.Invite == key.Key {
			return ch
		}
	}
	return nil
}

func channelID(address string) string {
	id, _ := strings.CutSuffix(address, "@"+types.NewsletterServer)
	return id
}

// describe returns the form in which the vendor describes a channel to a number.
func (ch *channel) describe(n number) map[string]any {
	role := "GUEST"
	switch {
	case ch.Admins[0] == n:
		role = "OWNER"
	case ch.isAdmin(n):
		role = "ADMIN"
	case ch.follows(n):
		role = "SUBSCRIBER"
	}
	at := strconv.FormatInt(ch.Created.UnixMicro(), 10)
	return map[string]any{
		"id":              ch.jid(),
		"state":           map[string]any{"type": "ACTIVE"},
		"viewer_metadata": map[string]any{"mute": "OFF", "role": role},
		"thread_metadata": map[string]any{
			"creation_time": strconv.FormatInt(ch.Created.Unix(), 10), "invite": ch.Invite,
			"name":              map[string]any{"text": ch.Name, "id": "1", "update_time": at},
			"description":       map[string]any{"text": ch.Description, "id": "2", "update_time": at},
			"subscribers_count": strconv.Itoa(len(ch.Admins) + len(ch.Followers)),
			"verification":      "UNVERIFIED",
			"settings":          map[string]any{"reaction_codes": map[string]any{"value": "all"}},
		},
	}
}
