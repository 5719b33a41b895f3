package linkpage

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"html/template"
	"net/http"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/qrcode"
)

//go:embed assets/page.html
var source string

var templates = template.Must(template.New("page").Parse(source)) //nolint:gochecknoglobals // parsed once

// page is what a template shows.
type page struct {
	Title     string
	Text      string
	Workspace string
	Token     string
	Method    string
	Button    bool
	Live      bool          // the script keeps it up to date
	Again     bool          // reload once: the browser withheld the cookie
	Refresh   bool          // a browser without scripts loads it again
	Done      bool          // it is final
	Good      bool          // it is done, and the phone is linked
	Number    string        // last digits of the phone that a code is entered on
	Code      string        // to enter
	Picture   template.HTML // to scan
	Seen      string        // identifies the shown content
	Part      template.HTML // what the script replaces
}

func pageOf(token string, v gateway.PageView) page {
	p := page{Title: "Link your phone to " + v.Workspace, Workspace: v.Workspace, Token: token, Method: v.Link.Method}
	if v.Free {
		p.Button = true
		return p
	}
	p.Live, p.Refresh = true, true
	p.showLink(v.Link)
	p.render()
	return p
}

// showLink describes the state of an attempt.
func (p *page) showLink(l postern.Link) {
	switch l.Status {
	case postern.LinkPending:
		p.Number, p.Code = lastDigits(l.PhoneNumber), string(l.PairingCode)
		if l.QR != "" {
			p.draw(string(l.QR))
		}
	case postern.LinkPasskey:
		p.Title, p.Text = "Your account requires a passkey",
			"This page cannot confirm a passkey. Turn off the passkey in "+
				"your account's settings on the phone, then ask "+p.Workspace+" for a new link."
	case postern.LinkLinked:
		p.Title, p.Done, p.Good = "Your phone is linked", true, true
		p.Text = "It is now linked to " + p.Workspace + ". You can close this page."
	case postern.LinkExpired:
		p.Title, p.Text, p.Done = "This page has expired", "No phone was linked. Ask "+p.Workspace+" for a new link.",
			true
	case postern.LinkFailed:
		p.Title, p.Done = "The phone was not linked", true
		p.Text = why(string(l.Reason)) + " Ask " + p.Workspace + " for a new link."
	}
	p.Refresh = !p.Done
}

// draw adds the QR code; without one, the page says to wait.
func (p *page) draw(code string) {
	svg, err := qrcode.SVG(code)
	if err == nil {
		p.Picture = template.HTML(svg) //nolint:gosec // drawn by us; nothing of anybody's text is in it
	}
}

// why explains a failed attempt to the person with the phone.
func why(reason string) string {
	switch reason {
	case "other-number", "unexpected-number":
		return "The phone has a different number than expected."
	case "wrong-code":
		return "The code entered on the phone does not match the code shown here."
	case "number-unknown":
		return "The network does not know this number."
	case "passkey-required":
		return "Your account requires a passkey, which this page cannot confirm. Turn off the passkey in your account's " +
			"settings on the phone."
	case "canceled", "deleted", "unlinked", "plan-limit":
		return "The linking was canceled by the person who started it."
	}
	return "Something went wrong."
}

// render renders the part that the script replaces, and hashes it.
func (p *page) render() {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, "part", p); err != nil {
		b.Reset()
	}
	sum := sha256.Sum256(b.Bytes())
	p.Part = template.HTML(b.String()) //nolint:gosec // the template has escaped it
	p.Seen = hex.EncodeToString(sum[:8])
}

func write(w http.ResponseWriter, status int, p page) {
	if p.Part == "" {
		p.render()
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = templates.ExecuteTemplate(w, "page", p) // the browser may be gone
}

func writePart(w http.ResponseWriter, p page) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Page-Seen", p.Seen)
	if p.Done {
		w.Header().Set("Page-Done", "1")
	}
	_, _ = w.Write([]byte(p.Part)) // the browser may be gone
}
