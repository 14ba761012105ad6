package braid

import (
	"context"
	"crypto/tls"

	"github.com/braidlog/braid/internal/replica"
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
