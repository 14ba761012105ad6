package status

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
)

// Endpoints may be sockets of Unix, as unix:///FILE, or unixs:///FILE with TLS: of this machine, so one that only
// another member names is not asked.

// isSocket reports whether an endpoint is a socket.
func isSocket(endpoint string) bool {
	scheme, _, found := strings.Cut(endpoint, "://")
	return found && (scheme == "unix" || scheme == "unixs")
}

// socketURL is the URL of a path of a socket. Its host is the name that a certificate of the socket has, as for clients
// of etcd: that of the file, without a port.
func socketURL(endpoint, at string) string {
	scheme, file, _ := strings.Cut(endpoint, "://")
	host, _, _ := strings.Cut(path.Base(file), ":")
	return map[string]string{"unix": "http", "unixs": "https"}[scheme] + "://" + host + at
}

// newHTTP makes a client for an endpoint.
func newHTTP(config *tls.Config, endpoint string) *http.Client {
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	if isSocket(endpoint) {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", address(endpoint))
		}
	}
	return &http.Client{Transport: transport, CheckRedirect: refuseRedirect}
}

// reachable is the first of a member's client URLs that is no socket, if there is one.
func reachable(urls []string) string {
	return urls[max(0, slices.IndexFunc(urls, func(u string) bool { return !isSocket(u) }))]
}
