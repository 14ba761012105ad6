package settings

import (
	"errors"
	"fmt"
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
	s.Discovery.complete()
	s.InitialName = s.Name
	if s.clusterGiven = s.InitialCluster != ""; !s.clusterGiven {
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
		s.checkTLS(), s.checkLimits(), s.Access.check(), s.Limits.check(), s.Monitor.check(), s.Database.check(),
		s.Output.check(), s.checkDiscovery(), s.checkForeign(), s.checkGates(), s.Log.Complete())
}

func (s *Settings) checkNames() error {
	if s.Name == "" || strings.ContainsAny(s.Name, ",= \t\n") {
		return fmt.Errorf("--name %q: a name is not empty and holds no space, comma or =", s.Name)
	}
	if s.InitialState != StateNew && s.InitialState != StateExisting {
		return fmt.Errorf("--initial-cluster-state %q: it is new or existing", s.InitialState)
	}
	if _, err := parseURLs("--join", s.Join, parseJoinURL); err != nil {
		return err
	}
	return nil
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
		u, err := parsePeerURL(address, false)
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
		if p.Name == s.InitialName {
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
			s.InitialName, names(peers)))
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
