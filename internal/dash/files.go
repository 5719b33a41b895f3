package dash

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"postern/internal/access"
	"postern/internal/media"
	"postern/internal/postern"
)

const (
	maxFileForm = postern.MaxMedia + maxTextForm // bytes of a form with a file
	sniffed     = 3072                           // bytes by which the type of a file is known
	fileCached  = "private, max-age=3600"        // as long as a link to a file is valid
	filePace    = 32 << 10                       // bytes of a file that arrive in filePatience
	uploadsEach = 4                              // files of a person that arrive at once
	uploadsAll  = 32                             // files of everybody that arrive at once
	uploadRetry = 10 * time.Second
)

// filePatience is how long a form may take for each filePace bytes of its file.
const filePatience = 30 * time.Second

func filePath(id postern.MediaID) string { return "/media/" + url.PathEscape(string(id)) }

// show serves a file of a message, or one that was uploaded.
func (d files) show(w http.ResponseWriter, r *http.Request, v visit) error {
	m, content, err := d.g.Media.Open(r.Context(), v.caller, postern.MediaID(r.PathValue("id")))
	if err != nil {
		return err
	}
	defer content.Close()
	serveFile(w, r, m, content)
	return nil
}

// poster serves the small picture of a video that is shown before the video is played, if there is
// one.
func (d files) poster(w http.ResponseWriter, r *http.Request, v visit) error {
	b, err := d.g.Media.Thumbnail(r.Context(), v.caller, postern.MediaID(r.PathValue("id")))
	if err != nil {
		return err
	}
	if kind := media.Sniff(b); isPicture(kind) {
		sum := sha256.Sum256(b)
		serveFile(w, r, postern.Media{MIMEType: kind, SHA256: hex.EncodeToString(sum[:])}, bytes.NewReader(b))
		return nil
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// fetch asks again for a file that could not be fetched.
func (d files) fetch(w http.ResponseWriter, r *http.Request, v visit) error {
	m, err := d.g.Media.Get(r.Context(), v.caller, postern.MediaID(r.PathValue("id")))
	if err != nil {
		return err
	}
	said := "The file cannot be fetched again."
	switch m.Status {
	case postern.MediaPending:
		said = "The file is being fetched."
	case postern.MediaReady:
		said = "The file is there."
	default:
	}
	to := "/messages"
	if id := r.PostFormValue("message"); id != "" {
		to = messagePath(postern.MessageID(id))
	}
	return d.done(w, r, said, to)
}

// serveFile writes a file of the type that was found in its bytes. What could run in a browser
// is only downloaded. The front door gives the browser time for each part that it reads.
func serveFile(w http.ResponseWriter, r *http.Request, m postern.Media, content io.ReadSeeker) {
	kind, how := m.MIMEType, "inline"
	if !isShown(kind) || r.URL.Query().Has("download") {
		how = "attachment"
	}
	h := w.Header()
	h.Set("Content-Type", cmp.Or(kind, "application/octet-stream"))
	h.Set("Content-Disposition", disposition(how, media.SafeName(m.Filename, kind)))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", fileCached)
	h.Set("ETag", `"`+m.SHA256+`"`)
	// The deadline for the request would end a response that takes longer.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	http.ServeContent(w, r, "", time.Time{}, content)
}

// disposition says what a browser does with a file, and its name in ASCII and in UTF-8 (RFC 6266).
func disposition(how, name string) string {
	return cmp.Or(mime.FormatMediaType(how, map[string]string{"filename": name}), how)
}

// isShown reports whether browsers show or play files of a type, and run nothing in them. SVG and
// PDF are not among them.
func isShown(mimeType string) bool { return isPicture(mimeType) || isPlayed(mimeType) }

func isPicture(mimeType string) bool {
	switch mimeType {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return true
	}
	return false
}

func isPlayed(mimeType string) bool {
	switch mimeType {
	case "video/mp4", "video/webm", "video/ogg", "video/3gpp", "audio/mpeg", "audio/mp4", "audio/aac", "audio/ogg",
		"audio/wav", "audio/flac", "audio/webm":
		return true
	}
	return false
}

// isFile reports whether a request is for a file, as pages with pictures make by themselves.
func isFile(r *http.Request) bool {
	path := r.URL.Path
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		(strings.HasPrefix(path, "/media/") || strings.Contains(path, "/phone/files/"))
}

// takesFile reports whether a request is a form that may have a file.
func takesFile(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "multipart/form-data" && r.Method == http.MethodPost &&
		(r.URL.Path == "/messages" || strings.HasPrefix(r.URL.Path, "/messages/chats/") ||
			strings.HasSuffix(r.URL.Path, "/phone/write"))
}

type fileKey struct{}

// fileIn is the file of a form; nil if it has none.
func fileIn(r *http.Request) *multipart.Part {
	p, _ := r.Context().Value(fileKey{}).(*multipart.Part)
	return p
}

// readParts reads the fields of a form up to its file, which is left for the page: it is large,
// and only members may send one.
func readParts(r *http.Request) (*http.Request, error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return r, err
	}
	if err := r.ParseForm(); err != nil { // the query
		return r, err
	}
	for left := maxTextForm; ; {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		switch {
		case err != nil:
			return r, err
		case p.FormName() == "file" && p.FileName() == "": // no file was chosen
		case p.FormName() == "file":
			return r.WithContext(context.WithValue(r.Context(), fileKey{}, p)), nil
		default:
			if left, err = readField(r, p, left); err != nil {
				return r, err
			}
		}
	}
}

// fieldCost is what a field takes in memory beside its text.
const fieldCost = 100

// readField adds a field to the form, and returns how many bytes are left for others.
func readField(r *http.Request, p *multipart.Part, left int) (int, error) {
	text, err := io.ReadAll(io.LimitReader(p, int64(left)+1))
	if left -= len(text) + len(p.FormName()) + fieldCost; err == nil && left < 0 {
		err = errors.New("the fields are too large")
	}
	if err == nil {
		r.Form.Add(p.FormName(), string(text))
		r.PostForm.Add(p.FormName(), string(text))
	}
	return left, err
}

// takeFile keeps the file of a form as it arrives. It returns the caller with the rights that
// the member still has after that.
func (d *core) takeFile(w http.ResponseWriter, r *http.Request, v visit) (postern.Media, access.Caller, error) {
	part := fileIn(r)
	if part == nil {
		return postern.Media{}, v.caller, nil
	}
	end, err := d.uploads.begin(v.user())
	if err != nil {
		w.Header().Set("Connection", "close")
		return postern.Media{}, v.caller, err
	}
	defer end()
	ctl := http.NewResponseController(w)
	name := media.SafeName(part.FileName(), "")
	made, err := d.g.Media.Upload(r.Context(), v.caller, &arriving{from: part, ctl: ctl}, name, nil)
	if postern.ReasonOf(err) == postern.PayloadTooLarge {
		err = postern.Errorf(postern.PayloadTooLarge,
			"the file is too large; a file can have at most %d MiB", postern.MaxMedia>>20)
	}
	if err != nil {
		w.Header().Set("Connection", "close") // the rest is not read
		return postern.Media{}, v.caller, err
	}
	_ = ctl.SetReadDeadline(time.Time{}) // one left behind would end a handler that takes longer
	caller, err := d.stillIn(r, v)
	return made.Value, caller, err
}

// uploads counts the files that are arriving.
type uploads struct {
	mu   sync.Mutex
	of   map[postern.UserID]int
	each int // most of one person
	all  int // most of everybody
	sum  int
}

// begin takes a place for a file, until end is called.
func (u *uploads) begin(user postern.UserID) (end func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of[user] >= u.each || u.sum >= u.all {
		return nil, &postern.Error{
			Reason: postern.RateLimited, RetryAfter: uploadRetry,
			Detail: "too many files are being uploaded; wait until one has arrived, then try again",
		}
	}
	u.of[user]++
	u.sum++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.sum--
		if u.of[user]--; u.of[user] == 0 {
			delete(u.of, user)
		}
	}, nil
}

