package testkit_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// networkPage serves a page in place of the network's own, and returns its address on this machine. Its policy allows
// nothing, so what runs there must need nothing.
func networkPage(t *testing.T) string {
	t.Helper()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!doctype html><title>network</title><p>The network's own page")
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// ownerBrowser is a browser that finds the network's page on this machine, with the passkey of the simulated phone.
func ownerBrowser(t *testing.T, k *testkit.Kit) *browser {
	t.Helper()
	b := startBrowser(t, "--host-resolver-rules=MAP web.whatsapp.com:443 "+networkPage(t), "--ignore-certificate-errors")
	b.newPage()
	b.call("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": 900, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	p, err := k.Vendor.Passkeys().Of(vendorsim.NumberPasskey)
	if err != nil {
		t.Fatal(err)
	}
	key, err := p.PrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	b.call("WebAuthn.enable", map[string]any{}, nil)
	var made struct{ AuthenticatorID string }
	b.call("WebAuthn.addVirtualAuthenticator", map[string]any{"options": map[string]any{
		"protocol": "ctap2", "transport": "internal", "hasResidentKey": true, "hasUserVerification": true,
		"isUserVerified": true, "automaticPresenceSimulation": true,
	}}, &made)
	text := base64.StdEncoding.EncodeToString
	b.call("WebAuthn.addCredential", map[string]any{"authenticatorId": made.AuthenticatorID, "credential": map[string]any{
		"credentialId": text(p.ID), "isResidentCredential": true, "rpId": vendorsim.PasskeyDomain, "signCount": 0,
		"privateKey": text(key), "userHandle": text(p.UserHandle),
	}}, nil)
	return b
}

// askedOnPage opens the link page of a device, and lets the phone scan its code.
func askedOnPage(t *testing.T, c *testkit.Client, b *browser, d postern.Device) {
	t.Helper()
	c.Call("POST", path(d, "/link"), nil, 201, nil)
	b.call("Page.navigate", map[string]any{"url": openPage(c, d).URL}, nil)
	b.await("Show the code")
	b.eval(`document.querySelector("button").click()`)
	b.await("Point the camera at this code")
	if a := enter(c, d, map[string]any{"phoneNumber": vendorsim.NumberPasskey}); a.Status != 200 {
		t.Fatalf("scan = %d %s", a.Status, a.Body)
	}
	b.await("Confirm with your passkey")
	b.await("Continue at web.whatsapp.com")
}

// visitNetwork goes to the network's page.
func (b *browser) visitNetwork(address string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": address}, nil)
	b.await("The network's own page")
}

// press presses a button of the dialog on the network's page, as a person does: pages cannot fake it.
func (b *browser) press(label string) {
	b.t.Helper()
	const find = `(() => { const host = document.querySelector("#postern-passkey");
		const all = host && host.shadowRoot ? [...host.shadowRoot.querySelectorAll("button")] : [];
		const one = all.find((b) => b.textContent === %q);
		if (!one) return "";
		const r = one.getBoundingClientRect();
		return JSON.stringify({x: r.x + r.width / 2, y: r.y + r.height / 2}) })()`
	var at struct{ X, Y float64 }
	testkit.Eventually(b.t, label, func() (bool, any) {
		text := b.eval(fmt.Sprintf(find, label))
		return json.Unmarshal([]byte(text), &at) == nil, text
	})
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent",
			map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
}

// paste runs a text as the console of the browser does.
func (b *browser) paste(text string) {
	b.t.Helper()
	var out struct{ ExceptionDetails *struct{ Text string } }
	b.call("Runtime.evaluate", map[string]any{"expression": text, "userGesture": true, "includeCommandLineAPI": true}, &out)
	if out.ExceptionDetails != nil {
		b.t.Fatalf("the text for the console: %s", out.ExceptionDetails.Text)
	}
}

// A passkey links a device in a browser, with the text for the console of the network's page.
func TestPasskeyInABrowser(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		b := ownerBrowser(t, k)
		d := create(c)
		askedOnPage(t, c, b, d)
		b.eval(`document.querySelector("details").open = true`)
		b.picture("passkey-asked")
		snippet := b.eval(`document.querySelector("textarea").value`)
		b.visitNetwork("https://web.whatsapp.com/")
		b.paste(snippet)
		b.await("The network's own page")
		b.picture("passkey-network")
		b.press("Use my passkey")
		b.await("Your phone is linked")
		b.picture("passkey-linked")
		if at := b.eval("location.href"); strings.Contains(at, "passkey") {
			t.Errorf("the credential is still in the address: %s", at)
		}
		d = c.Await(d.ID, postern.Connected)
		m := send(c, d, reader, "linked in a browser")
		c.AwaitMessage(m.ID, postern.Read)
	})
}

