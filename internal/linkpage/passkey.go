package linkpage

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"postern/internal/gateway"
	"postern/internal/passkey"
	"postern/internal/postern"
)

// maxAnswer is how large the answer of a browser may be.
const maxAnswer = 64 << 10

// handover is the way to the network's page and back to the page of a token.
func (p *pages) handover(token, workspace string, o postern.PasskeyOptions) passkey.Handover {
	return passkey.Handover{PublicKey: o, Back: p.base + "/link/" + token, Name: workspace}
}

// serveExtension serves the browser extension, which has no secrets.
func (p *pages) serveExtension(w http.ResponseWriter, r *http.Request) {
	var file bytes.Buffer
	if err := passkey.WriteExtension(&file); err != nil {
		p.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", `attachment; filename="postern-passkey.zip"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.Bytes()))
}

// answer takes the credential that the script of the page has brought back. What is wrong with it is said in a
// sentence, which the script shows.
func (p *pages) answer(w http.ResponseWriter, r *http.Request) {
	if !pressedHere(w, r) {
		return
	}
	var credential postern.PasskeyCredential
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAnswer))
	if err != nil || json.Unmarshal(raw, &credential) != nil {
		http.Error(w, "The browser's answer is damaged. Go to the network's page again.", http.StatusUnprocessableEntity)
		return
	}
	err = p.g.LinkPages.Answer(r.Context(), r.PathValue("token"), browserOf(r), credential)
	if err == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	var refused *postern.Error
	if errors.As(err, &refused) && refused.Reason == postern.ValidationFailed {
		http.Error(w, "The network would not accept this passkey. Go to its page again, with the button below.",
			http.StatusUnprocessableEntity)
		return
	}
	if isOver(err) {
		http.Error(w, "", http.StatusConflict) // the page shows what there is to do now
		return
	}
	p.refuse(w, r, err)
}

// compare takes the answer of the owner who has compared the codes.
func (p *pages) compare(w http.ResponseWriter, r *http.Request) {
	if !pressedHere(w, r) {
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxAnswer)
	token, same := r.PathValue("token"), r.PostFormValue("same")
	var err error
	if same == "yes" || same == "no" {
		err = p.g.LinkPages.Compared(r.Context(), token, browserOf(r), same == "yes")
	}
	if err != nil && !isOver(err) {
		p.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, "/link/"+token, http.StatusSeeOther) //nolint:gosec // a page of ours: its token was found
}

// isOver reports whether an answer comes at a time when the network does not wait for it. The page then shows what
// there is to do.
func isOver(err error) bool {
	if errors.Is(err, gateway.ErrPageGone) {
		return false
	}
	reason := postern.ReasonOf(err)
	return reason == postern.NoPasskeyWanted || reason == postern.NothingToConfirm || reason == postern.NoOpenLink
}
