package egress

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	maxRedirects = 5
	fetchTimeout = 2 * time.Minute // for a whole file
)

// StatusError is the status of a response that is not a success.
type StatusError int

func (e StatusError) Error() string {
	return fmt.Sprintf("the server responded with status %d", int(e))
}

// Fetch reads the file at a URL, which must be one that CheckURL allows, as must each URL to
// which it redirects. The caller closes the file. The error is a StatusError if the server
// responds with another status than 200, and a RedirectError if it redirects to what is not fetched.
func (c *Client) Fetch(ctx context.Context, url string) (io.ReadCloser, error) {
	if err := c.CheckURL(url); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	transport := c.Transport()
	res, err := (&http.Client{Transport: transport, CheckRedirect: c.checkRedirect}).Do(req)
	end := func() {
		cancel()
		transport.CloseIdleConnections()
	}
	if err != nil {
		end()
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		end()
		return nil, StatusError(res.StatusCode)
	}
	return fetched{res.Body, end}, nil
}

// RedirectError says why a redirection was not followed. It names no address.
type RedirectError string

func (e RedirectError) Error() string { return string(e) }

func (c *Client) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return RedirectError("the server redirects too often")
	}
	req.Header.Del("Referer") // the URL before may contain a secret
	if err := c.CheckURL(req.URL.String()); err != nil {
		return RedirectError("the server redirects to a URL that is not allowed: " + err.Error())
	}
	return nil
}

// fetched is a file that is being read.
type fetched struct {
	io.ReadCloser

	end func()
}

func (f fetched) Close() error {
	defer f.end()
	return f.ReadCloser.Close()
}
