package dash

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"postern/internal/dash/charts"
	"postern/internal/dash/numbers"
	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/people"
	"postern/internal/postern"
)

// Server holds figures of the process.
type Server struct {
	Version    string
	Started    time.Time
	Memory     int64 // resident set size in bytes
	Goroutines int
}

// show shows the status of the whole server.
func (d operator) show(w http.ResponseWriter, r *http.Request, v visit) error {
	s, err := d.g.Statistics.System(r.Context(), v.actor)
	if err != nil {
		return err
	}
	view := page.OperatorView{Live: "/operator", Server: d.serverTiles(s), Queues: queueTiles(s)}
	for _, status := range postern.Statuses() {
		if n := s.Devices[status]; n > 0 {
			view.Devices = append(view.Devices, page.DeviceCount{Status: string(status), Number: numbers.Of(n)})
		}
	}
	day := charts.LastDay()
	view.Charts = []page.Chart{charts.Messages(s.Messages, day), charts.Attempts(s.Attempts, day)}
	return d.write(w, r, http.StatusOK, page.Operator(d.frame(r, v, "Operator", "/operator"), view))
}

func queueTiles(s gateway.System) []page.Tile {
	queued := page.Tile{
		Label: "Messages to send", Value: numbers.Of(s.Queued), Note: numbers.Of(s.Sending) + " being sent",
	}
	if s.Queued == 0 {
		queued.Note = "none queued"
	}
	if s.Queued >= gateway.MessagesCounted {
		queued.Value += " or more"
	}
	oldest := page.Tile{Label: "Oldest due delivery", Value: "–", Note: "none due"}
	if s.OldestDue != 0 {
		oldest.Value, oldest.Note = ageWords(s.Now.Std().Sub(s.OldestDue.Std())), "overdue"
	}
	waiting := page.Tile{
		Label: "Pending deliveries", Value: numbers.Of(s.Waiting), Note: numbers.Of(s.Due) + " due, active webhooks only",
	}
	if s.Waiting >= gateway.DeliveriesCounted {
		waiting.Value += " or more"
	}
	if s.Due >= gateway.DeliveriesCounted {
		waiting.Note = numbers.Of(s.Due) + " or more due, active webhooks only"
	}
	var dead int64
	for _, h := range s.Attempts {
		dead += h.Exhausted
	}
	return []page.Tile{
		queued,
		waiting,
		oldest,
		{Label: "Exhausted deliveries", Value: numbers.Of(dead), Note: "in the last 24 hours"},
	}
}

func (d operator) serverTiles(s gateway.System) []page.Tile {
	list := []page.Tile{
		{Label: "Database", Value: s.Engine, Note: postern.BytesWords(s.Size)},
		{Label: "Servers", Value: numbers.Of(max(s.Servers, 1)), Note: "that use the database"},
	}
	if d.server == nil {
		return list
	}
	me := d.server()
	return append([]page.Tile{
		{Label: "Version", Value: me.Version}, {Label: "Uptime", Value: ageWords(s.Now.Std().Sub(me.Started))},
	}, append(list,
		page.Tile{Label: "Memory", Value: postern.BytesWords(me.Memory), Note: "resident set"},
		page.Tile{Label: "Goroutines", Value: numbers.Of(me.Goroutines)})...)
}

// ageWords formats a duration with its two largest units.
func ageWords(t time.Duration) string {
	s := int64(max(t, 0).Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 24*3600:
		return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%s %d h", numbers.Many(s/(24*3600), "day", "days"), s%(24*3600)/3600)
}

func userIn(r *http.Request) postern.UserID { return postern.UserID(r.PathValue("id")) }

// users lists the users of the server.
func (d operator) users(w http.ResponseWriter, r *http.Request, v visit) error {
	search := r.FormValue("q")
	list, err := d.p.Operators.Users(r.Context(), v.actor, search, paging.Page{Cursor: r.FormValue("after")})
	if err != nil {
		return err
	}
	view := page.AccountsView{Search: search}
	for _, u := range list.Data {
		view.Accounts = append(view.Accounts, page.UserAccount{
			ID: string(u.ID), Email: u.Email, Operator: u.Operator, Password: u.Chosen, Second: u.Second,
			SignedIn: timeOf(u.SignedIn), Workspaces: belongsWords(u), You: u.ID == v.user(),
		})
	}
	if list.Next != "" {
		view.More = "/operator/people?" + url.Values{"q": {search}, "after": {list.Next}}.Encode()
	}
	return d.write(w, r, http.StatusOK, page.Accounts(d.frame(r, v, "Users", "/operator"), view))
}

// activity shows what belongs to no workspace in the audit log.
func (d operator) activity(w http.ResponseWriter, r *http.Request, v visit) error {
	view := page.AuditView{Who: page.Field{Value: r.FormValue("who")}}
	q := people.ActQuery{Page: paging.Page{Cursor: r.FormValue("after")}, Email: view.Who.Value}
	list, err := d.p.Audit.ListAccounts(r.Context(), v.actor, q)
	if err != nil {
		return err
	}
	view.Acts = actsOf(list.Data)
	if list.Next != "" {
		view.More = "/operator/activity?" + url.Values{"who": {view.Who.Value}, "after": {list.Next}}.Encode()
	}
	return d.write(w, r, http.StatusOK, page.Activity(d.frame(r, v, "Account activity", "/operator"), view))
}

func belongsWords(u people.Person) string {
	words := strings.Join(u.Names, ", ")
	switch more := u.Workspaces - len(u.Names); {
	case u.Workspaces == 0:
		return "None"
	case more > 0:
		words += ", and " + numbers.Of(more) + " more"
	}
	return words
}

func (d operator) askPasswordLink(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.showPasswordLink(w, r, v, http.StatusOK, "")
}

func (d operator) showPasswordLink(w http.ResponseWriter, r *http.Request, v visit, status int, wrong string) error {
	u, factors, err := d.p.Operators.User(r.Context(), v.actor, userIn(r))
	if err != nil {
		return err
	}
	view := page.NewPasswordView{
		ID: string(userIn(r)), Email: u.Email, Second: factors.Any(), Password: page.Field{Error: wrong},
	}
	if view.Again, err = d.again(r, v, r.URL.Path); err != nil {
		return err
	}
	return d.write(w, r, status, page.NewPassword(d.frame(r, v, "Create a password-reset link", "/operator"), view))
}

// createPasswordLink creates a link with which a user can set a new password, and shows it
// once.
func (d operator) createPasswordLink(w http.ResponseWriter, r *http.Request, v visit) error {
	u, token, err := d.p.PasswordLinks.ResetByPassword(
		r.Context(), v.actor, userIn(r), r.PostForm.Has("alone"), r.PostFormValue("password"),
	)
	if wrong, ok := faults(err); ok {
		return d.showPasswordLink(w, r, v, http.StatusUnprocessableEntity, wrong["password"])
	}
	if err != nil {
		return err
	}
	return d.write(w, r, http.StatusCreated, page.LinkShown(d.frame(
		r, v, "Password-reset link created", "/operator",
	), page.LinkShownView{
		Title: "Password-reset link created", Email: u.Email, Link: d.joinLink(token), Back: "/operator/people",
		Text: "Copy the link and send it only to this person. The first person to use it gets into the account. The link " +
			"works once, expires in 72 hours, and cannot be shown again.",
	}))
}
