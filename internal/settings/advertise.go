package settings

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// advertised are the URLs to give to others where none are given: those to listen on. An address of all interfaces
// cannot be dialed by others: localhost takes its place, as in etcd's defaults.
func advertised(listen []string) (out []string) {
	for _, text := range listen {
		u, err := url.Parse(strings.TrimSpace(text))
		if err == nil && anyAddress(u) {
			u.Host = net.JoinHostPort("localhost", u.Port())
			text = u.String()
		}
		out = append(out, text)
	}
	return out
}

// checkAdvertised demands what etcd does: clients of other machines need an address.
func (s *Settings) checkAdvertised() error {
	for _, text := range s.ListenClient {
		if u, err := url.Parse(strings.TrimSpace(text)); err == nil && anyAddress(u) && !s.advertises {
			return fmt.Errorf("--advertise-client-urls is required with --listen-client-urls %s: "+
				"clients cannot dial that address", text)
		}
	}
	return nil
}

// anyAddress reports whether a URL to listen on is of all interfaces.
func anyAddress(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return !isSocket(u) && u.Hostname() == "" || ip != nil && ip.IsUnspecified()
}
