// Command vendorsim runs the simulated vendor and its phones by itself, over
// TLS, for tests that kill the gateway. See package vendorsim.
package main

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/sync/errgroup"

	"postern/vendorsim"
)

type cli struct {
	Listen  string `default:"127.0.0.1:7443" help:"Address of the vendor, TLS (${default})."`
	Control string `default:"127.0.0.1:7444" help:"Address of the control interface (${default})."`
	State   string `default:"./data/vendorsim" placeholder:"DIR" help:"Directory of accounts, phones, ledger (${default})."`
	Shown   int    `default:"1000" help:"How many messages each phone shows (${default})."`
	Verbose bool   `help:"Log to standard error."`
}

func main() {
	var c cli
	kong.Parse(&c, kong.Name("vendorsim"), kong.Description("A simulated messaging vendor with simulated phones."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := c.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vendorsim:", err)
		os.Exit(1)
	}
}

func (c *cli) run(ctx context.Context) error {
	log := slog.New(slog.DiscardHandler)
	if c.Verbose {
		log = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	}
	v, err := vendorsim.Open(vendorsim.Options{Dir: c.State, Log: log, Shown: c.Shown})
	if err != nil {
		return err
	}
	return errors.Join(c.serve(ctx, v), v.Close())
}

// ready is the first line on standard output: what POSTERN_NETWORK_URL,
// _ROOT_KEY and _CA take, and where the control interface is.
type ready struct {
	URL     string `json:"url"`
	RootKey string `json:"rootKey"`
	CA      string `json:"ca"`
	Control string `json:"control"`
}

func (c *cli) serve(ctx context.Context, v *vendorsim.Vendor) error {
	cert, caFile, err := certificate(c.State)
	if err != nil {
		return err
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	vendor, err := tls.Listen("tcp", c.Listen, config)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	control, err := lc.Listen(ctx, "tcp", c.Control)
	if err != nil {
		return errors.Join(err, vendor.Close())
	}
	root := v.RootKey()
	err = json.NewEncoder(os.Stdout).Encode(ready{
		URL:     "wss://" + vendor.Addr().String() + "/ws/chat",
		RootKey: hex.EncodeToString(root[:]),
		CA:      caFile,
		Control: "http://" + control.Addr().String(),
	})
	if err != nil {
		return err
	}
	return serveBoth(ctx, server(v.Handler(), vendor), server(v.Control(), control))
}

type served struct {
	*http.Server
	net.Listener
}

func server(h http.Handler, l net.Listener) served {
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	return served{&http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: quiet}, l}
}

// serveBoth serves until ctx is done or one of them fails.
func serveBoth(ctx context.Context, a, b served) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range []served{a, b} {
		group.Go(func() error {
			if err := s.Serve(s.Listener); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		return errors.Join(a.Server.Close(), b.Server.Close())
	})
	return group.Wait()
}
