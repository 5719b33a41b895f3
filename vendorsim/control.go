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

// Control returns the HTTP interface with which a test in another process drives the Vendor:
//
//	POST /scan     {"qr", "phoneNumber"}             or {"code", "phoneNumber"}
//	POST /inbound  {"to", "from", "type", "body"}     answers {"networkId"}
//	POST /type     {"account", "to", "body"}          answers {"networkId"}
//	POST /receipts {"account", "networkId", "status"} status is delivered or read
//	POST /faults   {"account", "kind"}                account "*" means all
//	GET  /accounts                                    answers {"data": [Account…]}
//	GET  /ledger?after=N&limit=M                      answers {"data": [Entry…], "next": N}
//	GET  /shown?number=+…                             answers {"data": [Shown…]}
//
// A refusal is answered with 400 and {"error"}. Whoever reaches it rules the network: it belongs on
// loopback.
func (v *Vendor) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /scan", control(func(ctx context.Context, in struct{ QR, Code, PhoneNumber string }) (any, error) {
		if in.Code != "" {
			return struct{}{}, v.EnterCode(ctx, in.Code, in.PhoneNumber)
		}
		return struct{}{}, v.Scan(ctx, in.QR, in.PhoneNumber)
	}))
	mux.HandleFunc("POST /inbound", control(func(ctx context.Context, in struct{ To, From, Type, Body string }) (any, error) {
		if in.Type != "" && in.Type != TypeText {
			return nil, errors.New("only text can be written")
		}
		id, err := v.Send(ctx, in.To, in.From, in.Body)
		return map[string]string{"networkId": id}, err
	}))
	mux.HandleFunc("POST /type", control(func(ctx context.Context, in struct{ Account, To, Body string }) (any, error) {
		id, err := v.Type(ctx, in.Account, in.To, in.Body)
		return map[string]string{"networkId": id}, err
	}))
	mux.HandleFunc("POST /receipts", control(func(ctx context.Context, in struct {
		Account, NetworkID string
		Status             ReceiptKind
	},
	) (any, error) {
		return struct{}{}, v.Receipt(ctx, in.Account, in.NetworkID, in.Status)
	}))
	mux.HandleFunc("POST /faults", control(func(ctx context.Context, in struct {
		Account string
		Kind    Fault
	},
	) (any, error) {
		return struct{}{}, v.Fault(ctx, in.Account, in.Kind)
	}))
	mux.HandleFunc("GET /accounts", func(w http.ResponseWriter, _ *http.Request) {
		controlAnswer(w, map[string]any{"data": v.Accounts()}, nil)
	})
	mux.HandleFunc("GET /shown", func(w http.ResponseWriter, r *http.Request) {
		controlAnswer(w, map[string]any{"data": v.Shown(r.FormValue("number"))}, nil)
	})
	mux.HandleFunc("GET /ledger", v.controlLedger)
	return mux
}

func (v *Vendor) controlLedger(w http.ResponseWriter, r *http.Request) {
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
	entries := v.Ledger(after, limit)
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

// control decodes, does and encodes.
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
	json.NewEncoder(w).Encode(out) //nolint:errcheck,gosec // the caller is gone
}
