package listen

import (
	"strings"
	"testing"

	"postern/internal/seal"
)

func TestInvalidOptionsAreNamedButNotRepeated(t *testing.T) {
	t.Parallel()
	good := Options{
		URL: "https://postern.test/gateway/", Key: testKey + "\n", After: "evt_1",
		ForwardTo: "http://localhost:3000/hook?a=b", Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
	}
	if err := good.Validate(); err != nil {
		t.Errorf("%+v: %v", good, err)
	}
	good.After = Start
	if err := good.Validate(); err != nil {
		t.Errorf("%+v: %v", good, err)
	}
	for name, tt := range map[string]struct {
		change func(o *Options, canary string)
		want   string
	}{
		"no key":           {func(o *Options, _ string) { o.Key = "" }, "POSTERN_KEY"},
		"blank key":        {func(o *Options, _ string) { o.Key = " \n" }, "--key"},
		"two keys":         {func(o *Options, c string) { o.Key = seal.Secret(c + " " + c) }, "--key"},
		"key with a line":  {func(o *Options, c string) { o.Key = seal.Secret(c + "\r\nX: y") }, "--key"},
		"no server":        {func(o *Options, _ string) { o.URL = "" }, "--url"},
		"server of no web": {func(o *Options, c string) { o.URL = "ftp://" + c }, "--url"},
		"server and user":  {func(o *Options, c string) { o.URL = "http://" + c + ":" + c + "@postern.test" }, "--url"},
		"server and query": {func(o *Options, c string) { o.URL = "http://postern.test?" + c }, "--url"},
		"no scheme":        {func(o *Options, _ string) { o.ForwardTo = "localhost:3000/hook" }, "--forward-to"},
		"receiver of mail": {func(o *Options, c string) { o.ForwardTo = "mailto:" + c }, "--forward-to"},
		"receiver, user":   {func(o *Options, c string) { o.ForwardTo = "http://" + c + "@localhost" }, "--forward-to"},
		"no event":         {func(o *Options, c string) { o.After = c }, "--after"},
		"event and line":   {func(o *Options, c string) { o.After = "evt_\n" + c }, "--after"},
		"secret's prefix":  {func(o *Options, _ string) { o.Secret = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=" }, "--secret"},
		"secret's base64":  {func(o *Options, c string) { o.Secret = seal.Secret("whsec_!" + c) }, "--secret"},
		"short secret":     {func(o *Options, _ string) { o.Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaQ=" }, "--secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := good
			tt.change(&o, "canary")
			err := o.Validate()
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%v, want %s and none of the given values", err, tt.want)
			}
		})
	}
}
