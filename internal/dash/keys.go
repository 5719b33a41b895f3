package dash

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

func (d keys) list(w http.ResponseWriter, r *http.Request, v visit) error {
	list, err := d.g.Keys.List(r.Context(), v.actor, v.workspace(), paging.Page{Cursor: r.FormValue("after")})
	if err != nil {
		return err
	}
	names, err := d.deviceNames(r.Context(), v)
	if err != nil {
		return err
	}
	view := page.KeysView{Change: true} // members who may see keys may change them
	now := postern.TimeOf(time.Now())
	for _, k := range list.Data {
		d.addNames(r.Context(), v, names, k.Devices)
		view.Keys = append(view.Keys, keyOf(k, names, now))
	}
	if list.Next != "" {
		view.More = "/keys?after=" + url.QueryEscape(list.Next)
	}
	return d.write(w, r, http.StatusOK, page.Keys(d.frame(r, v, "API keys", "/keys"), view))
}

func keyOf(k postern.Key, names map[postern.DeviceID]string, now postern.Time) page.Key {
	p := page.Key{
		ID: string(k.ID), Name: k.Name, Shown: "pst_…" + k.LastFour, Environment: k.Environment,
		Scopes:  texts(k.Scopes),
		Created: k.CreatedAt.Std(), Status: statusOf(k, now),
	}
	for _, id := range k.Devices {
		p.Devices = append(p.Devices, page.Choice{Value: string(id), Label: cmp.Or(names[id], string(id))})
	}
	if k.LastUsedAt != 0 {
		p.LastUsed = k.LastUsedAt.Std()
	}
	if k.ExpiresAt != 0 {
		p.Expires = k.ExpiresAt.Std()
	}
	return p
}

func texts(scopes []postern.Scope) []string {
	list := make([]string, len(scopes))
	for i, s := range scopes {
		list[i] = string(s)
	}
	return list
}

func statusOf(k postern.Key, now postern.Time) string {
	switch {
	case k.RevokedAt != 0:
		return "revoked"
	case k.ExpiresAt == 0:
		return "active"
	case k.ExpiresAt <= now:
		return "expired"
	}
	return "expiring"
}

func (d keys) form(w http.ResponseWriter, r *http.Request, v visit) error {
	if _, err := d.g.Keys.Any(r.Context(), v.actor, v.workspace()); err != nil {
		return err
	}
	return d.showForm(w, r, v, http.StatusOK, page.KeyFormView{
		Scopes: scopeChoices([]postern.Scope{postern.DevicesRead, postern.MessagesRead, postern.MessagesWrite}),
	}, nil)
}

// showForm shows the form with the chosen devices. It asks for the password as well if it was entered too long ago.
func (d keys) showForm(
	w http.ResponseWriter, r *http.Request, v visit, status int, view page.KeyFormView, chosen []postern.DeviceID,
) (err error) {
	if view.Devices, err = d.deviceChoices(r, v, chosen); err != nil {
		return err
	}
	if view.Ask = !v.actor.Recent; view.Ask {
		if view.Again, err = d.again(r, v, "/keys/new"); err != nil {
			return err
		}
	}
	return d.write(w, r, status, page.KeyForm(d.frame(r, v, "New API key", "/keys"), view))
}

// scopeChoices lists all scopes and marks the chosen ones.
func scopeChoices(chosen []postern.Scope) (list []page.ScopeChoice) {
	about := map[postern.Scope]string{
		postern.DevicesRead:  "See devices and their state.",
		postern.DevicesWrite: "Add, link, pause, and delete devices.",
		postern.MessagesRead: "Read messages and their status.", postern.MessagesWrite: "Send messages.",
		postern.ContactsRead: "See contacts.", postern.ContactsWrite: "Change groups, block people, and erase people for good.",
		postern.WebhooksRead:  "See webhooks and their deliveries.",
		postern.WebhooksWrite: "Create and change webhooks.",
		postern.EventsRead:    "Read the event log.", postern.UsageRead: "See plan usage and limits.",
		postern.SandboxWrite: "Control simulated phones in the sandbox.",
	}
	for _, s := range postern.Scopes() {
		list = append(list, page.ScopeChoice{Name: string(s), Text: about[s], Chosen: slices.Contains(chosen, s)})
	}
	return list
}

func (d keys) create(w http.ResponseWriter, r *http.Request, v visit) error {
	in, err := keyForm(r)
	if err != nil {
		return err
	}
	secret := ""
	if err = d.confirm(r, &v); err == nil {
		_, secret, err = d.g.Keys.Create(r.Context(), v.actor, v.workspace(), in)
	}
	if wrong, ok := faults(err); ok {
		return d.showForm(w, r, v, http.StatusUnprocessableEntity, page.KeyFormView{
			Name:        page.Field{Value: in.Name, Error: wrong["name"]},
			Environment: page.Field{Value: in.Environment, Error: wrong["environment"]},
			Scopes:      scopeChoices(in.Scopes), ScopesError: wrong["scopes"], DevicesError: wrong["devices"],
			Expiry: r.PostFormValue("expiry"), Password: page.Field{Error: wrong["password"]},
			Problem: "The key was not created.",
		}, in.Devices)
	}
	if err != nil {
		return err
	}
	d.tell(r, v.user(), newKey(in.Name, v.caller.Member.Workspace))
	return d.write(
		w, r, http.StatusCreated,
		page.KeyShown(d.frame(r, v, "Your new API key", "/keys"), page.KeyShownView{
			Name: in.Name, Secret: secret, BaseURL: d.base,
		}),
	)
}