// The owner compares the codes on the page: if they differ, nothing is linked.
func TestCodesAreComparedInABrowser(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		compareCodes(k)
		c := k.Workspace("growth")
		b := ownerBrowser(t, k)
		for _, tt := range []struct{ button, shows string }{
			{"no", "The phone showed another code"}, {"yes", "Your phone is linked"},
		} {
			d := create(c)
			askedOnPage(t, c, b, d)
			snippet := b.eval(`document.querySelector("textarea").value`)
			b.visitNetwork("https://web.whatsapp.com/")
			b.paste(snippet)
			b.press("Use my passkey")
			b.await("The codes are the same")
			b.await(k.Vendor.Passkeys().Code(vendorsim.NumberPasskey))
			b.picture("passkey-compare-" + tt.button)
			b.eval(`document.querySelector("button[value=` + tt.button + `]").click()`)
			b.await(tt.shows)
		}
	})
}

// extensionFiles are the files of the extension that a server offers.
func extensionFiles(t *testing.T, k *testkit.Kit) map[string]string {
	t.Helper()
	status, _, body := newVisitor(t).do("GET", k.URL()+"/link/postern-passkey.zip")
	r, err := zip.NewReader(bytes.NewReader([]byte(body)), int64(len(body)))
	if err != nil {
		t.Fatalf("the extension = %d: %v", status, err)
	}
	files := map[string]string{}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
	}
	return files
}

// The scripts of the extension link a device from the address that the page has for them. The browser of these tests
// has no window and takes no extensions, so the scripts run in a world of their own, as those of an extension do, and the
// worker's answer, whether a server was allowed, is given here.
func TestExtensionScriptsInABrowser(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		files := extensionFiles(t, k)
		var manifest struct {
			Permissions     []string
			HostPermissions []string                         `json:"host_permissions"`
			ContentScripts  []struct{ Matches, JS []string } `json:"content_scripts"`
		}
		if err := json.Unmarshal([]byte(files["manifest.json"]), &manifest); err != nil {
			t.Fatal(err)
		}
		script := manifest.ContentScripts[0]
		if len(manifest.Permissions) > 0 || len(manifest.HostPermissions) > 0 || len(script.Matches) != 1 ||
			script.Matches[0] != "https://web.whatsapp.com/*" {
			t.Errorf("the extension may do more than it needs: %s", files["manifest.json"])
		}
		var source strings.Builder
		for _, name := range script.JS {
			source.WriteString(files[name])
		}
		for allowed, shows := range map[string]string{"http://example.com": "you have not allowed this server", k.URL(): ""} {
			b := ownerBrowser(t, k)
			b.call("Page.enable", map[string]any{}, nil)
			b.call("Page.addScriptToEvaluateOnNewDocument", map[string]any{
				"worldName": "postern", "source": fmt.Sprintf(
					`if (location.hostname === "web.whatsapp.com") { globalThis.chrome = { runtime: { sendMessage:
					async (m) => m.server === %q } }; %s }`, allowed, source.String()),
			}, nil)
			d := create(c)
			askedOnPage(t, c, b, d)
			b.visitNetwork(b.eval(`document.querySelector("a.button").href`))
			if shows != "" {
				b.await(shows)
				b.picture("passkey-not-allowed")
				c.Call("DELETE", path(d, "/link"), nil, 204, nil)
				continue
			}
			b.press("Use my passkey")
			b.await("Your phone is linked")
			c.Await(d.ID, postern.Connected)
		}
	})
}
