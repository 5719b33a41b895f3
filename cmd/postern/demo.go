package main

import (
	"context"
	"path/filepath"

	"postern/internal/config"
	"postern/internal/demo"
)

type demoCmd struct {
	Dir     string `default:"./data/demo" placeholder:"DIR" help:"Directory for the demo's data (${default})."`
	Addr    string `env:"POSTERN_ADDR" default:"127.0.0.1:8080" help:"Address of the API (${default})."`
	OpsAddr string `env:"POSTERN_OPS_ADDR" default:"127.0.0.1:9090" help:"Address of metrics and health (${default})."`

	InsecureHTTP config.Switch `name:"insecure-http" env:"POSTERN_INSECURE_HTTP" default:"off" help:"Allow listening on non-loopback addresses without TLS."`
	PublicOps    config.Switch `name:"public-ops" env:"POSTERN_PUBLIC_OPS" default:"off" help:"Allow an operations address that other networks may reach."`

	Once bool `help:"Run the demo once and exit with 0 if everything arrived, and otherwise with 1 and the reason."`
}

// Run runs the demo.
func (c *demoCmd) Run(ctx context.Context, std streams) error {
	return demo.Run(ctx, demo.Options{
		Server: config.Server{
			Data: config.Data{Dir: c.Dir}, Addr: c.Addr, OpsAddr: c.OpsAddr,
			InsecureHTTP: c.InsecureHTTP, PublicOps: c.PublicOps,
			Sandbox: true, AllowPrivateWebhooks: true, DeviceName: "Postern demo", LogLevel: "info",
		},
		LogFile: filepath.Join(c.Dir, "postern.log"), Version: version, Once: c.Once, Out: std.out,
	})
}
