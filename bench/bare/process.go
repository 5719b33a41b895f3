package bare

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
)

// Serve makes another process control clients. It reads one order in each line of r, and answers each
// with a line on w: "done", or what went wrong. It returns at the end of r.
//
//	link NUMBER        links another client to a number
//	send CLIENTS EACH  sends so many texts by each of the first clients, one after the other
//	await N            waits until N texts have arrived since the start, over all clients
func Serve(ctx context.Context, n Network, dir string, r io.Reader, w io.Writer) error {
	clients, err := OpenClients(ctx, n, dir)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(r); lines.Scan(); {
		answer := "done"
		if err := clients.obey(ctx, lines.Text()); err != nil {
			answer = fmt.Sprintf("%q", err) // one line
		}
		if _, err := fmt.Fprintln(w, answer); err != nil {
			return err
		}
	}
	return clients.Close()
}

func (c *Clients) obey(ctx context.Context, line string) error {
	var number string
	var n, each int
	if _, err := fmt.Sscanf(line, "link %s", &number); err == nil {
		_, err := c.Link(ctx, number)
		return err
	}
	if _, err := fmt.Sscanf(line, "send %d %d", &n, &each); err == nil {
		return c.SendAll(ctx, n, each)
	}
	if _, err := fmt.Sscanf(line, "await %d", &n); err == nil {
		return c.AwaitReceived(ctx, n)
	}
	return fmt.Errorf("unknown order: %s", line)
}

// SendAll sends so many texts by each of the first n clients, which send at the same time. Each waits
// for the vendor's acknowledgement before it sends the next.
func (c *Clients) SendAll(ctx context.Context, n, each int) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range n {
		group.Go(func() error {
			for range each {
				if err := c.Send(ctx, i, "15005550002", "A message of ordinary length."); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
