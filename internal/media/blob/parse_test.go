package blob_test

import (
	"strings"
	"testing"

	"postern/internal/media/blob"
	"postern/internal/seal"
)

func TestAddressesOfStorages(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"file://" + t.TempDir():                                  true,
		"s3://key:sesame@host/bucket":                            true,
		"s3://key:sesame@host:9000/bucket/a/b?region=eu&tls=off": true,
		"s3://key:ses%2Fame%2B@host/bucket/?tls=on":              true,
		"":                                             false,
		"/srv/media":                                   false,
		"file://relative/sesame":                       false,
		"file:sesame":                                  false,
		"file:///srv/sesame?tls=off":                   false,
		"http://key:sesame@host/bucket":                false,
		"s3://host/bucket/sesame":                      false,
		"s3://key@host/bucket/sesame":                  false,
		"s3://key:@host/bucket/sesame":                 false,
		"s3://:sesame@host/bucket":                     false,
		"s3://key:sesame@/bucket":                      false,
		"s3://key:sesame@host":                         false,
		"s3://key:sesame@host/":                        false,
		"s3://key:ses/ame/sesame@host/bucket":          false,
		"s3://key:sesame@host/bucket#fragment":         false,
		"s3://key:sesame@host/bucket?tls=maybe":        false,
		"s3://key:sesame@host/bucket?tls=on&tls=off":   false,
		"s3://key:sesame@host/bucket?secret=sesame":    false,
		"s3://key:sesame@host/bucket?region=%zzsesame": false,
		"s3://key:sesame%zz@host/bucket":               false,
		"s3://key:sesame@ho st/bucket":                 false,
		"s3://key:sesame@host:9000:sesame/bucket":      false,
		"s3://key:sesame@host_with_sesame?/bucket":     false,
	} {
		_, err := blob.Parse(seal.Secret(address), "")
		if (err == nil) != ok {
			t.Errorf("Parse(%q) = %v, want accepted: %v", address, err, ok)
		}
		if err != nil && strings.Contains(err.Error(), "sesame") {
			t.Errorf("Parse(%q) repeats a secret: %v", address, err)
		}
	}
}
