package server

import (
	"crypto/tls"
	"crypto/x509"
	"expvar"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.etcd.io/etcd/pkg/v3/debugutil"
	"go.etcd.io/etcd/pkg/v3/httputil"
)

// anyName in Config.Hosts and Config.Origins stands for all of them.
const anyName = "*"

// allows reports whether a name is in a list, or the list is of all names.
func allows(list []string, name string) bool {
	return len(list) == 0 || slices.Contains(list, anyName) || slices.Contains(list, name)
}

// withAccess checks requests that are not gRPC as etcd does, and says in the answers to which sites' pages browsers may
// give them.
func (s *Server) withAccess(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := currentPath(r.URL.Path); path != r.URL.Path {
			r.URL.Path, r.URL.RawPath = path, ""
		}
		secure := tlsOf(r)
		if host := httputil.GetHostname(r); secure == nil && !allows(s.cfg.Hosts, host) {
			s.logger.Warn("refused an HTTP request for a host that is not in the list", "host", host)
			http.Error(w, fmt.Sprintf(unknownHost, host), http.StatusMisdirectedRequest)
			return
		}
		if secure != nil && s.ignoresName(r, secure) {
			http.Error(w, nameIgnored, http.StatusBadRequest)
			return
		}
		if origin := r.Header.Get("Origin"); allows(s.cfg.Origins, anyName) {
			allowOrigin(w.Header(), anyName)
		} else if origin != "" && allows(s.cfg.Origins, origin) {
			allowOrigin(w.Header(), origin)
		}
		if r.Method == http.MethodOptions {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// currentPath is a path of the gateway as it is named since etcd 3.4.
func currentPath(path string) string {
	if rest, ok := strings.CutPrefix(path, "/v3beta/"); ok {
		return "/v3/" + rest
	}
	return path
}

// Texts of refusals, those of etcd.
const (
	unknownHost = `
etcd received your request, but the Host header was unrecognized.

To fix this, choose one of the following options:
- Enable TLS, then any HTTPS request will be allowed.
- Add the hostname you want to use to the whitelist in settings.
  - e.g. etcd --host-whitelist %q

This requirement has been added to help prevent "DNS Rebinding" attacks (CVE-2018-5702).
`
	nameIgnored = "CommonName of client sending a request against gateway will be ignored and not used as expected"
)

func allowOrigin(h http.Header, origin string) {
	h.Add("Access-Control-Allow-Methods", "POST, GET, OPTIONS, PUT, DELETE")
	h.Add("Access-Control-Allow-Origin", origin)
	h.Add("Access-Control-Allow-Headers", "accept, content-type, authorization")
}

// ignoresName reports whether a JSON call comes with a certificate that names a user, while auth is on: such a call has
// the user of its token alone.
func (s *Server) ignoresName(r *http.Request, state *tls.ConnectionState) bool {
	if !s.cfg.Store.ClientCertAuth || !strings.HasPrefix(r.URL.Path, "/v3/") ||
		s.store.Rights().RequireAuth(withoutUser) == nil {
		return false
	}
	return slices.ContainsFunc(state.VerifiedChains, func(chain []*x509.Certificate) bool {
		return len(chain) > 0 && chain[0].Subject.CommonName != ""
	})
}

// debugRoutes are what developers look at.
func (s *Server) debugRoutes() []route {
	routes := []route{{"GET /debug/vars", s.forUsers(expvar.Handler().ServeHTTP)}}
	if s.cfg.Profiling {
		for path, h := range debugutil.PProfHandlers() {
			routes = append(routes, route{path, s.forUsers(h.ServeHTTP)})
		}
	}
	return routes
}
