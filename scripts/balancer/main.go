// Command balancer passes requests to several servers on this machine, for "make up NODES=3".
//
//	balancer LISTEN SERVER=OPERATIONS...
//
// where SERVER is the address of a server, and OPERATIONS that of its /readyz.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"postern/internal/balance"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "balancer:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("usage: balancer LISTEN SERVER=OPERATIONS...")
	}
	var list []balance.Server
	for _, arg := range args[1:] {
		server, ops, _ := strings.Cut(arg, "=")
		list = append(list, balance.Server{URL: "http://" + server, Ready: "http://" + ops + "/readyz"})
	}
	b := balance.New(func() []balance.Server { return list })
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go b.Run(ctx)
	srv := &http.Server{Addr: args[0], Handler: b, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { srv.Close() })
	if err := srv.ListenAndServe(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
