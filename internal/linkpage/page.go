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

var templates = template.Must(template.New("page").Parse(source)) //nolint:gochecknoglobals // parsed once, never changed

// page is what a template shows.
type page struct {
	Title     string
	Text      string
	Workspace string
	Token     string
	Method    string
	Button    bool
	Live      bool          // the script keeps it up to date
	Again     bool          // load it once more: the cookie was kept back
	Refresh   bool          // a browser without scripts loads it again
	Done      bool          // it will not change any more
	Good      bool          // it is done, and the phone is linked
	Number    string        // last digits of the phone that a code is entered on
	Code      string        // to enter
	Picture   template.HTML // to scan
	Seen      string        // a name for what is shown
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

// showLink says what an attempt is at.
func (p *page) showLink(l postern.Link) {
	switch l.Status {
	case postern.LinkPending:
		p.Number, p.Code = lastDigits(l.PhoneNumber), string(l.PairingCode)
		if l.QR != "" {
			p.draw(string(l.QR))
		}
	case postern.LinkPasskey:
		p.Title, p.Text = "Your account asks for a passkey", "This page cannot ask you for it. Turn the passkey off in the settings of your account, on the phone, and ask "+p.Workspace+" for a new page."
	case postern.LinkLinked:
		p.Title, p.Text, p.Done, p.Good = "Your phone is linked", "It is linked to "+p.Workspace+" now. You can close this page.", true, true
	case postern.LinkExpired:
		p.Title, p.Text, p.Done = "The time is over", "No phone was linked. Ask "+p.Workspace+" for a new page.", true
	case postern.LinkFailed:
		p.Title, p.Text, p.Done = "The phone was not linked", why(string(l.Reason))+" Ask "+p.Workspace+" for a new page.", true
	}
	p.Refresh = !p.Done
}

// draw leaves the picture out when there cannot be one: the page says to wait.
func (p *page) draw(code string) {
	svg, err := qrcode.SVG(code)
	if err == nil {
		p.Picture = template.HTML(svg) //nolint:gosec // drawn by us; nothing of anybody's text is in it
	}
}

// why says an attempt's reason to the person with the phone.
func why(reason string) string {
	switch reason {
	case "other-number", "unexpected-number":
		return "It has another number than the one that is expected."
	case "wrong-code":
		return "The code that was entered is not the one that was shown."
	case "number-unknown":
		return "The number is not known to the network."
	case "number-taken":
		return "Its number is linked by somebody else."
	case "passkey-required":
		return "Your account asks for a passkey, and this page cannot ask you for it. Turn it off in the settings of your account, on the phone."
	case "canceled", "deleted", "unlinked", "plan-limit":
		return "The attempt was ended by those who began it."
	}
	return "Something went wrong on the way."
}

// render makes the part that the script replaces, and its name.
func (p *page) render() {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, "part", p); err != nil {
		b.Reset()
	}
	sum := sha256.Sum256(b.Bytes())
	p.Part, p.Seen = template.HTML(b.String()), hex.EncodeToString(sum[:8]) //nolint:gosec // the template has escaped it
}

func write(w http.ResponseWriter, status int, p page) {
	if p.Part == "" {
		p.render()
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = templates.ExecuteTemplate(w, "page", p) // the reader is gone
}

func writePart(w http.ResponseWriter, p page) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Page-Seen", p.Seen)
	if p.Done {
		w.Header().Set("Page-Done", "1")
	}
	_, _ = w.Write([]byte(p.Part)) // the reader is gone
}
