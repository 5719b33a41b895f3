package dash

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

const (
	exportRows = 100_000          // of one file
	exportPage = 200              // in memory at a time: 13 MB with texts of 64 KiB
	exportWait = 10 * time.Second // before an attempt while another export runs
)

// download writes the result of a search as a CSV file, page by page as the client reads it.
// The cookie of the login session is written before the first byte, and no layer up to the
// browser buffers the rest.
//
// Each user can run one export at a time, because each is up to 100,000 rows of work.
func (d exports) download(w http.ResponseWriter, r *http.Request, v visit) error {
	if _, busy := d.exporting.LoadOrStore(v.user(), true); busy {
		return &postern.Error{
			Reason: postern.RateLimited, RetryAfter: exportWait,
			Detail: "another export of yours is still running; wait until it finishes or cancel it",
		}
	}
	defer d.exporting.Delete(v.user())
	q, err := search(r)
	if err != nil {
		return err
	}
	q.Page.Limit = exportPage
	list, err := d.g.Messages.List(r.Context(), v.caller, q)
	if err != nil {
		return err
	}
	if err := d.g.Messages.RecordExport(r.Context(), v.caller); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	h.Set("Content-Disposition", `attachment; filename="messages-`+time.Now().UTC().Format("2006-01-02-150405")+`.csv"`)
	h.Set("X-Row-Limit", fmt.Sprint(exportRows))
	if r.Method == http.MethodHead {
		return nil
	}
	f := &exported{ctl: http.NewResponseController(w), csv: csv.NewWriter(w)}
	f.csv.UseCRLF = true               // RFC 4180
	_, err = w.Write([]byte("\ufeff")) // without it, Excel does not recognize UTF-8
	_ = f.csv.Write(exportColumns())   // Flush reports errors
	for err == nil {
		if err = f.write(list.Data); err != nil || list.Next == "" || f.full {
			break
		}
		q.Page.Cursor = list.Next
		list, err = d.next(r, v, q)
	}
	if err != nil {
		if r.Context().Err() == nil {
			d.log.WarnContext(r.Context(), "an export was cut", "error", err)
		}
		panic(http.ErrAbortHandler) // the file is incomplete, and the browser must see that
	}
	return nil
}

// next reads the next page, if the browser is still signed in and the member still has the
// rights: a slow download must not outlive them.
func (d exports) next(r *http.Request, v visit, q gateway.MessageQuery) (paging.List[postern.Message], error) {
	caller, err := d.stillIn(r, v)
	if err != nil {
		return paging.List[postern.Message]{}, err
	}
	return d.g.Messages.List(r.Context(), caller, q)
}

// exported is a file that is being written.
type exported struct {
	ctl  *http.ResponseController
	csv  *csv.Writer
	rows int
	full bool // the row limit is reached
}

func exportColumns() []string {
	return []string{
		"id", "createdAt", "deviceId", "direction", "chatId", "from", "fromName", "to", "type", "body", "status",
		"errorCode",
		"errorDetail", "source",
		"sentAt", "deliveredAt", "readAt", "networkId",
	}
}

func (f *exported) write(list []postern.Message) error {
	for _, m := range list {
		if f.rows == exportRows {
			f.full = true
			_ = f.csv.Write([]string{
				fmt.Sprintf("More messages match, but a file is limited to %d rows. Narrow the search.", exportRows),
			})
			break
		}
		f.rows++
		_ = f.csv.Write(row(m))
	}
	f.csv.Flush()
	if err := f.csv.Error(); err != nil {
		return err
	}
	return f.ctl.Flush()
}

func row(m postern.Message) []string {
	var e postern.Failure
	if m.Error != nil {
		e = *m.Error
	}
	cells := []string{
		string(m.ID), m.CreatedAt.String(), string(m.DeviceID), m.Direction, m.ChatID, string(m.From), m.FromName,
		string(m.To), string(m.Content.Kind), shownText(m.Content), string(m.Status),
		string(e.Code), e.Detail, m.Source, m.SentAt.String(), m.DeliveredAt.String(), m.ReadAt.String(), m.NetworkID,
	}
	for i, c := range cells {
		cells[i] = harmless(c)
	}
	return cells
}

// formulas are the characters with which a formula begins, and those that spreadsheets or
// what is between take for them.
const formulas = `=+\-@＝＋－＠﹦﹢﹣﹫−`

// unseen matches a character that a program may skip: a control character, or one that looks
// like a space or like nothing. Some letters and symbols do, too.
const unseen = `(?:[^\p{L}\p{N}\p{P}\p{S}]|[\x{115F}\x{1160}\x{2800}\x{3164}\x{FFA0}])`

// cellStart matches a cell that begins with such a character, or with a formula, also after
// quotes.
var cellStart = regexp.MustCompile(`^(?:` + unseen + `|"*[` + formulas + `])`)

// formulaInside matches where else a spreadsheet could see a formula. A program that separates
// cells by semicolons or tabs, as Excel does in much of Europe, ignores the quotes around our
// cells, so for it a cell also starts after those and after a line end.
var formulaInside = regexp.MustCompile(
	`([;\t\n\v\f\r\x{85}\x{2028}\x{2029}])((?:` + unseen + `|")*)([` + formulas + `])`)

// harmless keeps a spreadsheet from evaluating a cell or a part of it as a formula (OWASP, CSV
// injection): text after an apostrophe is shown as it is. The same protects numbers such as
// +15551234567, which would become a sum.
func harmless(cell string) string {
	cell = formulaInside.ReplaceAllString(cell, "$1$2'$3")
	if cellStart.MatchString(cell) {
		return "'" + cell
	}
	return cell
}
