package dash

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/people"
	"postern/internal/postern"
)

// Server is what the process knows of itself.
type Server struct {
	Version    string
	Started    time.Time
	Memory     int64 // bytes that are resident
	Goroutines int
}

// operatorRoutes are the pages of those who run the server.
func (d *dash) operatorRoutes() {
	d.operator("GET /operator", d.system)
	d.operator("GET /operator/workspaces", d.allWorkspaces)
	d.operator("GET /operator/workspaces/new", d.newWorkspace)
	d.operator("POST /operator/workspaces", d.createWorkspace)
	d.operator("GET /operator/workspaces/{id}", d.oneWorkspace)
	d.operator("POST /operator/workspaces/{id}/plan", d.changePlan)
	d.operator("POST /operator/workspaces/{id}/limits", d.changeLimits)
	d.operator("GET /operator/people", d.accounts)
	d.operator("GET /operator/people/{id}/password", d.askPasswordLink)
	d.operator("POST /operator/people/{id}/password", d.passwordLink)
}

// operator serves a page to operators, whatever their workspace is. To all others
// there is no such page.
func (d *dash) operator(pattern string, serve func(http.ResponseWriter, *http.Request, visit) error) {
	d.signedIn(pattern, func(w http.ResponseWriter, r *http.Request, user postern.UserID) error {
		actor, err := d.p.Operators.Actor(r.Context(), d.self(r, user))
		if err != nil {
			return err
		}
		v, err := d.visit(r, user)
		if err != nil && !errors.Is(err, errNoWorkspace) && !errors.Is(err, people.ErrUnknownPlan) {
			return err
		}
		v.actor, v.caller.Member.UserID, v.caller.Member.Email, v.caller.Member.Operator = actor, user, actor.Member.Email, true
		d.saw(r.Context(), pattern, v.caller.Member)
		return serve(w, r, v)
	})
}

// system is how the whole server is doing.
func (d *dash) system(w http.ResponseWriter, r *http.Request, v visit) error {
	s, err := d.g.Statistics.System(r.Context(), v.actor)
	if err != nil {
		return err
	}
	view := page.OperatorView{Live: "/operator", Server: d.serverTiles(s), Queues: queueTiles(s)}
	for _, status := range postern.Statuses() {
		if n := s.Devices[status]; n > 0 {
			view.Devices = append(view.Devices, page.DeviceCount{Status: string(status), Number: number(n)})
		}
	}
	view.Charts = []page.Chart{messagesChart(s.Messages, lastHours()), attemptsChart(s.Attempts, lastHours())}
	return d.show(w, r, http.StatusOK, page.Operator(d.frame(r, v, "Operator", "/operator"), view))
}

func queueTiles(s gateway.System) []page.Tile {
	queued := page.Tile{Label: "Messages to send", Value: num(s.Queued), Note: num(s.Sending) + " of them are with the network"}
	if s.Queued == 0 {
		queued.Note = "none waits"
	}
	if s.Queued >= gateway.MessagesCounted {
		queued.Value += " or more"
	}
	oldest := page.Tile{Label: "Oldest due delivery", Value: "–", Note: "none is due"}
	if s.OldestDue != 0 {
		oldest.Value, oldest.Note = ageWords(s.Now.Std().Sub(s.OldestDue.Std())), "since it should have been sent"
	}
	waiting := page.Tile{Label: "Deliveries that wait", Value: num(s.Waiting), Note: num(s.Due) + " due, of active webhooks"}
	if s.Waiting >= gateway.DeliveriesCounted {
		waiting.Value += " or more"
	}
	if s.Due >= gateway.DeliveriesCounted {
		waiting.Note = num(s.Due) + " or more due, of active webhooks"
	}
	var dead int64
	for _, h := range s.Attempts {
		dead += h.Exhausted
	}
	return []page.Tile{
		queued,
		waiting,
		oldest,
		{Label: "Deliveries given up", Value: num(dead), Note: "in the last 24 hours"},
	}
}

func (d *dash) serverTiles(s gateway.System) []page.Tile {
	list := []page.Tile{{Label: "Database", Value: s.Engine, Note: bytesWords(s.Size)}, {Label: "Nodes", Value: "1", Note: "one server works on a database"}}
	if d.server == nil {
		return list
	}
	me := d.server()
	return append([]page.Tile{{Label: "Version", Value: me.Version}, {Label: "Up for", Value: ageWords(s.Now.Std().Sub(me.Started))}}, append(list,
		page.Tile{Label: "Memory", Value: bytesWords(me.Memory), Note: "resident"},
		page.Tile{Label: "Goroutines", Value: number(me.Goroutines)})...)
}

// ageWords says roughly how long something took: its two largest units.
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
	return fmt.Sprintf("%s %d h", many(s/(24*3600), "day", "days"), s%(24*3600)/3600)
}

// bytesWords writes a size with a unit that leaves it at least one.
func bytesWords(n int64) string {
	size, units := float64(n), []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for size >= 1024 && i < len(units)-1 {
		size, i = size/1024, i+1
	}
	if i == 0 {
		return many(n, "byte", "bytes")
	}
	return fmt.Sprintf("%.1f %s", size, units[i])
}
