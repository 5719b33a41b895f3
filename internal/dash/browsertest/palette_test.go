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
	b.setUp(k)
	_, device := b.linked(k)
	b.goTo("/")
	opens := func(text string) {
		t.Helper()
		b.until("the palette, once the scripts of the page run", func() bool {
			b.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
			open, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`!!document.querySelector('#palette[open]')`))
			b.must(err)
			return open
		})
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
