package vendorsim

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"go.mau.fi/whatsmeow/appstate"
	waBinary "go.mau.fi/whatsmeow/binary"
)

const (
	// setAboutQuery is the id of the query with which clients change what an account says about itself.
	setAboutQuery = "9152604461510864"
	// The longest texts of a profile that the vendor takes, in characters.
	maxProfileName  = 25
	maxProfileAbout = 139
)

// Profile is what the network shows others of an account.
type Profile struct {
	Name    string // "" if the phone has never been given one
	About   string
	Picture []byte // a square JPEG; nil for none
}

// profile is a Profile as it is stored.
type profile struct {
	Name      string `json:"name"`
	About     string `json:"about"`
	Picture   []byte `json:"picture,omitempty"`
	PictureID string `json:"pictureId,omitempty"`

	Blocked map[number]bool `json:"blocked,omitempty"` // by the owner

	StatusFor  StatusPrivacy `json:"statusFor,omitempty"` // "": never chosen, which means contacts
	StatusList []number      `json:"statusList,omitempty"`
}

// PhoneProfiles are the profiles of accounts, as their phones have them.
type PhoneProfiles struct{ v *Vendor }

// PhoneProfiles returns the profiles of accounts.
func (v *Vendor) PhoneProfiles() PhoneProfiles { return PhoneProfiles{v} }

// Get returns what others see of a number.
func (p PhoneProfiles) Get(num string) (Profile, error) {
	n, err := knownNumber(num)
	if err != nil {
		return Profile{}, err
	}
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	saved := p.v.profiles[n]
	return Profile{Name: p.v.people.nameOf(n), About: saved.About, Picture: saved.Picture}, nil
}

// Rename lets the owner of a linked account change its name on the phone. Companions read it in the app state.
func (p PhoneProfiles) Rename(ctx context.Context, account, name string) error {
	n, err := p.v.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	if err := p.v.states.change(ctx, n, appstate.BuildSettingPushName(name)); err != nil {
		return err
	}
	return p.v.flush()
}

// SetAbout changes on the phone of a number what it says about itself.
func (p PhoneProfiles) SetAbout(num, about string) error {
	return p.v.people.setProfile(num, func(saved *profile) { saved.About = about })
}

// SetPicture changes the picture of a number on its phone, a square JPEG; nil removes it.
func (p PhoneProfiles) SetPicture(num string, picture []byte) error {
	return p.v.people.setProfile(num, func(saved *profile) { saved.setPicture(picture) })
}

// SetName changes the name that a number sends with its texts. Companions of the number are not told.
func (p PhoneProfiles) SetName(num, name string) error {
	return p.v.people.setProfile(num, func(saved *profile) { saved.Name = name })
}

func (v people) setProfile(num string, change func(*profile)) error {
	n, err := knownNumber(num)
	if err != nil {
		return err
	}
	v.mu.Lock()
	v.changeProfile(n, change)
	v.mu.Unlock()
	return v.flush()
}

// changeProfile changes and stores a profile. The caller holds v.mu.
func (v people) changeProfile(n number, change func(*profile)) {
	p := v.profiles[n]
	change(&p)
	v.profiles[n] = p
	v.put("profile/"+string(n), p)
	v.notify()
}

// rename takes a name that a phone or a companion has set. The caller holds v.mu.
func (v people) rename(n number, name string) {
	if name != "" && utf8.RuneCountInString(name) <= maxProfileName {
		v.changeProfile(n, func(p *profile) { p.Name = name })
	}
}

// nameOf returns the name that the phone of a number shows to others. The caller holds v.mu.
func (v people) nameOf(n number) string { return cmp.Or(v.profiles[n].Name, n.name()) }

// changeAbout answers the query that changes what an account says about itself.
func (v people) changeAbout(c *conn, n *waBinary.Node) {
	var query struct {
		Variables struct {
			Input struct {
				Text *string `json:"text"`
			} `json:"input"`
		} `json:"variables"`
	}
	err := json.Unmarshal(content(n.GetChildByTag("query")), &query)
	text := query.Variables.Input.Text
	if err != nil || text == nil || utf8.RuneCountInString(*text) > maxProfileAbout {
		c.replyError(n, http.StatusNotAcceptable, "not-acceptable")
		return
	}
	v.mu.Lock()
	v.changeProfile(c.companion.account.number, func(p *profile) { p.About = *text })
	v.mu.Unlock()
	c.replyDurably(n, waBinary.Node{Tag: "result", Content: []byte(`{"data":{}}`)})
}

// details returns what a query for a user tells of the profile.
func (v people) details(n number) []waBinary.Node {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.profiles[n]
	list := []waBinary.Node{{Tag: "status", Content: []byte(p.About)}}
	if p.PictureID != "" {
		list = append(list, waBinary.Node{Tag: "picture", Attrs: waBinary.Attrs{"id": p.PictureID}})
	}
	return list
}
