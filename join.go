package braid

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
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
	found, err := replica.FindRunning(ctx, memberURL, config, peerURLs)
	return (*Running)(found), err
}

// How long a member that joins asks the running cluster who it is, and one member of it.
const (
	joinTime = 10 * time.Second
	askTime  = 2 * time.Second
	askPause = 100 * time.Millisecond
)

// identify fills in the ids that are not set. A directory that has data knows them. A member that joins is told them by
// the running cluster, together with its members and the number of instances with which it began.
func (o *Options) identify() error {
	if err := o.ownerOf(); err != nil || o.Dir == "" {
		return err
	}
	nameless := func(m Member) bool { return m.ID == 0 }
	if !o.Join || !slices.ContainsFunc(o.Members, nameless) {
		return nil
	}
	known, limit := o.Self != 0 && o.Cluster != 0, joinTime
	if known {
		limit = askTime // the log has the members, unless it ended right after the first start
	}
	found, err := o.findRunning(limit)
	switch {
	case known && err != nil:
		o.Members = slices.DeleteFunc(slices.Clone(o.Members), nameless)
		return nil
	case err != nil:
		return fmt.Errorf("braid: join a running cluster: %w", err)
	}
	o.Self, o.Cluster, o.Members = cmp.Or(o.Self, found.Self), cmp.Or(o.Cluster, found.Cluster), found.Members
	if found.Begun == 0 {
		return nil
	}
	name, v, err := o.chosen()
	o.Protocol = named{name, common.Instances.Set(v, found.Begun), err}
	return nil
}

// ownerOf fills in the ids from the directory.
func (o *Options) ownerOf() error {
	if o.Self != 0 && o.Cluster != 0 || o.Dir == "" {
		return nil
	}
	fs := o.FS
	if fs == nil {
		fs = vfs.OS
	}
	self, cluster, err := replica.OwnerOf(fs, o.Dir)
	o.Self, o.Cluster = cmp.Or(o.Self, self), cmp.Or(o.Cluster, cluster)
	return err
}

// findRunning asks the members that are named, until one of them knows this one.
func (o *Options) findRunning(limit time.Duration) (*Running, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	own := o.ownURLs()
	for {
		found, err := o.askMembers(ctx, own)
		if found != nil {
			return found, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("as the member at %v: %w", own, err)
		case <-time.After(askPause):
		}
	}
}

// askMembers asks each member once. The latest membership counts.
func (o *Options) askMembers(ctx context.Context, own []string) (best *Running, err error) {
	for i := range o.Members {
		for _, url := range o.Members[i].PeerURLs {
			one, cancel := context.WithTimeout(ctx, askTime)
			found, failed := FindRunning(one, url, o.TLS.Config, own)
			cancel()
			switch {
			case failed != nil:
				err = errors.Join(err, failed)
			case best == nil || best.Before(found):
				best = found
			}
		}
	}
	if best == nil && err == nil {
		err = badOption("Members", "have no peer URL to ask")
	}
	return best, err
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
