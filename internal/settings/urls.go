package settings

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// urlFlag is a flag with URLs, and what they may be.
type urlFlag struct {
	flag    string
	urls    []string
	listen  bool
	tls     TLS
	empty   bool // there may be none
	clients bool // they are of clients: schemes may differ, and there are sockets of Unix
	either  bool // a plain URL is no contradiction to a certificate
	shared  bool // one address may be of TLS and plain
}

func (s *Settings) urlFlags() []urlFlag {
	return []urlFlag{
		{flag: "--listen-client-urls", urls: s.ListenClient, listen: true, tls: s.ClientTLS, clients: true,
			either: hasSecure(s.ListenClient), shared: true},
		{flag: "--listen-client-http-urls", urls: s.ListenHTTP, listen: true, tls: s.ClientTLS, clients: true, empty: true,
			either: true, shared: true},
		{flag: "--advertise-client-urls", urls: s.AdvertiseClient, clients: true, either: true},
		{flag: "--listen-peer-urls", urls: s.ListenPeer, listen: true, tls: s.PeerTLS, either: s.PeerTLSByURL},
		{flag: "--initial-advertise-peer-urls", urls: s.AdvertisePeer, tls: s.PeerTLS, either: s.PeerTLSByURL},
		{flag: "--listen-metrics-urls", urls: s.ListenMetrics, listen: true, tls: s.ClientTLS, clients: true, empty: true,
			either: true},
	}
}

func (s *Settings) checkURLs() error {
	var errs []error
	seen := map[string]string{} // address to the flag that listens there
	for _, f := range s.urlFlags() {
		urls, err := f.parse()
		errs = append(errs, err)
		for _, u := range urls {
			errs = append(errs, f.checkScheme(u))
			if !f.listen {
				continue
			}
			at := address(u)
			if other, taken := seen[at]; taken && (other != f.flag || !f.shared) {
				errs = append(errs, fmt.Errorf("%s: %s is already in %s", f.flag, at, other))
			}
			seen[at] = f.flag
		}
		if len(f.urls) == 0 && !f.empty {
			errs = append(errs, fmt.Errorf("%s is empty", f.flag))
		}
	}
	return errors.Join(errs...)
}

// checkScheme compares a URL with the certificate. Advertised URLs may lead to a proxy that ends TLS.
func (f *urlFlag) checkScheme(u *url.URL) error {
	switch {
	case f.clients && !f.listen:
		return nil
	case isSecure(u) && !f.tls.Enabled():
		return fmt.Errorf("%s: %s needs a certificate and a key", f.flag, u)
	case !isSecure(u) && f.tls.Enabled() && !f.either:
		return fmt.Errorf("%s: %s is plain although a certificate is given: write %ss", f.flag, u, u.Scheme)
	}
	return nil
}

// parse returns the flag's URLs, which have one scheme unless they are of clients.
func (f *urlFlag) parse() ([]*url.URL, error) {
	parse := parseURL
	if !f.clients {
		parse = parsePeerURL
	}
	urls, err := parseURLs(f.flag, f.urls, func(text string) (*url.URL, error) { return parse(text, f.listen) })
	errs := []error{err}
	for _, u := range urls {
		if u.Scheme != urls[0].Scheme && !f.clients {
			errs = append(errs, fmt.Errorf("%s mixes %s and %s", f.flag, urls[0].Scheme, u.Scheme))
			break
		}
	}
	return urls, errors.Join(errs...)
}

// parseURLs parses the URLs of a flag.
func parseURLs(flag string, texts []string, parse func(string) (*url.URL, error)) ([]*url.URL, error) {
	var urls []*url.URL
	var errs []error
	for _, text := range texts {
		u, err := parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %q: %w", flag, text, err))
			continue
		}
		urls = append(urls, u)
	}
	return urls, errors.Join(errs...)
}

