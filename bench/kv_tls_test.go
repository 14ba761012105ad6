package bench

import (
	"crypto/tls"
	"testing"
)

// TestSchemesOfEndpoints: an https:// endpoint never gets a request in clear text.
func TestSchemesOfEndpoints(t *testing.T) {
	given := &tls.Config{}
	for _, c := range []struct {
		endpoint string
		given    *tls.Config
		secure   bool
	}{
		{"h:1", nil, false}, {"http://h:1", nil, false}, {"https://h:1", nil, true}, {"h:1", given, true},
		{"https://h:1", given, true},
	} {
		if got := secured(c.endpoint, c.given); (got != nil) != c.secure || c.given != nil && got != given {
			t.Errorf("%s: %v", c.endpoint, got)
		}
	}
}
