// Package linkpreview finds the first link of a text, and reads what a web page says about
// itself to those who show a link to it. It fetches nothing.
package linkpreview

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
	"mvdan.cc/xurls/v2"
)

const (
	// MaxPage bounds how much of a page is read, in bytes.
	MaxPage = 1 << 20

	maxLink     = 2048    // bytes of a link that has a preview
	maxToken    = 1 << 18 // bytes of one tag or text of a page
	sniffed     = 512     // bytes that tell whether a page is a text
	maxTitle    = 300     // characters
	maxAbstract = 1000    // characters of a description
)

// ErrNoPage means that what was fetched is not a page with a title.
var ErrNoPage = errors.New("this is no web page with a title")

// First returns the first link to a web page in a text, as it is written there, or "" if the text
// has no such link.
func First(text string) string {
	links, err := xurls.StrictMatchingScheme(`(?i:https?://)`)
	if err != nil {
		panic(err) // the expression is a constant
	}
	link := links.FindString(text)
	if len(link) > maxLink {
		return ""
	}
	return link
}

// Address returns the URL from which the page of a link is fetched, without the fragment and with
// characters beyond ASCII escaped. It returns "" if the link does not lead to a page.
func Address(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	u.Fragment, u.Scheme = "", strings.ToLower(u.Scheme)
	return u.String()
}

// Page is what a web page says about itself.
type Page struct {
	Title       string // never empty; at most 300 characters
	Description string // at most 1,000 characters; "" if the page has none
	Image       string // absolute URL of its picture; "" if it has none
}

// Read reads a page that was fetched at an address, and no more of it than MaxPage. It stops
// where the head of the page ends. The error is ErrNoPage, or that of the reader.
func Read(r io.Reader, address string) (Page, error) {
	source := bufio.NewReaderSize(io.LimitReader(r, MaxPage), sniffed)
	start, err := source.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return Page{}, err
	}
	if len(start) == 0 || !strings.HasPrefix(http.DetectContentType(start), "text/") {
		return Page{}, ErrNoPage
	}
	decoded, err := charset.NewReader(source, "")
	if err != nil {
		return Page{}, err
	}
	h := head{}
	if err := h.read(html.NewTokenizer(decoded)); err != nil {
		return Page{}, err
	}
	return h.page(address)
}

// head is what the head of a page contains: its title, and what its meta tags say.
type head struct {
	title string
	meta  map[string]string
}

// read reads the tags until the head ends.
func (h *head) read(z *html.Tokenizer) error {
	z.SetMaxBuf(maxToken)
	h.meta = map[string]string{}
	for titled := false; ; {
		switch z.Next() {
		case html.ErrorToken:
			if err := z.Err(); !errors.Is(err, io.EOF) && !errors.Is(err, html.ErrBufferExceeded) {
				return err
			}
			return nil
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if t.DataAtom == atom.Body {
				return nil
			}
			titled = t.DataAtom == atom.Title
			h.note(t)
		case html.EndTagToken:
			titled = false
		case html.TextToken:
			if titled {
				h.title = cmp.Or(h.title, line(string(z.Text()), maxTitle))
			}
		default: // comments and the type of the document say nothing
		}
	}
}

// note notes what a meta tag says; the first one of a name counts.
func (h *head) note(t html.Token) {
	if t.DataAtom != atom.Meta {
		return
	}
	name, value := "", ""
	for _, a := range t.Attr {
		switch a.Key {
		case "property", "name":
			name = strings.ToLower(a.Val)
		case "content":
			value = a.Val
		}
	}
	if h.meta[name] == "" {
		h.meta[name] = value
	}
}

func (h *head) page(address string) (Page, error) {
	p := Page{
		Title:       cmp.Or(line(h.meta["og:title"], maxTitle), h.title),
		Description: line(cmp.Or(h.meta["og:description"], h.meta["description"]), maxAbstract),
		Image:       absolute(address, cmp.Or(h.meta["og:image:secure_url"], h.meta["og:image"])),
	}
	if p.Title == "" {
		return Page{}, ErrNoPage
	}
	return p, nil
}

// line returns a text in one line of at most limit characters, without what cannot be shown.
func line(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Join(strings.Fields(strings.ReplaceAll(s, "\x00", "")), " ")
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i]
		}
	}
	return s
}

// absolute resolves a reference in a page to a URL. It returns "" if that is not possible.
func absolute(page, reference string) string {
	base, err := url.Parse(page)
	if err != nil || reference == "" {
		return ""
	}
	u, err := base.Parse(strings.TrimSpace(reference))
	if err != nil {
		return ""
	}
	u.Fragment = ""
	return u.String()
}
