package braid

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol/common"
)

// Running is a running cluster as one of its members knows it. See [FindRunning].
type Running struct {
	Cluster uint64   // Options.Cluster
	Self    MemberID // the joiner's id
	Members []Member // all members, the joiner included
	// Begun is with how many instances the cluster began, if it is merged from several; else 0.
	Begun int
	// Kind is the kind of the cluster's log, if it has a profile, else zero. A joiner uses it, whatever protocol with
	// the same core its options name. Sealed: the log was sealed ([Node.Switch]), Kind is what it has been since, and
	// the options may name any protocol.
	Kind   LogKind
	Sealed bool
	// Position and Index are how far the member that answered had applied, and the first instance's log there.
	Position Position
	Index    Index
}

// Before reports whether another member's answer tells of a later membership, or may. Of several answers the last one
// counts: a member that lags may tell of a member that was removed since, with the joiner's URLs.
func (a *Running) Before(b *Running) bool {
	return (*replica.Running)(a).Before((*replica.Running)(b))
}

// ErrNotAdded is what FindRunning returns if the contacted member has no member with the joiner's peer URLs in its
// configuration. They were not added, or that member has not applied the change yet. Nothing happened, and a retry is
// safe.
var ErrNotAdded = replica.ErrNotAdded

// FindRunning asks a member of a running cluster, at one of its peer URLs, for what a member that was added with
// [Node.ChangeMembers] needs in [Options]: the cluster's id, its own, and the other members. The peer URLs, in any
// order, are those under which it was added. Config is as Options.TLS: a caller that passes TLS and names the URLs of a
// member gets the answer. It takes at most ten seconds.
func FindRunning(ctx context.Context, memberURL string, config *tls.Config, peerURLs []string) (*Running, error) {
	found, err := replica.FindRunning(ctx, memberURL, nil, config, peerURLs)
	return (*Running)(found), err
}

// How long a member that joins asks the running cluster who it is, and one member of it.
const (
	joinTime = 10 * time.Second
	askTime  = 2 * time.Second
	askPause = 100 * time.Millisecond
)

// identify fills in the ids that are not set. A directory that has data knows them. A member that joins is told them by
// the running cluster, together with its members and with how its log began.
func (o *Options) identify() error {
	if err := o.ownerOf(); err != nil || o.Dir == "" || !o.Join {
		return err
	}
	nameless := func(m Member) bool { return m.ID == 0 }
	unknown := slices.ContainsFunc(o.Members, nameless)
	ids, founded := o.Self != 0 && o.Cluster != 0, replica.Founded(o.files(), o.Dir)
	var found *Running
	var err error
	switch {
	case !unknown && founded:
		return nil
	case !unknown: // it may start before it is added
		ctx, cancel := context.WithTimeout(context.Background(), askTime)
		found, err = o.askMembers(ctx, o.ownURLs())
		cancel()
	case ids && founded: // the log has the members
		found, err = o.findRunning(askTime)
	default:
		found, err = o.findRunning(joinTime)
	}
	switch {
	case err != nil && (!unknown || ids && founded):
		o.Members = slices.DeleteFunc(slices.Clone(o.Members), nameless)
		return nil
	case err != nil:
		return fmt.Errorf("braid: join a running cluster: %w", err)
	case unknown:
		o.Self, o.Cluster, o.Members = cmp.Or(o.Self, found.Self), cmp.Or(o.Cluster, found.Cluster), found.Members
	}
	return o.follow(found)
}

// follow takes in how the log of the cluster began that the member joins.
func (o *Options) follow(found *Running) error {
	if found.Kind.IsZero() && found.Begun == 0 {
		return nil
	}
	name, v, err := o.chosen()
	unnamed := o.unnamed()
	if found.Kind.IsZero() {
		o.Protocol = named{name, common.Instances.Set(v, found.Begun), err, unnamed}
		return nil
	}
	o.Protocol = joining{named{name, v, err, unnamed}, replica.Born{Kind: found.Kind, Instances: found.Begun,
		Sealed: found.Sealed}}
	return nil
}

// joining is the protocol of a member that joins a cluster, and how that cluster's log began.
type joining struct {
	named
	born replica.Born
}

// ownerOf fills in the ids from the directory.
func (o *Options) ownerOf() error {
	if o.Self != 0 && o.Cluster != 0 || o.Dir == "" {
		return nil
	}
	self, cluster, err := replica.OwnerOf(o.files(), o.Dir)
	o.Self, o.Cluster = cmp.Or(o.Self, self), cmp.Or(o.Cluster, cluster)
	return err
}

// files is the file system with Dir.
func (o *Options) files() FS {
	if o.FS == nil {
		return vfs.OS
	}
	return o.FS
}

// findRunning asks the members that are named, until one of them knows this one. It gives up at once if they are of
// several clusters, because one of the addresses is wrong then.
func (o *Options) findRunning(limit time.Duration) (*Running, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	own := o.ownURLs()
	var last error
	for {
		found, err := o.askMembers(ctx, own)
		if found != nil || errors.As(err, new(*OptionError)) {
			return found, err
		}
		if ctx.Err() == nil || last == nil { // the last round may have been cut short
			last = err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("as the member at %v: %w", own, last)
		case <-time.After(askPause):
		}
	}
}

// askMembers asks each member once. The latest membership counts. An [*OptionError] is not resolved by a retry.
func (o *Options) askMembers(ctx context.Context, own []string) (best *Running, err error) {
	asked := false
	for i := range o.Members {
		for _, url := range o.Members[i].PeerURLs {
			asked = true
			found, failed := o.ask(ctx, url, own)
			switch {
			case failed != nil:
				err = errors.Join(err, failed)
			case best != nil && best.Cluster != found.Cluster:
				return nil, badOption("Members", "are of the clusters %x and %x: %s is of the latter",
					best.Cluster, found.Cluster, url)
			case best == nil || best.Before(found):
				best = found
			}
		}
	}
	switch {
	case best != nil:
		return best, nil
	case !asked:
		return nil, badOption("Members", "have no peer URL to ask")
	}
	return nil, err
}

// ask asks one member. Its answer must not contradict the ids that are known.
func (o *Options) ask(ctx context.Context, url string, own []string) (*Running, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	config := o.TLS.Config
	if o.TLS.ByURL && strings.HasPrefix(url, "http://") {
		config = nil
	}
	answer, err := replica.FindRunning(ctx, url, o.Dial, config, own)
	found := (*Running)(answer)
	switch {
	case err != nil:
		return nil, err
	case o.Cluster != 0 && o.Cluster != found.Cluster:
		return nil, badOption("Cluster", "is %x, and the member at %s is of cluster %x", o.Cluster, url, found.Cluster)
	case o.Self != 0 && o.Self != found.Self:
		// The other member may lag.
		return nil, fmt.Errorf("the member at %s knows this one as %s, not as %s", url, found.Self, o.Self)
	}
	return found, nil
}

// ownURLs are the peer URLs under which this member was added.
func (o *Options) ownURLs() []string {
	if len(o.PeerURLs) > 0 {
		return o.PeerURLs
	}
	scheme, addrs := "http://", o.Listen
	if o.TLS.Config != nil {
		scheme = "https://"
	}
	for _, l := range o.Listeners {
		addrs = append(slices.Clip(addrs), l.Addr().String())
	}
	var urls []string
	for _, a := range addrs {
		urls = append(urls, scheme+a)
	}
	return urls
}
