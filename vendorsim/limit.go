package vendorsim

import (
	"fmt"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// statusLimited refuses a message of an account that may not start chats.
const statusLimited = 463

// limit keeps an account from starting chats for a while; 0 ends that. The end is a whole second, as that is how
// companions are told of it. The caller holds v.mu.
func (v faults) limit(a *account, left time.Duration, tell bool) {
	a.saved.LimitedUntil = time.Time{}
	if left > 0 {
		a.saved.LimitedUntil = now().Add(left + time.Second - 1).Truncate(time.Second)
	}
	v.devices.saveAccount(a)
	if !tell {
		return
	}
	for _, cp := range a.companions {
		v.queues.deliverNotice(cp, "mex", types.ServerJID, waBinary.Node{
			Tag: "update", Attrs: waBinary.Attrs{"op_name": "NotificationUserReachoutTimelockUpdate"},
			Content: []byte(a.reachOut()),
		})
	}
}

// reachOut is what companions are told of the limit of their account.
func (a *account) reachOut() string {
	const form = `{"data":{"xwa2_notify_account_reachout_timelock":{"enforcement_type":"BULK_MESSAGING","is_active":%t%s}}}`
	if a.saved.LimitedUntil.IsZero() {
		return fmt.Sprintf(form, false, "")
	}
	return fmt.Sprintf(form, true, fmt.Sprintf(`,"time_enforcement_ends":"%d"`, a.saved.LimitedUntil.Unix()))
}

// isLimited reports whether an account may not send a message: it may not start chats, or needs a token for that, and
// the recipient never wrote to it.
func (v messages) isLimited(a *account, m outbound) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	limited := now().Before(a.saved.LimitedUntil)
	if !limited && !v.guarded[a.number] || m.to == a.number {
		return false
	}
	for _, e := range v.ledger.entries {
		if e.Account == a.number.String() && e.Peer == m.to.String() && e.Direction == Inbound {
			return false
		}
	}
	return !v.histories.accepts(a.number, m, limited)
}
