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

// picturePath is the beginning of the path of a group's picture.
const picturePath = "/pp/"

// maxPictureSide is how many pixels each side of a picture may have.
const maxPictureSide = 640

// pictures answers queries about the pictures of groups. It returns false for others.
func (v groupChats) pictures(c *conn, n *waBinary.Node, kind string) bool {
	target, ok := attrJID(n, "target")
	if !ok || target.Server != types.GroupServer {
		return false
	}
	v.mu.Lock()
	reply, code := v.picture(c, target.User, kind == "set", n)
	v.mu.Unlock()
	if code != 0 {
		c.replyError(n, code, "refused")
		return true
	}
	c.reply(n, reply...)
	return true
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
	case len(g.saved.Picture) == 0:
		return nil, http.StatusNotFound
	case attr(&ask, "id") == g.saved.PictureID:
		return []waBinary.Node{{Tag: "picture", Attrs: waBinary.Attrs{"status": http.StatusNotModified}}}, 0
	}
	path := picturePath + id + "/" + g.saved.PictureID
	return []waBinary.Node{{Tag: "picture", Attrs: waBinary.Attrs{
		"id": g.saved.PictureID, "type": "image", "url": "https://" + c.mediaHost + path, "direct_path": path,
	}}}, 0
}

// isPicture reports whether bytes are a square JPEG that is small enough.
func isPicture(b []byte) bool {
	size, err := jpeg.DecodeConfig(bytes.NewReader(b))
	return err == nil && size.Width == size.Height && size.Width <= maxPictureSide
}

// setPicture changes the picture of a group, and tells its members. The caller holds v.mu.
func (v groupChats) setPicture(g *group, by number, picture []byte) {
	g.saved.Picture, g.saved.PictureID = picture, strings.ToLower(rand.Text()[:12])
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

// handOutPicture answers the download of a group's picture.
func (v mediaHost) handOutPicture(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	g := v.groups[r.PathValue("group")]
	var picture []byte
	if g != nil && g.saved.PictureID == r.PathValue("id") {
		picture = g.saved.Picture
	}
	v.mu.Unlock()
	if picture == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "image/jpeg")
	_, _ = w.Write(picture) // the client may have disconnected
}
