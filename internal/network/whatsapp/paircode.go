package whatsapp

import (
	"context"
	"errors"
	"time"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
)

// codeClient is the name that the phone shows for the companion that asks for a
// code. The vendor accepts only names of browsers that it knows.
const codeClient = "Chrome (Linux)"

// showPairing asks the vendor for the code of a number, and shows it for as long
// as the vendor keeps the connection open.
func (a *attempt) showPairing(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, answerTimeout)
	code, err := a.cli.PairPhone(limited, a.number, true, whatsmeow.PairClientChrome, codeClient)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			a.log.WarnContext(ctx, "ask for a pairing code", "error", redact("pairing code", err))
			a.fail(codeRefusal(err), false)
		}
		return
	}
	if a.showOne(ctx, code, a.pace.pairingCode) {
		a.fail("timeout", true)
	}
}

// codeRefusal returns the reason for which the vendor gives no code.
func codeRefusal(err error) string {
	switch {
	case errors.Is(err, whatsmeow.ErrIQNotFound), errors.Is(err, whatsmeow.ErrPhoneNumberTooShort),
		errors.Is(err, whatsmeow.ErrPhoneNumberIsNotInternational):
		return "number-unknown"
	case errors.Is(err, whatsmeow.ErrIQRateOverLimit):
		return "too-many-codes"
	}
	return "code-refused"
}

// sawBundle remembers the stanza that whatsmeow sends after a code was entered.
func (a *attempt) sawBundle(node *waBinary.Node) {
	reg := node.GetChildByTag("link_code_companion_reg")
	if reg.AttrGetter().OptionalString("stage") != "companion_finish" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bundle = node.AttrGetter().OptionalString("id")
}

// sawAnswer ends the attempt if the vendor refuses that stanza: the phone could
// not open it, because another code was entered. whatsmeow only logs the refusal.
// The socket stays open while whatsmeow handles the answer (docs/decisions/0003).
func (a *attempt) sawAnswer(node *waBinary.Node) {
	ag := node.AttrGetter()
	if node.Tag != "iq" || ag.OptionalString("type") != "error" {
		return
	}
	a.mu.Lock()
	wrong := a.bundle != "" && ag.OptionalString("id") == a.bundle
	a.mu.Unlock()
	if wrong {
		a.setFailure("wrong-code")
		time.AfterFunc(reasonWait, func() { a.end(disconnected("wrong-code")) })
	}
}

// pairingTime is how long the vendor keeps a connection that shows codes open:
// a minute for the first of six codes, and 20 seconds for each further one.
const pairingTime = 160 * time.Second
