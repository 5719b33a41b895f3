package vendorsim

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
)

const (
	maxControlBody = 1 << 20
	maxLedgerPage  = 10_000
)

// Control returns the HTTP interface with which a test in another process controls the Vendor:
//
//	POST /scan      {"qr", "phoneNumber"}             or {"code", "phoneNumber"}
//	POST /inbound   {"to", "from", Content…}          answers {"networkId"}
//	POST /type      {"account", "to", Content…}       answers {"networkId"}
//	POST /receipts  {"account", "networkId", "status"} status is delivered, read or played
//	POST /faults    {"account", "kind"}               account "*" means all
//	GET  /accounts                                    answers {"data": [Account…]}
//	GET  /ledger?after=N&limit=M                      answers {"data": [Entry…], "next": N}
//	GET  /shown?number=+…                             answers {"data": [Shown…]}
//
//	POST /groups/messages {"group", "from", Content…} answers {"networkId"}
//	POST /groups/changes  {"group", "by", GroupChange…}
//	GET  /groups?number=+…                            answers {"data": [Group…]}
//	POST /chats     {"account", "chat", "archived", "muted", "readUntil"}  on the account's phone
//	GET  /chats?number=+…                             answers {"data": {chat: ChatSettings}}
//	POST /contacts  {"account", "number", "name"}     in the address book of the account's phone
//
//	POST /media?account=+…&type=image                 the file itself; answers {"media": Media}
//	GET  /media?number=+…&networkId=…                 answers the file that a phone shows
//	POST /reactions {"account", "by", "target", "emoji"}
//	POST /edits     {"account", "by", "target", "body", "sealed"}
//	POST /revokes   {"account", "by", "target"}
//	POST /votes     {"account", "by", "target", "choices"}
//	POST /pins      {"account", "by", "target", "seconds"}
//	POST /stars     {"account", "target", "starred"}, answers {}
//	POST /calls     {"account", "from", "video", "group"}, answers {"callId"}
//	POST /typing    {"account", "from", "group", "kind"} kind is typing, recording or paused; answers {}
//	POST /online    {"from", "online", "last"}, answers {}
//	POST /history   {"account", "messages": [Past…], "onRequest"}, answers {}
//
//	POST /passkeys         {"number"}                 the number asks for its passkey from now on; answers
//	                                                  {"id", "userHandle", "privateKey", "rpId"}, in base64
//	POST /passkeys/answer  {"number", "publicKey", "mistake"}  answers {"credential"}
//	POST /passkeys/faults  {"number", "kind"}
//	GET  /passkeys/code?number=+…                     answers {"code"}, which the phone shows
//
// Content… are the members of [Content]: "type" and "body" and, for most types, the member of the
// same name. "media" is the answer to POST /media, with any of the members that the message shall
// have. The actions from /reactions to /pins are those of [Vendor.React]; they answer {"networkId"}, and
// work as "type" and "target" of POST /inbound as well.
//
// A refused request gets 400 and {"error"}. The interface has no authentication, so serve it on
// loopback only.
func (v *Vendor) Control() http.Handler {
	api := controlAPI{v}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /scan", control(api.scan))
	mux.HandleFunc("POST /inbound", control(api.inbound))
	mux.HandleFunc("POST /type", control(api.typed))
	mux.HandleFunc("POST /receipts", control(api.receipt))
	mux.HandleFunc("POST /faults", control(api.fault))
	mux.HandleFunc("POST /media", api.upload)
	mux.HandleFunc("GET /media", api.download)
	mux.HandleFunc("POST /reactions", control(api.react))
	mux.HandleFunc("POST /edits", control(api.edit))
	mux.HandleFunc("POST /revokes", control(api.revoke))
	mux.HandleFunc("POST /votes", control(api.vote))
	mux.HandleFunc("POST /pins", control(api.pin))
	mux.HandleFunc("POST /stars", control(api.star))
	mux.HandleFunc("POST /calls", control(api.call))
	mux.HandleFunc("POST /typing", control(api.showTyping))
	mux.HandleFunc("POST /online", control(api.appear))
	mux.HandleFunc("POST /history", control(api.remember))
	mux.HandleFunc("POST /passkeys", control(api.passkey))
	mux.HandleFunc("POST /passkeys/answer", control(api.answerPasskey))
	mux.HandleFunc("POST /passkeys/faults", control(api.failPasskey))
	mux.HandleFunc("GET /passkeys/code", api.showPasskeyCode)
	mux.HandleFunc("POST /groups/messages", control(api.writeInGroup))
	mux.HandleFunc("POST /groups/changes", control(api.changeGroup))
	mux.HandleFunc("GET /groups", api.listGroups)
	mux.HandleFunc("POST /chats", control(api.setChat))
	mux.HandleFunc("GET /chats", api.listChats)
	mux.HandleFunc("POST /contacts", control(api.saveContact))
	mux.HandleFunc("GET /accounts", api.listAccounts)
	mux.HandleFunc("GET /shown", api.listShown)
	mux.HandleFunc("GET /ledger", api.listLedger)
	return mux
}