// confirm checks the password of a form that asks for it.
func (d keys) confirm(r *http.Request, v *visit) error {
	if v.actor.Recent {
		return nil
	}
	if err := d.p.SecondFactors.Reenter(r.Context(), v.self, r.PostFormValue("password")); err != nil {
		return err
	}
	d.sessions.Put(r.Context(), keySure, now())
	v.actor.Recent = true
	return nil
}

// keyForm reads the form of a new key. A form without scopes means no scopes, not all of them.
func keyForm(r *http.Request) (in gateway.NewKey, err error) {
	in = gateway.NewKey{
		Name: r.PostFormValue("name"), Environment: r.PostFormValue("environment"), Scopes: []postern.Scope{},
		Devices: devicesIn(r),
	}
	for _, s := range r.PostForm["scope"] {
		in.Scopes = append(in.Scopes, postern.Scope(s))
	}
	life, err := duration("/expiry", r.PostFormValue("expiry"))
	if life > 0 {
		in.ExpiresAt = postern.TimeOf(time.Now().Add(life))
	}
	return in, err
}

func duration(pointer, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	t, err := time.ParseDuration(text)
	if err != nil || t < 0 || t > maxLife {
		return 0, postern.Invalid(pointer, "choose one of the listed times")
	}
	return t, nil
}

const maxLife = 10 * 366 * 24 * time.Hour

func (d keys) rotate(w http.ResponseWriter, r *http.Request, v visit) error {
	if !v.actor.Recent {
		return d.askAgain(w, r, v, http.StatusForbidden, page.SureView{Next: "/keys"})
	}
	overlap, err := duration("/overlap", r.PostFormValue("overlap"))
	if err != nil {
		return err
	}
	id := postern.KeyID(r.PathValue("id"))
	key, secret, err := d.g.Keys.Rotate(r.Context(), v.actor, v.workspace(), id, gateway.Rotation{Overlap: overlap})
	if err != nil {
		return err
	}
	old, err := d.g.Keys.Get(r.Context(), v.actor, v.workspace(), id)
	if err != nil { // the secret is shown all the same
		old.ExpiresAt = key.CreatedAt.Add(overlap)
	}
	d.tell(r, v.user(), newKey(key.Name, v.caller.Member.Workspace))
	return d.write(w, r, http.StatusCreated,
		page.KeyShown(d.frame(r, v, "Your new API key", "/keys"),
			page.KeyShownView{
				Name: key.Name, Secret: secret, BaseURL: d.base,
				Old: timeOf(old.ExpiresAt), Ends: timeOf(key.ExpiresAt),
			}))
}

func (d keys) revoke(w http.ResponseWriter, r *http.Request, v visit) error {
	if err := d.g.Keys.Revoke(r.Context(), v.actor, v.workspace(), postern.KeyID(r.PathValue("id"))); err != nil {
		return err
	}
	return d.done(w, r, "The key was revoked. Requests with it are now refused.", "/keys")
}

// requestsShown is how many API requests a page shows.
const requestsShown = 50

// requests lists the API requests of the last day.
func (d keys) requests(w http.ResponseWriter, r *http.Request, v visit) error {
	f := gateway.RequestFilter{Text: strings.TrimSpace(r.FormValue("q"))}
	view := page.RequestsView{Text: f.Text, Outcome: r.FormValue("outcome")}
	switch view.Outcome {
	case "accepted":
		f.Below = 400
	case "refused":
		f.From, f.Below = 400, 500
	case "failed":
		f.From = 500
	default:
		view.Outcome = ""
	}
	from := placeIn(r.FormValue("before"))
	p, err := d.g.Statistics.Requests(r.Context(), v.actor, v.workspace(), f, from, requestsShown)
	if err != nil {
		return err
	}
	names := d.names(r.Context(), v, p)
	for _, one := range p.List {
		view.Requests = append(view.Requests, page.APIRequest{
			ID: one.ID, Method: one.Method, Path: one.Path, Status: one.Status, Reason: one.Reason, Millis: one.Millis,
			Key: cmp.Or(names[one.Key], string(one.Key)), Client: one.Client, At: one.At.Std(),
		})
	}
	if p.More {
		q := url.Values{"q": {f.Text}, "outcome": {view.Outcome}, "before": {fmt.Sprint(p.Next.Block, "-", p.Next.Index)}}
		view.More = "/keys/requests?" + q.Encode()
	}
	return d.write(w, r, http.StatusOK, page.Requests(d.frame(r, v, "API requests", "/keys"), view))
}

// placeIn reads a place in the log of requests; its end if the text names none.
func placeIn(text string) gateway.RequestPlace {
	block, index, _ := strings.Cut(text, "-")
	n, err := strconv.ParseInt(block, 10, 64)
	i, also := strconv.Atoi(index)
	if err != nil || also != nil || n < 0 || i < 0 {
		return gateway.RequestPlace{}
	}
	return gateway.RequestPlace{Block: n, Index: i}
}

// names returns the names of the keys of requests; none to those who may not see keys.
func (d keys) names(ctx context.Context, v visit, of gateway.RequestPage) map[postern.KeyID]string {
	names := map[postern.KeyID]string{}
	for _, one := range of.List {
		if _, known := names[one.Key]; known || one.Key == "" {
			continue
		}
		k, err := d.g.Keys.Get(ctx, v.actor, v.workspace(), one.Key)
		if err != nil {
			k.Name = ""
		}
		names[one.Key] = k.Name
	}
	return names
}
