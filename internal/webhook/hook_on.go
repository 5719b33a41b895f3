//go:build failpoints

package webhook

import (
	"context"
	"net/http"
	"slices"

	"postern/internal/egress"
	"postern/internal/failpoint"
)

// hooked adds a fail point and saboteurs before each POST.
func hooked(p poster) poster {
	return func(ctx context.Context, tenant, url string, header http.Header, body []byte) (egress.Answer, error) {
		if err := failpoint.At(failpoint.HookBeforePost); err != nil {
			return egress.Answer{}, &egress.Error{Reason: egress.Connect, Err: err}
		}
		if failpoint.Slips(failpoint.SignWrong) {
			header.Set("webhook-signature", "v1,"+"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
		}
		if failpoint.Slips(failpoint.PostOtherBytes) {
			body = append(slices.Clip(body), ' ')
		}
		return p(ctx, tenant, url, header, body)
	}
}