// parseURL accepts scheme, host and port alone, or a file with unix and unixs. An address to listen on must be an IP
// address or localhost, as in etcd.
func parseURL(text string, listen bool) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || !slices.Contains([]string{"http", "https", "unix", "unixs"}, u.Scheme):
		return nil, errors.New("must begin with http:// or https://, or for clients with unix:// or unixs://")
	case isSocket(u) && address(u) == "":
		return nil, errors.New("must name a file after ://")
	case isSocket(u):
		return u, nil
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil || port == "" {
		return nil, errors.New("must name a host and a port")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 1<<16-1 {
		return nil, fmt.Errorf("port %q does not exist", port)
	}
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil {
		return nil, errors.New("must hold nothing after the port")
	}
	if listen && host != "" && host != "localhost" && net.ParseIP(host) == nil {
		return nil, fmt.Errorf("to listen, give an IP address or localhost, not the name %q", host)
	}
	u.Path = ""
	return u, nil
}

// parsePeerURL accepts what parseURL does, except sockets of Unix.
func parsePeerURL(text string, listen bool) (*url.URL, error) {
	u, err := parseURL(text, listen)
	if err == nil && isSocket(u) {
		return nil, errors.New("members connect to each other over TCP, sockets of Unix are for clients alone")
	}
	return u, err
}

// parseJoinURL accepts the URL of a member to join, of its peers or its clients.
func parseJoinURL(text string) (*url.URL, error) { return parseURL(text, false) }

// isSocket reports whether a URL is of a socket of Unix.
func isSocket(u *url.URL) bool { return u.Scheme == "unix" || u.Scheme == "unixs" }

// isSecure reports whether a URL is of TLS.
func isSecure(u *url.URL) bool { return u.Scheme == "https" || u.Scheme == "unixs" }

func hasSecure(urls []string) bool {
	return slices.ContainsFunc(Addresses(urls), func(a Address) bool { return a.TLS })
}

// address is host:port or the name of a socket's file.
func address(u *url.URL) string {
	if isSocket(u) {
		return u.Host + u.Path
	}
	return u.Host
}

// Address is one to listen on for clients. Both TLS and Plain: URLs of both schemes name it, and the first bytes of a
// connection tell which it is.
type Address struct {
	Network, Addr string // as net.Listen takes them
	TLS, Plain    bool
}

// Addresses returns those of URLs that were validated, each once.
func Addresses(urls []string) []Address {
	var out []Address
	for _, text := range urls {
		u, err := parseURL(text, false)
		if err != nil {
			continue
		}
		a := Address{Network: "tcp", Addr: address(u)}
		if isSocket(u) {
			a.Network = "unix"
		}
		i := slices.IndexFunc(out, func(o Address) bool { return o.Network == a.Network && o.Addr == a.Addr })
		if i < 0 {
			i = len(out)
			out = append(out, a)
		}
		out[i].TLS, out[i].Plain = out[i].TLS || isSecure(u), out[i].Plain || !isSecure(u)
	}
	return out
}

// Hosts returns the host:port of URLs that were validated. Of a socket of Unix the host is the name that clients verify
// in its certificate: its file's.
func Hosts(urls []string) []string {
	var out []string
	for _, a := range Addresses(urls) {
		host := a.Addr
		if base := path.Base(host); a.Network == "unix" {
			name, _, _ := strings.Cut(base, ":")
			host = net.JoinHostPort(name, "0")
		}
		out = append(out, host)
	}
	return out
}

// plainListeners returns a line for every URL to listen on for clients for which the certificate has no effect.
func (s *Settings) plainListeners() (out []string) {
	for _, f := range s.urlFlags() {
		if !f.shared || !f.tls.Enabled() {
			continue
		}
		for _, text := range f.urls {
			if u, err := parseURL(text, true); err == nil && !isSecure(u) {
				out = append(out, fmt.Sprintf("the certificate does nothing for %s in %s: connections are plain, and no "+
					"certificate is required of clients", u, f.flag))
			}
		}
	}
	return out
}
