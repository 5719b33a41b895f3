package doctor

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Reach checks that a connection to the host of an address can be made. What names the address for people.
func Reach(name, what string, address *url.URL, config *tls.Config) Check {
	return Check{name, func(ctx context.Context) Finding {
		port := cmp.Or(address.Port(), map[string]string{"smtp": "587", "smtps": "465"}[address.Scheme], "443")
		at := net.JoinHostPort(address.Hostname(), port)
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
		if err == nil && config != nil {
			conn, err = overTLS(ctx, conn, address.Hostname(), config)
		}
		if err != nil {
			return Fail(fmt.Sprintf("%s cannot be reached at %s: %v", what, at, err),
				"Check the address, the firewall, and the DNS of this machine.")
		}
		_ = conn.Close()
		return ok(fmt.Sprintf("%s can be reached at %s.", what, at))
	}}
}

func overTLS(ctx context.Context, conn net.Conn, host string, config *tls.Config) (net.Conn, error) {
	config = config.Clone()
	config.ServerName = host
	c := tls.Client(conn, config)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// Page checks that an address responds with 200.
func Page(name, what, address string) Check {
	return Check{name, func(ctx context.Context) Finding {
		res, err := get(ctx, address, "")
		if err != nil {
			return Fail(what+" cannot be reached: "+err.Error(),
				"Check the address, the firewall, and the DNS of this machine.")
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return Fail(fmt.Sprintf("%s responds to %s with %s.", what, address, res.Status), "Check the address.")
		}
		return ok(what + " responds.")
	}}
}

const maxDocument = 8 << 20 // bytes of the document of the API

const soon = 14 * 24 * time.Hour // until a certificate expires

// Public asks the server at its public address, as its users do, for the document of the API and, with a key, for
// a stream of events.
func Public(base, key string) Check {
	return Check{"public-address", func(ctx context.Context) Finding {
		res, err := get(ctx, base+"/v1/openapi.json", "")
		if err != nil {
			return Fail(base+" cannot be reached: "+err.Error(),
				"Start the server, and check POSTERN_BASE_URL and the proxy.")
		}
		defer res.Body.Close()
		document, err := io.ReadAll(io.LimitReader(res.Body, maxDocument))
		if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(document), `"openapi":`) {
			return Fail(fmt.Sprintf("%s responds with %s, and not as Postern does.", base, res.Status),
				"Check POSTERN_BASE_URL, and to which server the proxy forwards.")
		}
		if f := certificate(res); f.Grade != OK {
			return f
		}
		if key == "" {
			return ok("Postern responds there. To check streams too, give a key with --key.")
		}
		return stream(ctx, base, key)
	}}
}

func certificate(res *http.Response) Finding {
	if res.TLS == nil || len(res.TLS.PeerCertificates) == 0 {
		return ok("")
	}
	if left := time.Until(res.TLS.PeerCertificates[0].NotAfter); left < soon {
		return warn(fmt.Sprintf("The certificate expires in %d hours.", int(left.Hours())), "Renew it.")
	}
	return ok("")
}

// stream reads the beginning of a stream, which the server sends at once.
func stream(ctx context.Context, base, key string) Finding {
	const remedy = "Turn off the buffering of responses in the proxy (nginx: proxy_buffering off); see deploy/proxy."
	ctx, cancel := context.WithTimeout(ctx, limit/2)
	defer cancel()
	res, err := get(ctx, base+"/v1/events/stream", key)
	if err != nil {
		return Fail("A stream of events does not begin: "+err.Error(), remedy)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return Fail("A stream of events is refused with "+res.Status+".", "Give a key that may read events.")
	}
	if _, err := bufio.NewReader(res.Body).ReadByte(); err != nil {
		return Fail("The response of a stream begins, but nothing of the stream arrives.", remedy)
	}
	return ok("Postern responds there, and streams arrive at once.")
}

func get(ctx context.Context, address, key string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Accept", "text/event-stream")
	}
	return http.DefaultClient.Do(req)
}
