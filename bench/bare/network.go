package bare

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"

	"go.mau.fi/whatsmeow"

	"postern/vendorsim"
)

// Network is a simulated vendor, as clients reach it.
type Network struct {
	HTTP *http.Client                                       // connects to the vendor for any host
	Scan func(ctx context.Context, qr, number string) error // makes the phone of a number scan a code
}

// In is the network of a vendor in this process.
func In(v *vendorsim.Vendor) Network { return Network{HTTP: v.HTTPClient(), Scan: v.Scan} }

// Remote says where the vendor of another process is.
type Remote struct {
	URL     string // of its WebSockets
	RootKey string // 32 bytes in hex
	CA      string // the file with its TLS authority
	Control string // URL of its control interface
}

// Network returns the network, and sets the root key of whatsmeow, which is one for the whole process.
func (r Remote) Network() (Network, error) {
	root, err := hex.DecodeString(r.RootKey)
	if err != nil {
		return Network{}, err
	}
	if len(root) != len(whatsmeow.WACertPubKey) {
		return Network{}, fmt.Errorf("the root key has %d bytes", len(root))
	}
	whatsmeow.WACertPubKey = [32]byte(root)
	at, err := url.Parse(r.URL)
	if err != nil {
		return Network{}, err
	}
	pem, err := os.ReadFile(r.CA)
	if err != nil {
		return Network{}, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return Network{}, errors.New("the TLS authority is not a certificate")
	}
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: at.Hostname(), MinVersion: tls.VersionTLS12}}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, at.Host)
	}
	return Network{HTTP: &http.Client{Transport: &http.Transport{DialTLSContext: dial}}, Scan: r.scan}, nil
}

func (r Remote) scan(ctx context.Context, qr, number string) error {
	body, err := json.Marshal(map[string]string{"qr": qr, "phoneNumber": number})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Control+"/scan", bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		return fmt.Errorf("the scan is answered %d %s", res.StatusCode, text)
	}
	return nil
}
