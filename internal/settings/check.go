package settings

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Peer is a member of the initial cluster.
type Peer struct {
	Name string
	URLs []string
	Zone string // "": not known
}

// complete sets values that depend on other settings.
func (s *Settings) complete() {
	if s.DataDir == "" {
		s.DataDir = s.Name + ".braid"
	}
	s.completeAuto()
	if s.advertises = len(s.AdvertiseClient) > 0; !s.advertises {
		s.AdvertiseClient = advertised(s.ListenClient)
	}
	if len(s.AdvertisePeer) == 0 {
		s.AdvertisePeer = advertised(s.ListenPeer)
	}
	if s.InitialCluster == "" {
		var own []string
		for _, u := range s.AdvertisePeer {
			own = append(own, s.Name+"="+u)
		}
		s.InitialCluster = strings.Join(own, ",")
	}
}

// check returns all errors in the settings, or nil.
func (s *Settings) check() error {
	return errors.Join(s.checkNames(), s.checkZone(), s.checkURLs(), s.checkAdvertised(), s.checkCluster(),
		s.checkTLS(), s.checkLimits(), s.Access.check(), s.Monitor.check(), s.Database.check(), s.Output.check(),
		s.checkForeign(), s.checkGates(), s.Log.Complete())
}

func (s *Settings) checkNames() error {
	if s.Name == "" || strings.ContainsAny(s.Name, ",= \t\n") {
		return fmt.Errorf("--name %q: a name is not empty and holds no space, comma or =", s.Name)
	}
	if s.InitialState != StateNew && s.InitialState != StateExisting {
		return fmt.Errorf("--initial-cluster-state %q: it is new or existing", s.InitialState)
	}
	if _, err := parseURLs("--join", s.Join, false); err != nil {
		return err
	}
	return nil
}

func (s *Settings) checkURLs() error {
	var errs []error
	seen := map[string]string{} // host:port to the flag that listens there
	for _, l := range []struct {
		flag   string
		urls   []string
		listen bool
		tls    TLS
		either bool // may be plain although there is a certificate, and may be empty
	}{
		{"--listen-client-urls", s.ListenClient, true, s.ClientTLS, false},
		{"--listen-client-http-urls", s.ListenHTTP, true, s.ClientTLS, true},
		{"--advertise-client-urls", s.AdvertiseClient, false, s.ClientTLS, false},
		{"--listen-peer-urls", s.ListenPeer, true, s.PeerTLS, false},
		{"--initial-advertise-peer-urls", s.AdvertisePeer, false, s.PeerTLS, false},
		{"--listen-metrics-urls", s.ListenMetrics, true, s.ClientTLS, true},
	} {
		urls, err := parseURLs(l.flag, l.urls, l.listen)
		errs = append(errs, err)
		for _, u := range urls {
			peer := strings.Contains(l.flag, "peer")
			if u.Scheme != "http" || !l.either && (!peer || !s.PeerTLSByURL) {
				errs = append(errs, checkScheme(l.flag, u, l.tls))
			}
			if !l.listen {
				continue
			}
			if other, taken := seen[u.Host]; taken {
				errs = append(errs, fmt.Errorf("%s: %s is already in %s", l.flag, u.Host, other))
			}
			seen[u.Host] = l.flag
		}
		if len(l.urls) == 0 && !l.either {
			errs = append(errs, fmt.Errorf("%s is empty", l.flag))
		}
	}
	return errors.Join(errs...)
}

func checkScheme(flag string, u *url.URL, tls TLS) error {
	switch {
	case u.Scheme == "https" && !tls.Enabled():
		return fmt.Errorf("%s: %s needs a certificate and a key", flag, u)
	case u.Scheme == "http" && tls.Enabled():
		return fmt.Errorf("%s: %s is plain although a certificate is given: write https", flag, u)
	}
	return nil
}

// parseURLs accepts URLs to listen on or to dial: scheme, host and port alone. An address to listen on must be an IP
// address or localhost, as in etcd.
func parseURLs(flag string, texts []string, listen bool) ([]*url.URL, error) {
	var urls []*url.URL
	var errs []error
	for _, text := range texts {
		u, err := parseURL(strings.TrimSpace(text), listen)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %q: %w", flag, text, err))
			continue
		}
		urls = append(urls, u)
	}
	for _, u := range urls {
		if u.Scheme != urls[0].Scheme {
			errs = append(errs, fmt.Errorf("%s mixes %s and %s", flag, urls[0].Scheme, u.Scheme))
			break
		}
	}
	return urls, errors.Join(errs...)
}

func parseURL(text string, listen bool) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("must begin with http:// or https://")
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