// controlAPI holds the handlers of Control.
type controlAPI struct{ vendor *Vendor }

type scanBody struct{ QR, Code, PhoneNumber string }

func (a controlAPI) scan(ctx context.Context, in scanBody) (any, error) {
	if in.Code != "" {
		return struct{}{}, a.vendor.EnterCode(ctx, in.Code, in.PhoneNumber)
	}
	return struct{}{}, a.vendor.Scan(ctx, in.QR, in.PhoneNumber)
}

type inboundBody struct {
	To, From string
	Content
}

func (a controlAPI) inbound(ctx context.Context, in inboundBody) (any, error) {
	return networkID(a.vendor.SendContent(ctx, in.To, in.From, in.Content))
}

type typeBody struct {
	Account, To string
	Content
}

func (a controlAPI) typed(ctx context.Context, in typeBody) (any, error) {
	return networkID(a.vendor.TypeContent(ctx, in.Account, in.To, in.Content))
}

type receiptBody struct {
	Account, NetworkID string
	Status             ReceiptKind
}

func (a controlAPI) receipt(ctx context.Context, in receiptBody) (any, error) {
	return struct{}{}, a.vendor.Receipt(ctx, in.Account, in.NetworkID, in.Status)
}

type faultBody struct {
	Account string
	Kind    Fault
}

func (a controlAPI) fault(ctx context.Context, in faultBody) (any, error) {
	return struct{}{}, a.vendor.Fault(ctx, in.Account, in.Kind)
}

func (a controlAPI) listAccounts(w http.ResponseWriter, _ *http.Request) {
	controlAnswer(w, map[string]any{"data": a.vendor.Accounts()}, nil)
}

func (a controlAPI) listShown(w http.ResponseWriter, r *http.Request) {
	controlAnswer(w, map[string]any{"data": a.vendor.Shown(r.FormValue("number"))}, nil)
}

func (a controlAPI) listLedger(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseInt(orZero(r.FormValue("after")), 10, 64)
	if err != nil {
		controlAnswer(w, nil, errors.New("after is a number"))
		return
	}
	limit, err := strconv.Atoi(orZero(r.FormValue("limit")))
	if err != nil {
		controlAnswer(w, nil, errors.New("limit is a number"))
		return
	}
	if limit <= 0 || limit > maxLedgerPage {
		limit = maxLedgerPage
	}
	entries := a.vendor.Ledger(after, limit)
	if len(entries) > 0 {
		after = entries[len(entries)-1].N
	}
	controlAnswer(w, map[string]any{"data": entries, "next": after}, nil)
}

func orZero(s string) string {
	if s == "" {
		return "0"
	}
	return s
}

// control handles a request with a JSON body: it decodes the body, calls do and encodes the result.
func control[In any](do func(context.Context, In) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxControlBody)).Decode(&in); err != nil {
			controlAnswer(w, nil, errors.New("the body is not the JSON object that is asked for"))
			return
		}
		out, err := do(r.Context(), in)
		controlAnswer(w, out, err)
	}
}

func controlAnswer(w http.ResponseWriter, out any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = map[string]string{"error": err.Error()}
	}
	json.NewEncoder(w).Encode(out) //nolint:errcheck,gosec // an error means that the client has disconnected
}
