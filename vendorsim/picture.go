package vendorsim

import (
	"bytes"
	"crypto/rand"
	"image/jpeg"
	"net/http"
	"strings"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

const (
	// picturePath is the beginning of the path of a picture.
	picturePath = "/pp/"
	// personPrefix is what the part of the path that names a person begins with. Those that name groups are digits.
	personPrefix = "p"
)

// maxPictureSide is how many pixels each side of a picture may have.
const maxPictureSide = 640

// pictures answers queries about the pictures of groups and of people.
func (v queries) pictures(c *conn, n *waBinary.Node, kind string) {
	own := c.companion.account.number
	target, named := attrJID(n, "target")
	v.mu.Lock()
	var reply []waBinary.Node
	var code int
	switch who, ok := numberOf(target); {
	case named && target.Server == types.GroupServer:
		reply, code = v.groupChats.picture(c, target.User, kind == "set", n)
	case kind == "set" && (!named || who == own):
		reply, code = v.people.newPicture(own, n)
	case kind == "get" && ok:
		p := v.profiles[who]
		reply, code = c.shownPicture(n, personPrefix+string(who), p.PictureID, p.Picture)
	default:
		code = http.StatusForbidden
	}
	v.mu.Unlock()
	if code != 0 {
		c.replyError(n, code, pictureErrors()[code])
		return
	}
	c.replyDurably(n, reply...)
}

// pictureErrors are the vendor's texts for the codes with which it refuses queries about pictures.
func pictureErrors() map[int]string {
	return map[int]string{
		http.StatusUnauthorized: "not-authorized", http.StatusForbidden: "forbidden",
		http.StatusNotFound: "item-not-found", http.StatusNotAcceptable: "not-acceptable",
	}
}

// newPicture sets the picture of a person, or removes it. The caller holds v.mu.
func (v people) newPicture(who number, n *waBinary.Node) (reply []waBinary.Node, code int) {
	ask, given := n.GetOptionalChildByTag("picture")
	picture := content(ask)
	switch {
	case !given:
		v.changeProfile(who, func(p *profile) { p.setPicture(nil) })
		return nil, 0
	case !isPicture(picture):
		return nil, http.StatusNotAcceptable
	}
	v.changeProfile(who, func(p *profile) { p.setPicture(picture) })
	return []waBinary.Node{{Tag: "picture", Attrs: waBinary.Attrs{"id": v.profiles[who].PictureID}}}, 0
}

// setPicture sets a picture under a new id; nil removes it.
func (p *profile) setPicture(picture []byte) {
	if p.Picture, p.PictureID = picture, ""; picture != nil {
		p.PictureID = newPictureID()
	}
}

func newPictureID() string { return strings.ToLower(rand.Text()[:12]) }

// shownPicture says where a picture is, unless the client has it.
func (c *conn) shownPicture(n *waBinary.Node, of, id string, picture []byte) (reply []waBinary.Node, code int) {
	ask := n.GetChildByTag("picture")
	switch {
	case len(picture) == 0:
		return nil, http.StatusNotFound
	case attr(&ask, "id") == id:
		return []waBinary.Node{{Tag: "picture", Attrs: waBinary.Attrs{"status": http.StatusNotModified}}}, 0
	}
	path := picturePath + of + "/" + id
	return []waBinary.Node{{Tag: "picture", Attrs: waBinary.Attrs{
		"id": id, "type": "image", "url": "https://" + c.mediaHost + path, "direct_path": path,
	}}}, 0
}

// picture returns or sets the picture of a group. The caller holds v.mu.
func (v groupChats) picture(c *conn, id string, set bool, n *waBinary.Node) (reply []waBinary.Node, code int) {
	by := c.companion.account.number
	g, err := v.member(id, by)
	ask, given := n.GetOptionalChildByTag("picture")
	switch {
	case err != nil:
		return nil, http.StatusUnauthorized
	case set && g.saved.AdminsEdit && !g.isAdmin(by):
		return nil, http.StatusForbidden
	case set && !given:
		v.setPicture(g, by, nil)
		return nil, 0
	case set:
		if !isPicture(content(ask)) {
			return nil, http.StatusNotAcceptable
		}
		v.setPicture(g, by, content(ask))
		return []waBinary.Node{{Tag: "picture", Attrs: waBinary.Attrs{"id": g.saved.PictureID}}}, 0
	}
	return c.shownPicture(n, id, g.saved.PictureID, g.saved.Picture)
}

// isPicture reports whether bytes are a square JPEG that is small enough.
func isPicture(b []byte) bool {
	size, err := jpeg.DecodeConfig(bytes.NewReader(b))
	return err == nil && size.Width == size.Height && size.Width <= maxPictureSide
}

// setPicture changes the picture of a group, and tells its members. The caller holds v.mu.
func (v groupChats) setPicture(g *group, by number, picture []byte) {
	g.saved.Picture, g.saved.PictureID = picture, newPictureID()
	v.put(groupKey(g.saved.ID), g.saved)
	child := waBinary.Node{Tag: "delete", Attrs: waBinary.Attrs{"jid": g.jid(), "author": by.lid()}}
	if picture != nil {
		child.Tag, child.Attrs["id"] = "set", g.saved.PictureID
	}
	for _, n := range g.saved.Members {
		for _, cp := range v.devices.companionsOf(n) {
			id := newRef()
			v.queues.deliver(cp, &delivery{
				Class: classNotification, ID: id, Kind: "picture", Node: encodeNode(waBinary.Node{
					Tag: classNotification, Content: []waBinary.Node{child},
					Attrs: waBinary.Attrs{"from": g.jid(), "type": "picture", "id": id, "t": now().Unix()},
				}),
			})
		}
	}
}

// SetGroupPicture lets the phone of a member set the picture of a group, a square JPEG; nil removes it.
func (v *Vendor) SetGroupPicture(id, by string, picture []byte) error {
	n, err := knownNumber(by)
	if err != nil {
		return err
	}
	v.mu.Lock()
	g, err := v.groupChats.member(id, n)
	if err == nil {
		v.groupChats.setPicture(g, n, picture)
	}
	v.mu.Unlock()
	if err != nil {
		return err
	}
	return v.flush()
}

// GroupPicture returns the picture of a group as its members see it; nil if there is none.
func (v *Vendor) GroupPicture(id string) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	if g := v.groups[id]; g != nil {
		return g.saved.Picture
	}
	return nil
}

// handOutPicture answers the download of a picture.
func (v mediaHost) handOutPicture(w http.ResponseWriter, r *http.Request) {
	picture := v.storedPicture(r.PathValue("of"), r.PathValue("id"))
	if picture == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "image/jpeg")
	_, _ = w.Write(picture) // the client may have disconnected
}

// storedPicture returns the picture of a group or a person; nil if it has another one by now.
func (v mediaHost) storedPicture(of, id string) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	if g := v.groups[of]; g != nil && g.saved.PictureID == id {
		return g.saved.Picture
	}
	who, person := strings.CutPrefix(of, personPrefix)
	if p := v.profiles[number(who)]; person && p.PictureID == id {
		return p.Picture
	}
	return nil
}