// Peers returns the initial cluster, sorted by name.
func (s *Settings) Peers() ([]Peer, error) {
	var peers []Peer
	for part := range strings.SplitSeq(s.InitialCluster, ",") {
		name, address, ok := strings.Cut(strings.TrimSpace(part), "=")
		// Member add prints members that have not started yet without a name.
		unnamed := name == "" && s.InitialState != StateExisting
		if !ok || unnamed {
			return nil, fmt.Errorf("--initial-cluster: %q is not NAME=URL", part)
		}
		u, err := parseURL(address, false)
		if err != nil {
			return nil, fmt.Errorf("--initial-cluster: %s: %q: %w", name, address, err)
		}
		i := slices.IndexFunc(peers, func(p Peer) bool { return p.Name == name })
		if i < 0 {
			i = len(peers)
			peers = append(peers, Peer{Name: name})
		}
		peers[i].URLs = append(peers[i].URLs, u.String())
	}
	slices.SortFunc(peers, func(a, b Peer) int { return strings.Compare(a.Name, b.Name) })
	return peers, s.placePeers(peers)
}

func (s *Settings) checkCluster() error {
	peers, err := s.Peers()
	if err != nil {
		return err
	}
	var errs []error
	owner := map[string]string{}
	var own *Peer
	for i, p := range peers {
		if p.Name == s.Name {
			own = &peers[i]
		}
		for _, u := range p.URLs {
			if other, taken := owner[u]; taken {
				errs = append(errs, fmt.Errorf("--initial-cluster: %s belongs to %s and to %s", u, other, p.Name))
			}
			owner[u] = p.Name
			if !s.PeerTLSByURL && strings.HasPrefix(u, "https:") != strings.HasPrefix(peers[0].URLs[0], "https:") {
				errs = append(errs, errors.New("--initial-cluster mixes http and https"))
			}
		}
	}
	if own == nil {
		errs = append(errs, fmt.Errorf("--initial-cluster does not include this member, %q: its members are %s",
			s.Name, names(peers)))
	} else if !SameURLs(own.URLs, s.AdvertisePeer) {
		errs = append(errs, fmt.Errorf("--initial-cluster says that %s is at %s, --initial-advertise-peer-urls says %s",
			s.Name, strings.Join(own.URLs, ","), strings.Join(s.AdvertisePeer, ",")))
	}
	return errors.Join(errs...)
}

func names(peers []Peer) string {
	var out []string
	for _, p := range peers {
		out = append(out, p.Name)
	}
	return strings.Join(out, ", ")
}

// SameURLs compares lists of URLs without regard to their order.
func SameURLs(a, b []string) bool {
	normal := func(urls []string) []string {
		var out []string
		for _, u := range urls {
			out = append(out, strings.TrimSuffix(strings.TrimSpace(u), "/"))
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(normal(a), normal(b))
}

func (s *Settings) checkLimits() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(s.KeepLogBytes < 0, "--keep-log-bytes is negative")
	bad(s.SnapshotBytes <= 0, "--snapshot-bytes must be positive")
	bad(s.MaxTxnOps == 0, "--max-txn-ops is 0")
	bad(s.MaxLearners < 1, "--max-learners must be positive")
	bad(s.BcryptCost < 4 || s.BcryptCost > 31, "--bcrypt-cost must be 4 to 31")
	bad(s.GCPercent < 10, "--gc-percent must be at least 10")
	bad(s.MemoryLimit < 0, "--memory-limit-bytes is negative")
	_, _, err := s.Retention()
	return errors.Join(append(errs, err)...)
}

// Retention is what automatic compaction keeps: a period or a number of revisions, by the mode; both 0: all
// revisions.
func (s *Settings) Retention() (period time.Duration, revisions int64, err error) {
	n, numberErr := strconv.ParseInt(s.AutoCompactionRetention, 10, 64)
	isNumber := numberErr == nil && n >= 0
	switch s.AutoCompactionMode {
	case "revision":
		if !isNumber {
			return 0, 0, fmt.Errorf("--auto-compaction-retention %q: with mode revision it is a number of revisions",
				s.AutoCompactionRetention)
		}
		return 0, n, nil
	case "periodic":
		if isNumber && n < 1<<20 {
			return time.Duration(n) * time.Hour, 0, nil
		}
		d, err := time.ParseDuration(s.AutoCompactionRetention)
		if err != nil || d < 0 {
			return 0, 0, fmt.Errorf("--auto-compaction-retention %q: with mode periodic it is a number of hours or a duration "+
				"such as 30m", s.AutoCompactionRetention)
		}
		return d, 0, nil
	}
	return 0, 0, fmt.Errorf("--auto-compaction-mode %q: it is periodic or revision", s.AutoCompactionMode)
}

// Secure reports whether URLs, which have one scheme, are of TLS.
func Secure(urls []string) bool {
	return len(urls) > 0 && strings.HasPrefix(strings.TrimSpace(urls[0]), "https:")
}

// Hosts returns the host:port of URLs that were validated.
func Hosts(urls []string) []string {
	var out []string
	for _, text := range urls {
		if u, err := parseURL(strings.TrimSpace(text), false); err == nil {
			out = append(out, u.Host)
		}
	}
	return out
}
