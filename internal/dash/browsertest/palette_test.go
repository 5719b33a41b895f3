package browsertest

import (
	"strings"
	"testing"

	"postern/internal/testkit"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Ctrl+K finds pages, devices, people and ids, by keyboard alone.
func TestPalette(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k.SetUpURL())
	_, device := b.linked(k)
	b.goTo("/")
	opens := func(text string) {
		t.Helper()
		b.awaits("Live") // the scripts of the page run
		b.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
		b.do(chromedp.WaitVisible(chromedp.CSS("#palette-text")))
		b.do(chromedp.KeyEvent(text), chromedp.WaitVisible(chromedp.CSS(`[data-found="`+text+`"]`)))
	}
	opens("webh")
	b.awaits("Webhooks\nPage")
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.until("the page of the webhooks", func() bool { return b.path() == "/webhooks" })
	opens(string(device))
	b.awaits("ID")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until("the page of the device", func() bool { return strings.HasSuffix(b.path(), string(device)) })
	opens("mess")
	b.awaits("Search the messages")
	b.looks("palette")
}
