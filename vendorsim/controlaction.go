package vendorsim

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// maxMediaUpload is the size of the largest file that a phone writes, in bytes.
const maxMediaUpload = 100 << 20

// actionBody is what all actions have: an account, who acts, and the message, by its id on the
// network.
type actionBody struct{ Account, By, Target string }

type reactionBody struct {
	actionBody
	Emoji string
}

func (a controlAPI) react(ctx context.Context, in reactionBody) (any, error) {
	return networkID(a.vendor.React(ctx, in.Account, in.By, in.Target, in.Emoji))
}

type editBody struct {
	actionBody
	Body   string
	Sealed bool
}

func (a controlAPI) edit(ctx context.Context, in editBody) (any, error) {
	if in.Sealed {
		return networkID(a.vendor.EditSealed(ctx, in.Account, in.By, in.Target, in.Body))
	}
	return networkID(a.vendor.Edit(ctx, in.Account, in.By, in.Target, in.Body))
}

func (a controlAPI) revoke(ctx context.Context, in actionBody) (any, error) {
	return networkID(a.vendor.Revoke(ctx, in.Account, in.By, in.Target))
}

type voteBody struct {
	actionBody
	Choices []string
}

func (a controlAPI) vote(ctx context.Context, in voteBody) (any, error) {
	return networkID(a.vendor.Vote(ctx, in.Account, in.By, in.Target, in.Choices...))
}

type pinBody struct {
	actionBody
	Seconds int
}

func (a controlAPI) pin(ctx context.Context, in pinBody) (any, error) {
	return networkID(a.vendor.Pin(ctx, in.Account, in.By, in.Target, time.Duration(in.Seconds)*time.Second))
}

type starBody struct {
	Account, Target string
	Starred         bool
}

func (a controlAPI) star(ctx context.Context, in starBody) (any, error) {
	return struct{}{}, a.vendor.Star(ctx, in.Account, in.Target, in.Starred)
}

type callBody struct {
	Account, From string
	Call
}

func (a controlAPI) call(ctx context.Context, in callBody) (any, error) {
	id, err := a.vendor.Call(ctx, in.Account, in.From, in.Call)
	return map[string]string{"callId": id}, err
}

type historyBody struct {
	Account   string
	Messages  []Past
	OnRequest bool
}

// remember adds to what the phone of an account had before, and lets it send its history.
func (a controlAPI) remember(ctx context.Context, in historyBody) (any, error) {
	err := a.vendor.Remember(in.Account, in.Messages)
	if err == nil && !in.OnRequest {
		err = a.vendor.SyncHistory(ctx, in.Account)
	}
	return struct{}{}, err
}

func networkID(id string, err error) (any, error) {
	return map[string]string{"networkId": id}, err
}

// upload stores the body of a request as a file for messages of an account.
func (a controlAPI) upload(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	m, err := a.vendor.Upload(query.Get("account"), query.Get("type"), http.MaxBytesReader(w, r.Body, maxMediaUpload))
	m.MimeType = r.Header.Get("Content-Type")
	controlAnswer(w, map[string]Media{"media": m}, err)
}

// download answers with the file of a message that a phone shows. The connection is cut if the file
// is not the one that the message describes.
func (a controlAPI) download(w http.ResponseWriter, r *http.Request) {
	m, err := a.vendor.ShownMessage(r.FormValue("number"), r.FormValue("networkId"))
	if err == nil && m.Media == nil {
		err = errors.New("the message has no file")
	}
	if err != nil {
		controlAnswer(w, nil, err)
		return
	}
	file, err := a.vendor.OpenMedia(*m.Media)
	if err != nil {
		controlAnswer(w, nil, err)
		return
	}
	defer func() { _ = file.Close() }() // opened for reading
	w.Header().Set("Content-Type", m.Media.MimeType)
	if _, err := io.Copy(w, file); err != nil {
		panic(http.ErrAbortHandler)
	}
}

type typingBody struct {
	Account, From, Group string
	Kind                 MomentKind
}

func (a controlAPI) showTyping(_ context.Context, in typingBody) (any, error) {
	return struct{}{}, a.vendor.Online().Type(in.Account, in.From, in.Group, in.Kind)
}

type onlineBody struct {
	From string
	Seen
}

func (a controlAPI) appear(_ context.Context, in onlineBody) (any, error) {
	return struct{}{}, a.vendor.Online().Appear(in.From, in.Seen)
}
