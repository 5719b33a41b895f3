package linkpage

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
)

//go:embed assets/page.css assets/page.js assets/again.js
var assets embed.FS

const (
	cookieName = "postern_link"
	cookieLife = 15 * time.Minute // that of a page

	// longPoll is how long a script waits for a change before it asks again. It is shorter than
	// the timeouts of common proxies.
	longPoll = 20 * time.Second
	// maxWaiting limits the scripts that wait at the same time; others are answered at once.
	maxWaiting = 1000

	policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; base-uri " +
		"'none'; frame-ancestors 'none'"
)

// Options configure the pages.
type Options struct {
	Gateway *gateway.Gateway
	Log     *slog.Logger
	Secure  bool   // browsers use HTTPS
	BaseURL string // of the server, for the way back from the network's page
}

// pages serves the link pages.
type pages struct {
	g       *gateway.Gateway
	log     *slog.Logger
	secure  bool
	base    string
	waiting chan struct{}
}

// Handler serves everything under /link/.
func Handler(opts Options) http.Handler {
	p := &pages{
		g: opts.Gateway, log: opts.Log, secure: opts.Secure, base: opts.BaseURL, waiting: make(chan struct{}, maxWaiting),
	}
	mux := http.NewServeMux()
	for _, name := range []string{"page.css", "page.js", "again.js"} {
		mux.HandleFunc("GET /link/"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, assets, "assets/"+name)
		})
	}
	mux.HandleFunc("GET /link/postern-passkey.zip", p.serveExtension)
	mux.HandleFunc("GET /link/{token}", p.show)
	mux.HandleFunc("POST /link/{token}", p.take)
	mux.HandleFunc("GET /link/{token}/now", p.now)
	mux.HandleFunc("POST /link/{token}/passkey", p.answer)
	mux.HandleFunc("POST /link/{token}/confirm", p.compare)
	return headed(mux)
}

// headed sets the headers of every response.
func headed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
			"X-Robots-Tag":           "noindex, nofollow",
			"X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin", "X-Frame-Options": "DENY",
		} {
			w.Header().Set(name, value)
		}
		h.ServeHTTP(w, r)
	})
}

// view returns what this browser may see.
func (p *pages) view(r *http.Request) (gateway.PageView, error) {
	return p.g.LinkPages.Get(r.Context(), r.PathValue("token"), browserOf(r))
}

// browserOf returns the secret of a browser that has the page; "" for other browsers.
func browserOf(r *http.Request) string {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return ""
	}
	return c.Value
}

// show serves the page: a button, or the attempt for the browser that has the page.
func (p *pages) show(w http.ResponseWriter, r *http.Request) {
	v, err := p.view(r)
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	write(w, http.StatusOK, p.pageOf(r, v))
}

// take gives the page to the browser in which the button was pressed. Forms on other sites
// cannot press it.
func (p *pages) take(w http.ResponseWriter, r *http.Request) {
	if !pressedHere(w, r) {
		return
	}
	token := r.PathValue("token")
	v, err := p.view(r)
	if err == nil && v.Free {
		err = p.bind(w, r, token)
	}
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, "/link/"+token, http.StatusSeeOther) //nolint:gosec // a page of ours: its token was found
}

// pressedHere refuses requests that the pages of other sites make.
func pressedHere(w http.ResponseWriter, r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	if site == "" || site == "same-origin" || site == "none" {
		return true
	}
	http.Error(w, "open the page and press the button there", http.StatusForbidden)
	return false
}

func (p *pages) bind(w http.ResponseWriter, r *http.Request, token string) error {
	secret, err := p.g.LinkPages.Bind(r.Context(), token)
	if err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever browsers come by HTTPS
		Name: cookieName, Value: secret, Path: "/link/" + token, MaxAge: int(cookieLife.Seconds()), HttpOnly: true,
		Secure: p.secure, SameSite: http.SameSiteStrictMode,
	})
	return nil
}

// now answers the script with the current content as soon as it differs from what the script
// has.
func (p *pages) now(w http.ResponseWriter, r *http.Request) {
	changes, err := p.g.LinkPages.Watch(r.Context(), r.PathValue("token"), browserOf(r))
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	defer changes.Close()
	ctx, cancel := context.WithTimeout(r.Context(), longPoll)
	defer cancel()
	for { // no change goes unseen from here on
		v, err := p.own(r)
		if err != nil {
			p.refuse(w, r, err)
			return
		}
		if page := p.pageOf(r, v); page.Seen != r.FormValue("seen") {
			writePart(w, page)
			return
		}
		if !p.changed(ctx, changes.C()) {
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
}

// own returns the page for the browser that has it.
func (p *pages) own(r *http.Request) (gateway.PageView, error) {
	v, err := p.view(r)
	if err == nil && v.Free {
		err = gateway.ErrPageGone
	}
	return v, err
}

// changed waits until the attempt changes. It returns false if ctx ends first or too many
// scripts are waiting.
func (p *pages) changed(ctx context.Context, changes <-chan struct{}) bool {
	select {
	case p.waiting <- struct{}{}:
		defer func() { <-p.waiting }()
	default:
		return false
	}
	select {
	case <-changes:
		return true
	case <-ctx.Done():
		return false
	}
}

// refuse explains why there is nothing to show.
func (p *pages) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, gateway.ErrPageGone):
		// Browsers withhold a SameSite=Strict cookie after a link on another site, and send it when
		// the page reloads itself.
		again := r.Header.Get("Sec-Fetch-Site") == "cross-site"
		write(w, http.StatusGone, page{
			Again: again, Title: "This page has expired",
			Text: "A link page works for 15 minutes and only in the browser that opened it first. Ask the person who sent you " +
				"the link for a new one.",
		})
	case postern.ReasonOf(err) == postern.NotFound:
		write(w, http.StatusNotFound, page{
			Title: "Page not found",
			Text:  "Check that the link is complete, or ask the person who sent it to you for a new one.",
		})
	default:
		p.log.ErrorContext(r.Context(), "link page", "error", err)
		w.Header().Set("Retry-After", "5")
		write(w, http.StatusServiceUnavailable, page{
			Title: "Temporarily unavailable", Text: "Something went wrong. Reload the page in a few seconds.",
			Refresh: true,
		})
	}
}

// lastDigits returns the digits by which people recognize their number.
func lastDigits(number string) string { return strings.TrimPrefix(number[max(0, len(number)-4):], "+") }
