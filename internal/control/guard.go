package control

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// controlHeader must be in requests that change something below /up. A page of another site cannot set it.
const controlHeader = "Braid-Control"

// guard refuses requests that a page of another site may have caused: those to a name that is not this machine's (a
// name of another site may be resolved to this machine), those from another origin, and changes without the header.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !isLoopback(r.Host):
			answerError(w, refuse(http.StatusForbidden, "%q is not a name of this machine: use 127.0.0.1 or localhost",
				r.Host))
		case !sameOrigin(r):
			answerError(w,
				refuse(http.StatusForbidden, "requests from pages of %s are refused", r.Header.Get("Origin")))
		case changes(r) && r.Header.Get(controlHeader) != "1":
			answerError(w, refuse(http.StatusForbidden, "the header %s: 1 is missing", controlHeader))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isLoopback reports whether a host, with or without a port, is this machine by itself.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// sameOrigin reports whether a request comes from a page of this server, or from a program that is no browser.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	from, err := url.Parse(origin)
	return err == nil && from.Scheme == "http" && from.Host == r.Host
}

// changes reports whether a request below /up may change something.
func changes(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/up/") && r.Method != http.MethodGet && r.Method != http.MethodHead
}

// tokenOf is the user's token in a request; "": none.
func tokenOf(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}
