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
	Same      string        // to compare with the one on the phone
	Asked     bool          // the network asks for the passkey
	Address   template.URL  // of the network's page, with the request
	Snippet   string        // for the console of that page
	Picture   template.HTML // to scan
	Seen      string        // identifies the shown content
	Part      template.HTML // what the script replaces
}

func (h *pages) pageOf(r *http.Request, v gateway.PageView) page {
	token := r.PathValue("token")
	p := page{Title: "Link your phone to " + v.Workspace, Workspace: v.Workspace, Token: token, Method: v.Link.Method}
	if v.Free {
		p.Button, p.Asked = true, v.Link.Status == postern.LinkPasskey || v.Link.Status == postern.LinkConfirm
		return p
	}
	p.Live, p.Refresh = true, true
	p.showLink(v.Link)
	if v.Link.Passkey != nil {
		way := h.handover(token, v.Workspace, v.Link.Passkey.PublicKey)
		p.Address, p.Snippet = template.URL(way.Address()), way.Snippet() //nolint:gosec // an address of ours
	}
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
		p.Title, p.Asked = "Confirm with your passkey", true
		if l.Passkey == nil {
			p.Title, p.Text = "Checking your passkey", "The network checks it. Keep the phone at hand: it may ask you to confirm."
		}
	case postern.LinkConfirm:
		p.Title, p.Same = "Compare the codes", string(l.ConfirmationCode)
		if p.Same == "" {
			p.Title, p.Text = "Linking your phone", "The codes are the same. This takes a few seconds."
		}
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
		return "The network waited ten minutes for your passkey, and got none."
	case "passkey-refused":
		return "The network did not accept the passkey. It must belong to the account on the phone that scanned the code."
	case "passkey-unconfirmed":
		return "Nobody confirmed the link in time."
	case "code-differs":
		return "The phone showed another code, so nothing was linked."
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
