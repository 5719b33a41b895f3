package dash

import (
	"net/http"
	"net/url"
	"time"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

// formTime is the time format of form fields.
const formTime = "2006-01-02T15:04"

func (d replays) form(w http.ResponseWriter, r *http.Request, v visit) error {
	yesterday := time.Now().UTC().Add(-healthTime).Format(formTime)
	return d.showForm(w, r, v, http.StatusOK, page.ReplayFormView{
		Since: page.Field{Value: yesterday}, Types: eventChoices(nil)[1:],
	})
}

func (d replays) showForm(w http.ResponseWriter, r *http.Request, v visit, status int, view page.ReplayFormView) error {
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	view.ID, view.URL = string(e.ID), e.URL
	return d.write(w, r, status, page.ReplayForm(d.frame(r, v, "Replay events", "/webhooks"), view))
}

func (d replays) create(w http.ResponseWriter, r *http.Request, v visit) error {
	in, err := replayForm(r)
	var made gateway.Created[postern.Replay]
	if err == nil {
		made, err = d.g.Replays.Create(r.Context(), v.caller, hookID(r), in, nil)
	}
	wrong, ok := faults(err)
	if reason := postern.ReasonOf(err); ok || reason == postern.ReplayLimit || reason == postern.EndpointNotActive {
		view := page.ReplayFormView{
			Since: page.Field{Value: r.PostFormValue("since"), Error: wrong["since"]},
			Until: page.Field{Value: r.PostFormValue("until"), Error: wrong["until"]},
			Types: eventChoices(r.PostForm["type"])[1:], TypesError: wrong["types"], OnlyFailed: in.OnlyFailed,
			Problem: "The replay was not started.",
		}
		if !ok {
			view.Problem = word(err.Error()) + "."
		}
		return d.showForm(w, r, v, http.StatusUnprocessableEntity, view)
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, replayPath(made.Value))
}

func replayForm(r *http.Request) (in gateway.NewReplay, err error) {
	in = gateway.NewReplay{Types: r.PostForm["type"], OnlyFailed: r.PostFormValue("failed") != ""}
	if in.Since, err = timeIn(r, "since"); err == nil {
		in.Until, err = timeIn(r, "until")
	}
	return in, err
}

// timeIn reads a time in UTC from a form field; 0 if it is empty.
func timeIn(r *http.Request, name string) (postern.Time, error) {
	text := r.PostFormValue(name)
	if text == "" {
		return 0, nil
	}
	for _, layout := range []string{formTime, formTime + ":05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return postern.TimeOf(t), nil
		}
	}
	return 0, postern.Invalid("/"+name, "enter a time such as 2026-11-21T09:00")
}

func replayPath(of postern.Replay) string {
	return hookPath(of.EndpointID) + "/replays/" + string(of.ID)
}

// get returns the one in the path, if it belongs to the endpoint in the path.
func (d replays) get(r *http.Request, v visit) (postern.Replay, error) {
	one, err := d.g.Replays.Get(r.Context(), v.caller, postern.ReplayID(r.PathValue("replay")))
	if err == nil && one.EndpointID != hookID(r) {
		err = postern.Errorf(postern.NotFound, "this replay does not exist")
	}
	return one, err
}

func (d replays) show(w http.ResponseWriter, r *http.Request, v visit) error {
	one, err := d.get(r, v)
	if err != nil {
		return err
	}
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, one.EndpointID)
	if err != nil {
		return err
	}
	view := replayOf(one)
	view.URL, view.Stop = e.URL, v.may(postern.WebhooksWrite)
	return d.write(w, r, http.StatusOK, page.ReplayPage(d.frame(r, v, "Replay", "/webhooks"), view))
}

func replayOf(one postern.Replay) page.ReplayView {
	return page.ReplayView{
		Webhook: string(one.EndpointID), ID: string(one.ID), Status: string(one.Status), Since: one.Since.Std(),
		Until: one.Until.Std(), Types: one.Types, OnlyFailed: one.OnlyFailed,
		Matched: one.Matched, Pending: one.AlreadyPending, Delivered: one.Delivered, Failed: one.Failed, Created: one.CreatedAt.Std(),
		Ended: one.EndedAt.Std(),
	}
}

func (d replays) list(w http.ResponseWriter, r *http.Request, v visit) error {
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	list, err := d.g.Replays.List(r.Context(), v.caller, e.ID, paging.Page{Cursor: r.FormValue("after")})
	if err != nil {
		return err
	}
	view := page.ReplaysView{
		ID: string(e.ID), URL: e.URL, Replay: v.mayHook(postern.WebhooksWrite, postern.MessagesRead,
			postern.EventsRead),
	}
	for _, one := range list.Data {
		view.Replays = append(view.Replays, replayOf(one))
	}
	if list.Next != "" {
		view.More = hookPath(e.ID) + "/replays?after=" + url.QueryEscape(list.Next)
	}
	return d.write(w, r, http.StatusOK, page.Replays(d.frame(r, v, "Replays", "/webhooks"), view))
}

func (d replays) stop(w http.ResponseWriter, r *http.Request, v visit) error {
	one, err := d.get(r, v)
	if err != nil {
		return err
	}
	if err := d.g.Replays.Stop(r.Context(), v.caller, one.ID); err != nil {
		return err
	}
	return d.done(w, r, "The replay was stopped. Deliveries that are already queued continue.", replayPath(one))
}
