package config

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// checkAddresses checks the addresses at which the server listens and is reached.
func (s *Server) checkAddresses() error {
	return errors.Join(s.checkAddr(), s.checkOpsAddr(), checkBaseURL(s.BaseURL), s.checkNetworkURL(),
		checkOTLPEndpoint(s.OTLPEndpoint))
}

func (s *Server) checkAddr() error {
	host, err := splitAddr("POSTERN_ADDR", s.Addr, "127.0.0.1:8080")
	if err != nil {
		return err
	}
	if !loopback(host) && !s.TLS() && len(s.TrustedProxies) == 0 && !bool(s.InsecureHTTP) {
		return errors.New("POSTERN_ADDR is reachable from other machines without TLS; " +
			"set POSTERN_TLS_CERT_FILE and POSTERN_TLS_KEY_FILE, or set POSTERN_TRUSTED_PROXIES if proxies provide " +
			"TLS, or listen on 127.0.0.1, or set POSTERN_INSECURE_HTTP=on in a closed network")
	}
	return nil
}

// MissesBaseURL reports whether others may reach the server, but not at the address of which it makes links.
func (s *Server) MissesBaseURL() bool {
	host, _, err := net.SplitHostPort(s.Addr)
	ip, _ := netip.ParseAddr(host) // the zero address if it is a name
	return s.BaseURL == "" && err == nil && (len(s.TrustedProxies) > 0 || host == "" || ip.IsUnspecified())
}

func (s *Server) checkOpsAddr() error {
	host, err := splitAddr("POSTERN_OPS_ADDR", s.OpsAddr, "127.0.0.1:9090")
	if err != nil {
		return err
	}
	if public(host) && !bool(s.PublicOps) {
		return fmt.Errorf("POSTERN_OPS_ADDR is %q, which other networks may reach, and metrics and profiles need no "+
			"sign-in; "+
			"use an address of this machine or of a private network, or set POSTERN_PUBLIC_OPS=on if a firewall, or "+
			"the network of a container, protects the port", s.OpsAddr)
	}
	return nil
}

// splitAddr returns the host of an address with a port.
func splitAddr(name, addr, example string) (host string, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "", fmt.Errorf("%s is %q, but must be host:port with a port from 0 to 65535, such as %s", name, addr,
			example)
	}
	return host, nil
}

// public reports whether a host is an address beyond this machine and private networks. A name may be either,
// and is not.
func public(host string) bool {
	if host == "" {
		return true // all addresses
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.IsUnspecified() || ip.IsGlobalUnicast() && !ip.IsPrivate())
}

func checkBaseURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return fmt.Errorf("POSTERN_BASE_URL is %q, but must be the address at which people and programs reach the "+
			"server, such as https://postern.example.com", text)
	}
	return nil
}

func checkOTLPEndpoint(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("POSTERN_OTLP_ENDPOINT is %q, but must be the base URL of a collector, such as "+
			"http://127.0.0.1:4318", text)
	case u.User != nil:
		return errors.New("POSTERN_OTLP_ENDPOINT must not contain a password; use OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

func (s *Server) checkNetworkURL() error {
	if s.NetworkURL == "" {
		return nil
	}
	if u, err := url.Parse(s.NetworkURL); err != nil || u.Scheme != "wss" || u.Host == "" {
		return fmt.Errorf("POSTERN_NETWORK_URL is %q, but must be a WebSocket address, wss://host:port/path",
			s.NetworkURL)
	}
	return nil
}

// checkAlerts checks how operators are told what is wrong.
func (s *Server) checkAlerts() error {
	var errs []error
	if s.AlertMail != "" {
		if _, err := mail.ParseAddress(s.AlertMail); err != nil {
			errs = append(errs, fmt.Errorf("POSTERN_ALERT_MAIL is %q, but must be one email address, such as "+
				"night@example.com", s.AlertMail))
		}
		if s.SMTPURL == "" {
			errs = append(errs, errors.New("POSTERN_ALERT_MAIL needs a mail server: set POSTERN_SMTP_URL"))
		}
	}
	if s.AlertAfter != 0 && (s.AlertAfter < leastAlertAfter || s.AlertAfter > mostAlertAfter) {
		errs = append(errs, fmt.Errorf("POSTERN_ALERT_AFTER must be from %s to %s, such as 5m", leastAlertAfter,
			mostAlertAfter))
	}
	return errors.Join(errs...)
}

const (
	leastAlertAfter = time.Second
	mostAlertAfter  = 24 * time.Hour
)

// checkForms checks the beginnings of addresses that contain secrets. Its errors do not show them.
func (s *Server) checkForms() error {
	var errs []error
	for _, setting := range []struct {
		name, value string
		begins      []string
	}{
		{"POSTERN_DATABASE_URL", s.DatabaseURL.Reveal(), []string{"postgres://", "postgresql://"}},
		{"POSTERN_MEDIA_URL", s.MediaURL.Reveal(), []string{"file:///", "s3://"}},
		{"POSTERN_SMTP_URL", s.SMTPURL.Reveal(), []string{"smtp://", "smtps://"}},
		{"POSTERN_ALERT_URL", s.AlertURL.Reveal(), []string{"https://", "http://"}},
	} {
		if setting.value != "" && !beginsWithOne(setting.value, setting.begins) {
			errs = append(errs, fmt.Errorf("%s must begin with %s", setting.name, strings.Join(setting.begins, " or ")))
		}
	}
	return errors.Join(errs...)
}

func beginsWithOne(text string, list []string) bool {
	for _, begin := range list {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
}

// CheckFiles reads the files that the settings name, so that a mistake is reported before anything is created.
func (s *Server) CheckFiles() error {
	_, badCA := s.CA()
	_, badSecret := s.SignOn.Secret()
	return errors.Join(
		readable("POSTERN_TLS_CERT_FILE", s.TLSCertFile), readable("POSTERN_TLS_KEY_FILE",
			s.TLSKeyFile), badCA, badSecret,
		s.checkKeyFile())
}

func readable(name, path string) error {
	if path == "" {
		return nil
	}
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", name, err)
	}
	return f.Close()
}

// checkKeyFile checks that the file with the secret key can be read, or created for an embedded database.
func (d Data) checkKeyFile() error {
	err := readable("POSTERN_SECRET_KEY_FILE", d.SecretKeyFile)
	if err == nil || d.DatabaseURL != "" || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(filepath.Dir(d.SecretKeyFile)); err != nil {
		return fmt.Errorf("POSTERN_SECRET_KEY_FILE cannot be created: %w", err)
	}
	return nil
}
