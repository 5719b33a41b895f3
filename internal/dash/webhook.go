package dash

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"postern/internal/access"
	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/postern"
)

// handshakeTries are made of a handshake: at 0 s, 10 s, 1 min and 10 min.
const handshakeTries = 4

func hookID(r *http.Request) postern.EndpointID { return postern.EndpointID(r.PathValue("id")) }

func hookPath(id postern.EndpointID) string { return "/webhooks/" + string(id) }

func (d *dash) webhook(w http.ResponseWriter, r *http.Request, v visit) error {
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	now := time.Now()
	hours, err := d.g.Webhooks.Hours(r.Context(), v.caller, e.ID, postern.TimeOf(now.Add(-healthTime)), 0)
	if err != nil {
		return err
	}
	view := page.WebhookView{
		Webhook: page.Webhook{ID: string(e.ID), URL: e.URL, Description: e.Description, Status: string(e.Status), Events: e.Events},
		Pending: string(e.PendingURL), Why: whyEndpoint(e), Tries: e.Attempts, TriesOf: handshakeTries, Ordered: e.Ordered, Headers: slices.Sorted(maps.Keys(e.Headers)),
		LastFour: e.SecretLastFour, Created: e.CreatedAt.Std(), Verified: e.VerifiedAt.Std(), Chart: attemptsChart(lastDay(hours.Data, now), lastHours()),
		Change: v.may(postern.WebhooksWrite), InFlight: e.MaxInFlight, Key: string(e.PublicKey),
	}
	// DueAt is zero when no try comes any more.
	view.Asked = e.DueAt != 0 && (e.Status == postern.EndpointPending || e.PendingURL != "")
	if view.Asked && e.Attempts > 0 {
		view.NextTry = e.DueAt.Std()
	}
	for _, id := range e.DeviceIDs {
		view.Devices = append(view.Devices, string(id))
	}
	return d.show(w, r, http.StatusOK, page.WebhookPage(d.frame(r, v, "Webhook", "/webhooks"), view))
}

// lastDay are the hours of a day, also those in which nothing was sent.
func lastDay(hours []postern.EndpointHour, now time.Time) (list []postern.EndpointHour) {
	for at := now.UTC().Truncate(time.Hour).Add(-23 * time.Hour); !at.After(now); at = at.Add(time.Hour) {
		h := postern.EndpointHour{Hour: postern.TimeOf(at)}
		for _, one := range hours {
			if one.Hour == h.Hour {
				h = one
			}
		}
		list = append(list, h)
	}
	return list
}

func (d *dash) editWebhook(w http.ResponseWriter, r *http.Request, v visit) error {
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	return d.showWebhookForm(w, r, v, http.StatusOK, page.WebhookFormView{
		ID: string(e.ID), URL: page.Field{Value: wantedURL(e)}, Description: page.Field{Value: e.Description}, Events: eventChoices(e.Events), Ordered: e.Ordered,
		Headers: page.Field{Value: headerLines(e.Headers)}, InFlight: page.Field{Value: strconv.Itoa(e.MaxInFlight)}, V1a: slices.Contains(e.Signatures, postern.SignatureEd25519),
	}, e.DeviceIDs)
}

// wantedURL is where the endpoint is, or moves to.
func wantedURL(e postern.Endpoint) string { return cmp.Or(string(e.PendingURL), e.URL) }

func (d *dash) changeWebhook(w http.ResponseWriter, r *http.Request, v visit) error {
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	form, err := hookForm(r)
	in := changeTo(form, e)
	if err == nil && form.URL == "" {
		err = postern.Invalid("/url", "write the address")
	}
	if err == nil {
		_, err = d.g.Webhooks.Change(r.Context(), v.caller, e.ID, in)
	}
	if status, view, ok := refusedWebhook(r, err); ok {
		view.ID, view.Problem = string(e.ID), cmp.Or(view.Problem, "Nothing was changed.")
		return d.showWebhookForm(w, r, v, status, view, devicesIn(r))
	}
	if err != nil {
		return err
	}
	return d.done(w, r, "The webhook is changed.", hookPath(e.ID))
}

// command does one thing to an endpoint, and shows it.
func (d *dash) command(w http.ResponseWriter, r *http.Request, v visit, do func(context.Context, access.Caller, postern.EndpointID) (postern.Endpoint, error), said string) error {
	e, err := do(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	return d.done(w, r, said, hookPath(e.ID))
}

func (d *dash) verifyWebhook(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.command(w, r, v, d.g.Webhooks.Verify, "The challenge is sent again.")
}

func (d *dash) pauseWebhook(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.command(w, r, v, d.g.Webhooks.Pause, "The webhook is paused. What is recorded meanwhile it gets when it is resumed, up to 72 hours back.")
}

func (d *dash) resumeWebhook(w http.ResponseWriter, r *http.Request, v visit) error {
	return d.command(w, r, v, d.g.Webhooks.Resume, "The webhook is sent a challenge, and then what it has missed.")
}

func (d *dash) testWebhook(w http.ResponseWriter, r *http.Request, v visit) error {
	made, err := d.g.Webhooks.Test(r.Context(), v.caller, hookID(r), nil)
	if err != nil {
		return err
	}
	return d.done(w, r, "A test event is on its way.", deliveryPath(made.Value))
}

func (d *dash) rotateSecret(w http.ResponseWriter, r *http.Request, v visit) error {
	overlap, err := duration("/overlap", r.PostFormValue("overlap"))
	if err != nil {
		return err
	}
	made, err := d.g.Webhooks.RotateSecret(r.Context(), v.caller, hookID(r), gateway.NewSecret{Overlap: &overlap}, nil)
	if err != nil {
		return err
	}
	view := page.WebhookSecretView{ID: string(made.Value.ID), URL: made.Value.URL, Secret: made.Value.Secret}
	if overlap > 0 {
		view.Old = time.Now().Add(overlap)
	}
	return d.showSecret(w, r, v, http.StatusCreated, view)
}

func (d *dash) askSecret(w http.ResponseWriter, r *http.Request, v visit) error {
	e, err := d.g.Webhooks.Get(r.Context(), v.caller, hookID(r))
	if err != nil {
		return err
	}
	return d.askSecretAs(w, r, v, http.StatusOK, page.WebhookRevealView{ID: string(e.ID)})
}

func (d *dash) askSecretAs(w http.ResponseWriter, r *http.Request, v visit, status int, view page.WebhookRevealView) (err error) {
	if view.Again, err = d.again(r, v, r.URL.Path); err != nil {
		return err
	}
	return d.show(w, r, status, page.WebhookReveal(d.frame(r, v, "Signing secret", "/webhooks"), view))
}

func (d *dash) revealSecret(w http.ResponseWriter, r *http.Request, v visit) error {
	e, err := d.g.Webhooks.RevealSecret(r.Context(), v.caller, hookID(r), r.PostFormValue("password"))
	if wrong, ok := faults(err); ok {
		return d.askSecretAs(w, r, v, http.StatusUnprocessableEntity, page.WebhookRevealView{ID: r.PathValue("id"), Password: page.Field{Error: wrong["password"]}})
	}
	if err != nil {
		return err
	}
	return d.showSecret(w, r, v, http.StatusOK, page.WebhookSecretView{ID: string(e.ID), URL: e.URL, Secret: e.Secret})
}

func (d *dash) deleteWebhook(w http.ResponseWriter, r *http.Request, v visit) error {
	if err := d.g.Webhooks.Delete(r.Context(), v.caller, hookID(r)); err != nil {
		return err
	}
	return d.done(w, r, "The webhook is deleted.", "/webhooks")
}
