import re,subprocess,shutil
R='/tmp/w/a-web/internal/'
def sub(p, *pairs):
    s=open(R+p).read()
    for a,b in pairs:
        if a not in s: print("MISSING in",p,":",a[:70]); continue
        s=s.replace(a,b)
    open(R+p,'w').write(s)
shutil.copy('/tmp/w/i15d/a-web-compress.go.txt',R+'web/compress.go')
sub('web/compress.go',('''func packable(status''','''func packable(status'''))
sub('web/recorder.go',('''	defer r.door.flights.give(ws, len(b))
	r.start()
	return r.send(b)
}''','''	defer r.door.flights.give(ws, len(b))
	text := b
	if !r.sent {
		r.WriteHeader(http.StatusOK)
		b = r.pack(b)
	}
	r.start()
	if n, err := r.send(b); err != nil {
		return min(n, len(text)), err
	}
	return len(text), nil
}'''))
sub('web/web.go',('''	flights   *flights
''','''	flights   *flights
	archive   archive
'''))
sub('web/limits.go',('''	writeChunk   =''','''	packFrom    = 1 << 10 // bytes of an answer from which it is sent compressed
	brotliLevel = 5       // of 11: smaller than gzip in about the same time

	writeChunk   ='''))
s=open(R+'web/pages.go').read()
a=s.index('	tag    string'); b=s.index('// ServeHTTP answers with the file')
s=s[:a]+'''	tag string
}

func newPage(p reference.Page) *page {
	sum := sha256.Sum256(p.Body)
	return &page{Page: p, tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
}

'''+s[b:]
s=s.replace('''	h.Set("Vary", "Accept-Encoding")
''','')
a=s.index('	body := p.Body'); b=s.index('	h.Set("Content-Type", p.Type)')
s=s[:a]+s[b:]
s=s.replace('strconv.Itoa(len(body))','strconv.Itoa(len(p.Body))').replace('w.Write(body)','w.Write(p.Body)')
s=s.replace('''	"bytes"
	"compress/gzip"
''','').replace('	"strings"\n','')
open(R+'web/pages.go','w').write(s)
sub('api/document.go',('''	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
''','''	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.Header().Set("ETag", a.tag(b))
'''),('''func (a *API) serveDocument''','''// tag identifies the bytes of the document. They do not change while the server runs.
func (a *API) tag(b []byte) string {
	sum := sha256.Sum256(b)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

func (a *API) serveDocument'''),('''	"bytes"
''','''	"bytes"
	"crypto/sha256"
	"encoding/hex"
'''))
sub('api/api.go',('''// encode writes an answer. A caller that left is no error of ours.
func encode(w io.Writer, v any) error {
	b, err := postern.EncodeJSON(v)
	if err == nil {
		_, _ = w.Write(b)
	}
	return err
}''','''// encode writes an answer, and its length, which lets the front door compress it. A
// caller that left is no error of ours.
func encode(w io.Writer, v any) error {
	b, err := postern.EncodeJSON(v)
	if err != nil {
		return err
	}
	if rw, ok := w.(http.ResponseWriter); ok {
		rw.Header().Set("Content-Length", strconv.Itoa(len(b)))
	}
	_, _ = w.Write(b)
	return nil
}'''),('''	"reflect"
	"strings"
''','''	"reflect"
	"strconv"
	"strings"
'''))
sub('api/guard.go',('''	next(huma.WithValue(ctx, requestKey{}, q))
}''','''	if showsSecret(op.OperationID) {
		w.Header().Set("Cache-Control", "no-store, no-transform")
	}
	next(huma.WithValue(ctx, requestKey{}, q))
}

// showsSecret tells whether the answer of an operation has a secret: a code to scan or to
// enter, the address of a page that shows it, a signing secret, or the challenge of an
// endpoint. It is never compressed, on no part of its way; see package web.
func showsSecret(operation string) bool {
	switch operation {
	case "openLink", "getLink", "openLinkPage", "getLinkSVG", "getLinkPNG", "streamLink",
		"createWebhook", "rotateSecret", "getDelivery":
		return true
	}
	return false
}'''))
sub('linkpage/linkpage.go',('"Cache-Control": "no-store", "Referrer','"Cache-Control": "no-store, no-transform", "Referrer'))
import glob
PAGES=['AppSecret','RecoveryCodes','InvitationShown','Join','KeyShown','LinkShown','SetUp','WebhookSecret','WebhookReveal','OneDevice','Device','Link','ResetPassword','NewPasswordLink']
for p in glob.glob(R+'dash/*.go'):
    if p.endswith('_test.go'): continue
    s=open(p).read(); n=s
    for name in PAGES:
        for m in list(re.finditer(r'page\.'+name+r'\(',n))[::-1]:
            i=n.rfind('d.write(',0,m.start())
            if i<0 or m.start()-i>200: print('no write before',p,name); continue
            n=n[:i]+'d.writeSecret('+n[i+len('d.write('):]
    if n!=s: open(p,'w').write(n); print(p)
sub('dash/answer.go',('''// seeOther redirects''','''// writeSecret is write for a page that shows a secret: a key, a code, or a link that lets its
// holder in. Nobody on its way may compress it, because the size of a compressed page tells
// something about the secret to those who can put their own text beside it.
func (d *core) writeSecret(w http.ResponseWriter, r *http.Request, status int, c templ.Component) error {
	w.Header().Set("Cache-Control", "no-store, no-transform")
	return d.write(w, r, status, c)
}

// seeOther redirects'''))
