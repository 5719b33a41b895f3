package chaos_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"sync"
	"testing"

	"postern/vendorsim"
)

var transfer = flag.Int64("transfer", 8, "size of the files of a transfer, in MiB")

const (
	atOnce    = 8        // transfers
	maxGrowth = 40 << 10 // KiB of resident memory above idle
)

// TestTransfersTakeLittleMemory uploads files at the same time and sends them, and receives files and
// downloads them. The memory of the gateway's process does not depend on their size.
func TestTransfersTakeLittleMemory(t *testing.T) {
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{Bin: bin, Devices: atOnce, Calm: true})
	close(w.driver.over)
	w.halt() // linking took memory, of which some would count as idle
	w.boot()
	w.await("connected devices", func() bool { return w.unconnected() == "" })
	idle := w.idle()
	inParallel(t, func(i int) error { return w.sends(i, 1, *transfer<<20) })
	sent := w.gateway.running().memory(t).peak - idle
	w.idle()
	inParallel(t, func(i int) error { return w.receives(i, 2, *transfer<<20) })
	received := w.gateway.running().memory(t).peak - idle
	t.Logf("%d transfers of %d MiB: idle %d MiB, and %d MiB more while they were sent, %d MiB more while they were received",
		atOnce, *transfer, idle>>10, sent>>10, received>>10)
	if max(sent, received) > maxGrowth {
		t.Errorf("memory grew by more than %d MiB", maxGrowth>>10)
	}
	w.halt()
}

func inParallel(t *testing.T, do func(i int) error) {
	t.Helper()
	var all sync.WaitGroup
	for i := range atOnce {
		all.Go(func() {
			if err := do(i); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// idle returns the resident memory in KiB, and makes it the peak.
func (w *world) idle() int {
	w.t.Helper()
	p := w.gateway.running()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0); err != nil {
		w.t.Fatal(err)
	}
	return p.memory(w.t).now
}

// noise is a file that is like no other.
func noise(i, round int, size int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{byte(i), byte(round)}), size)
}

// sumOf is the hash of what is left in r.
func sumOf(r io.Reader) (string, error) {
	h := sha256.New()
	_, err := io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), err
}

// sends uploads a file, sends it with a device, and compares it with what the phone has.
func (w *world) sends(i, round int, size int64) error {
	gateway, _ := w.gateway.where()
	var file, m struct{ ID, SHA256 string }
	if err := w.pass("POST", gateway+"/v1/media?filename=a.bin", noise(i, round, size), size, &file); err != nil {
		return err
	}
	w.api("POST", "/v1/messages", map[string]any{
		"deviceId": w.devices[i].id, "to": reader, "type": "document", "media": map[string]any{"id": file.ID},
	}, &m)
	w.await("a phone that has read the message", func() bool {
		var now struct{ Status string }
		w.api("GET", "/v1/messages/"+m.ID, nil, &now)
		return now.Status == "read"
	})
	want, err := sumOf(noise(i, round, size))
	for _, e := range w.ledger() {
		if e.Media != nil && e.Media.SHA256.String() == want && e.Account == w.devices[i].number {
			return err
		}
	}
	return fmt.Errorf("no phone has the file %s, which was uploaded as %s", want, file.SHA256)
}

// receives lets a contact send a file to a device, and compares it with what is downloaded.
func (w *world) receives(i, round int, size int64) error {
	number := w.devices[i].number
	var made struct{ Media vendorsim.Media }
	to := w.vendor.control + "/media?type=document&account=" + url.QueryEscape(number)
	if err := w.pass("POST", to, noise(i, round, size), size, &made); err != nil {
		return err
	}
	in := map[string]any{"to": number, "from": writer, "type": "document", "media": made.Media}
	if err := w.vendor.ask("POST", "/inbound", in, nil); err != nil {
		return err
	}
	id := ""
	w.await("a file that is ready", func() bool {
		var list struct {
			Data []struct{ Media struct{ ID, Status string } }
		}
		w.api("GET", "/v1/messages?direction=inbound&deviceId="+w.devices[i].id, nil, &list)
		for _, m := range list.Data {
			id = m.Media.ID
			return m.Media.Status == "ready"
		}
		return false
	})
	gateway, _ := w.gateway.where()
	res, err := w.fetch(gateway + "/v1/media/" + id + "/content")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	got, err := sumOf(res.Body)
	if want, _ := sumOf(noise(i, round, size)); err != nil || got != want {
		return fmt.Errorf("the file came back as %s, %w, want %s", got, err, want)
	}
	return nil
}

// pass streams a file, and decodes the answer.
func (w *world) pass(method, to string, file io.Reader, size int64, out any) error {
	req, err := http.NewRequestWithContext(w.t.Context(), method, to, file)
	if err != nil {
		return err
	}
	req.Header, req.ContentLength = w.header.Clone(), size
	res, err := w.driver.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s is answered %d %s", method, to, res.StatusCode, body)
	}
	if err == nil {
		err = json.Unmarshal(body, out)
	}
	return err
}

// fetch requests a file, which must be there.
func (w *world) fetch(from string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	req.Header = w.header.Clone()
	res, err := w.driver.http.Do(req)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s is answered %d", from, res.StatusCode)
		res.Body.Close()
	}
	return res, err
}
