package vendorsim

import (
	"io"
	"net/http"
	"strconv"
	"strings"
)

// The faults of files. They concern the files of an account: those that its companions upload, and
// those that phones send to it or that its own phone sends.
const (
	// FaultMedia answers the next download with the status of its argument ("media:410"). The
	// default is 404.
	FaultMedia Fault = "media"
	// FaultMediaEvery answers every download with the status of its argument ("media-every:503").
	// The default is 404; "media-every:0" ends this.
	FaultMediaEvery Fault = "media-every"
	// FaultMediaDamaged damages the file of the next download, so that its hash is another.
	FaultMediaDamaged Fault = "media-damaged"
	// FaultMediaCut cuts the connection in the middle of the next download.
	FaultMediaCut Fault = "media-cut"
	// FaultMediaExpired makes the files stored so far expire: their downloads are answered with
	// 410, until a phone uploads the file again.
	FaultMediaExpired Fault = "media-expired"
	// FaultUpload refuses the next upload of a companion with the status of its argument
	// ("upload:503"). The default is 401.
	FaultUpload Fault = "upload"
	// FaultMediaGone makes the phone answer the next request for a file that it no longer has it.
	FaultMediaGone Fault = "media-gone"
	// FaultMediaSilent makes the phone not answer the next request for a file.
	FaultMediaSilent Fault = "media-silent"
)

// mediaAction returns what a fault of files does to an account, for a caller that holds v.mu. arg is
// the argument of f, "" for none.
func (v faults) mediaAction(f Fault, kind, arg string) (func(*account), error) {
	status, err := strconv.Atoi(orZero(arg))
	known := err == nil && (status == 0 || status >= 400 && status < 600)
	switch k := Fault(kind); {
	case k == FaultMediaExpired:
		return func(a *account) { v.blobs.expire(a.number) }, nil
	case k == FaultMediaEvery && known:
		if arg == "" {
			status = http.StatusNotFound
		}
		return func(a *account) { a.mediaStatus = status }, nil
	case (k == FaultMedia || k == FaultUpload) && known && (status != 0 || arg == ""),
		k == FaultMediaDamaged, k == FaultMediaCut, k == FaultMediaGone, k == FaultMediaSilent:
		return func(a *account) { a.arm(f) }, nil
	}
	return v.stateAction(f, kind, arg)
}

// takeCode disarms a fault with an optional argument, and returns the argument or def. ok is false
// if none is armed. The caller holds v.mu.
func (v faults) takeCode(a *account, kind Fault, def int) (code int, ok bool) {
	for i, f := range a.armed {
		name, arg, _ := strings.Cut(string(f), ":")
		if Fault(name) != kind {
			continue
		}
		a.armed = append(a.armed[:i:i], a.armed[i+1:]...)
		if n, err := strconv.Atoi(arg); err == nil {
			return n, true
		}
		return def, true
	}
	return 0, false
}

// download is what a fault does to a download.
type download struct {
	status       int // the answer, 0 for the file
	damaged, cut bool
}

// takeDownload returns the faults of the next download of an account's file.
func (v faults) takeDownload(owner number) download {
	v.mu.Lock()
	defer v.mu.Unlock()
	a := v.accounts[owner]
	if a == nil {
		return download{}
	}
	if a.mediaStatus != 0 {
		return download{status: a.mediaStatus}
	}
	if status, ok := v.takeCode(a, FaultMedia, http.StatusNotFound); ok {
		return download{status: status}
	}
	return download{damaged: v.takeFault(a, FaultMediaDamaged), cut: v.takeFault(a, FaultMediaCut)}
}

// takeUpload returns the status with which to refuse an upload, 0 for none.
func (v faults) takeUpload(owner number) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	status, _ := v.takeCode(v.accounts[owner], FaultUpload, http.StatusUnauthorized)
	return status
}

// damaged is a file with wrong bytes.
type damaged struct{ io.ReadSeeker }

// Read implements io.Reader.
func (d damaged) Read(p []byte) (int, error) {
	n, err := d.ReadSeeker.Read(p)
	if n > 0 {
		p[0] ^= 0xFF
	}
	return n, err
}

// sendHalf sends the first half of a file, and then cuts the connection.
func sendHalf(w http.ResponseWriter, file io.ReadSeeker) {
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err == nil {
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		_, _ = io.CopyN(w, file, size/2) // the connection is cut in any case
	}
	panic(http.ErrAbortHandler)
}
