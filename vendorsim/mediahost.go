package vendorsim

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

const (
	// pipeHost is the host of media for clients inside the process. The name is never resolved, so
	// a client without the Vendor's HTTP client reaches nobody.
	pipeHost = "media.vendorsim.invalid"
	// mediaLife is how long, in seconds, a client may use the answer to a media_conn query.
	mediaLife = 3600
	// blobPath is the beginning of the path of a stored file.
	blobPath = "/v/"
	// pathEnd makes a path one to which clients append parameters with "&".
	pathEnd = "?x=1"
)

// mmsTypes are the kinds of files that clients upload.
const mmsTypes = " image video audio document md-msg-hist md-app-state sticker-pack thumbnail-link "

// handler returns what the Vendor's server answers: media, and WebSockets at every other path.
func (v mediaHost) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mms/{kind}/{token}", v.holding(v.receive))
	mux.HandleFunc("POST /newsletter/{kind}/{token}", v.holding(v.receive))
	mux.HandleFunc("DELETE /mms/{kind}/{token}", v.holding(v.forget))
	mux.HandleFunc("GET "+blobPath+"{id}", v.holding(v.handOut))
	mux.HandleFunc("GET "+picturePath+"{of}/{id}", v.holding(v.handOutPicture))
	mux.HandleFunc("/", v.sockets.accept)
	return mux
}

// holding keeps Close waiting for a request, and ends the request when the Vendor is closed.
func (v mediaHost) holding(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		if v.closed {
			v.mu.Unlock()
			http.Error(w, ErrClosed.Error(), http.StatusServiceUnavailable)
			return
		}
		v.wg.Add(1)
		v.mu.Unlock()
		defer v.wg.Done()
		conn := http.NewResponseController(w)
		defer context.AfterFunc(v.ctx, func() { //nolint:contextcheck // the Vendor's end, beside the request's
			_ = conn.SetReadDeadline(time.Now()) // a server that cannot do it ends its connections itself
			_ = conn.SetWriteDeadline(time.Now())
		})()
		serve(w, r)
	}
}

// hostFor returns the host of media for a client, as the client reaches it.
func hostFor(r *http.Request) string {
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	if !strings.HasSuffix(name, ".whatsapp.com") && !strings.HasSuffix(name, ".whatsapp.net") {
		return r.Host
	}
	// The client was redirected below HTTP, so that only the address tells where it has got to.
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return addr.String()
	}
	return pipeHost
}

// servers answers the query for the hosts of media and for the permission to upload.
func (v mediaHost) servers(c *conn) waBinary.Node {
	return waBinary.Node{
		Tag: "media_conn",
		Attrs: waBinary.Attrs{
			"auth": v.auth(c.companion.account.number), "ttl": mediaLife, "auth_ttl": mediaLife, "max_buckets": 12,
		},
		Content: []waBinary.Node{{Tag: "host", Attrs: waBinary.Attrs{"hostname": c.mediaHost}}},
	}
}

// auth returns an account's permission to upload. It is the same one after a restart.
func (v mediaHost) auth(n number) string {
	key, err := v.keys.derive("media " + string(n))
	if err != nil {
		return ""
	}
	return n.lid().User + "." + hex.EncodeToString(key.Pub[:])
}

// uploader returns the linked account that a request has the permission of.
func (v mediaHost) uploader(r *http.Request) (number, bool) {
	given := r.FormValue("auth")
	user, _, _ := strings.Cut(given, ".")
	n, ok := numberOf(types.NewJID(user, types.HiddenUserServer))
	if !ok || subtle.ConstantTimeCompare([]byte(given), []byte(v.auth(n))) == 0 {
		return "", false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	_, err := v.devices.linkedAccount(n)
	return n, err == nil
}

// receive stores an upload whose SHA-256 is its token.
func (v mediaHost) receive(w http.ResponseWriter, r *http.Request) {
	one, status := v.upload(r)
	if one == nil {
		_, _ = io.CopyN(io.Discard, r.Body, maxBlob) // a client that still writes would not see the answer
		http.Error(w, "upload not stored", status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]string{ //nolint:errcheck,gosec // the client may have disconnected
		"url": "https://" + r.Host + one.path(), "direct_path": one.path(), "handle": handleOf(one.path()),
	})
}

// upload stores the body of a request, or returns the status with which to refuse it.
func (v mediaHost) upload(r *http.Request) (*blob, int) {
	account, ok := v.uploader(r)
	if !ok {
		return nil, http.StatusUnauthorized
	}
	if status := v.faults.takeUpload(account); status != 0 {
		return nil, status
	}
	kind := strings.TrimPrefix(r.PathValue("kind"), "newsletter-")
	if !strings.Contains(mmsTypes, " "+kind+" ") {
		return nil, http.StatusNotFound
	}
	want, err := base64.URLEncoding.DecodeString(r.PathValue("token"))
	if err != nil {
		return nil, http.StatusBadRequest
	}
	return v.store(account, r.Body, want)
}

// path returns the path at which a blob is handed out.
func (b *blob) path() string { return blobPath + b.id + pathEnd }

// blobID returns the id in the path of a blob, with or without parameters.
func blobID(path string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(path, blobPath), "?")
	return id
}

// ownerOf returns the account that a blob's id names.
func ownerOf(id string) number {
	user, _, _ := strings.Cut(id, "-")
	n, _ := numberOf(types.NewJID(user, types.HiddenUserServer))
	return n
}

// store keeps the body of an upload if want is its SHA-256, or returns the status with which to
// refuse it.
func (v mediaHost) store(account number, body io.Reader, want []byte) (*blob, int) {
	d, err := v.blobs.create()
	if err != nil {
		v.log.Error("store media", "error", err)
		return nil, http.StatusInternalServerError
	}
	if _, err = io.Copy(d, body); err != nil || !bytes.Equal(d.sum(), want) {
		d.discard()
		if errors.Is(err, errBlobTooLarge) {
			return nil, http.StatusRequestEntityTooLarge
		}
		return nil, http.StatusBadRequest
	}
	one, err := d.keep(account)
	if err != nil {
		v.log.Error("store media", "error", err)
		return nil, http.StatusInternalServerError
	}
	return one, http.StatusOK
}

// handOut answers a download, or a range of it.
func (v mediaHost) handOut(w http.ResponseWriter, r *http.Request) {
	body, expired, err := v.blobs.open(r.PathValue("id"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer func() { _ = body.Close() }() // opened for reading
	if expired {
		http.Error(w, "expired", http.StatusGone)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	switch fault := v.faults.takeDownload(ownerOf(r.PathValue("id"))); {
	case fault.status != 0:
		http.Error(w, "fault", fault.status)
	case fault.cut:
		sendHalf(w, body)
	case fault.damaged:
		http.ServeContent(w, r, "", time.Time{}, damaged{body})
	default:
		http.ServeContent(w, r, "", time.Time{}, body)
	}
}

// forget removes a file of an account, whose path without parameters is in the request.
func (v mediaHost) forget(w http.ResponseWriter, r *http.Request) {
	account, ok := v.uploader(r)
	if !ok {
		http.Error(w, "no permission", http.StatusUnauthorized)
		return
	}
	path, err := base64.RawURLEncoding.DecodeString(r.FormValue("d_md"))
	if id := blobID(string(path)); err != nil || ownerOf(id) != account || !v.blobs.remove(id) {
		http.NotFound(w, r)
	}
}