// stillIn returns the caller if the browser is still signed in, with the rights that the member
// has now: what takes long must not outlive them.
func (d *core) stillIn(r *http.Request, v visit) (access.Caller, error) {
	_, signedIn, err := d.p.SignIns.Get(r.Context(), d.tokenHash(r))
	if err == nil && !signedIn {
		err = postern.Errorf(postern.Unauthorized, "the browser was signed out")
	}
	if err != nil {
		return access.Caller{}, err
	}
	caller, err := d.p.Members.Caller(r.Context(), v.self, v.workspace())
	if err == nil {
		err = r.Context().Err()
	}
	return caller, err
}

// arriving is a file on its way, which must go on at filePace.
type arriving struct {
	from io.Reader
	ctl  *http.ResponseController
	left int // bytes until the deadline moves
}

func (a *arriving) Read(p []byte) (int, error) {
	if a.left <= 0 {
		_ = a.ctl.SetReadDeadline(time.Now().Add(filePatience)) // not every transport has deadlines
		a.left = filePace
	}
	n, err := a.from.Read(p)
	a.left -= n
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return n, postern.Errorf(postern.PayloadTooLarge, "the file is too large")
	}
	return n, postern.Errorf(postern.MalformedRequest, "the file did not arrive completely; try again")
}

// phoneFile reads a file of the simulated phone from any place: it opens the file again to go
// back.
type phoneFile struct {
	open func() (io.ReadCloser, error)
	size int64
	from io.ReadCloser // nil: not open
	at   int64         // where from is
	next int64         // where the next Read begins
}

func (f *phoneFile) Read(p []byte) (n int, err error) {
	if err := f.reach(); err != nil {
		return 0, err
	}
	n, err = f.from.Read(p)
	f.at += int64(n)
	f.next = f.at
	return n, err
}

// reach opens the file where the next Read begins.
func (f *phoneFile) reach() (err error) {
	if f.from != nil && f.at > f.next {
		f.Close()
	}
	if f.from == nil {
		if f.from, err = f.open(); err != nil {
			f.from = nil
			return err
		}
		f.at = 0
	}
	n, err := io.CopyN(io.Discard, f.from, f.next-f.at)
	f.at += n
	return err
}

// Seek moves the next Read.
func (f *phoneFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.next
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, errors.New("a place before the beginning of the file")
	}
	f.next = offset
	return offset, nil
}

// Close closes the file. A Read opens it again.
func (f *phoneFile) Close() {
	if f.from != nil {
		_ = f.from.Close()
		f.from = nil
	}
}

// file serves a file that the simulated phone shows.
func (d phones) file(w http.ResponseWriter, r *http.Request, v visit) error {
	from, m, err := d.openFile(r, v)
	if err != nil {
		return err
	}
	f := &phoneFile{from: from, size: m.Size, open: func() (io.ReadCloser, error) {
		from, _, err := d.openFile(r, v)
		return from, err
	}}
	defer f.Close()
	head := make([]byte, min(sniffed, m.Size))
	if _, err := io.ReadFull(f, head); err != nil {
		return err
	}
	m.MIMEType, f.next = media.Sniff(head), 0
	serveFile(w, r, m, f)
	return nil
}

func (d phones) openFile(r *http.Request, v visit) (io.ReadCloser, postern.Media, error) {
	return d.g.SandboxPhones.File(r.Context(), v.caller, deviceIn(r), r.PathValue("message"))
}
