package braid

import (
	"context"
	"crypto/tls"

	"github.com/braidlog/braid/internal/replica"
)

// Running is a running cluster as one of its members knows it: see [FindRunning].
type Running = replica.Running

// ErrNotAdded is what FindRunning returns if the member that it asked knows no member with the joiner's
// peer URLs. They were not added, or that member has not heard of it yet. Nothing happened, and a retry is safe.
var ErrNotAdded = replica.ErrNotAdded

// FindRunning asks a member of a running cluster, at one of its peer URLs, for what a member that was
// added with [Node.ChangeMembers] needs in [Options]: the cluster's id, its own, and the other members. The
// peer URLs, in any order, are those under which it was added. Config is as Options.PeerTLS: who passes
// that, and names the URLs of a member, gets the answer. It takes at most ten seconds.
func FindRunning(ctx context.Context, memberURL string, config *tls.Config, peerURLs []string) (*Running, error) {
	return replica.FindRunning(ctx, memberURL, config, peerURLs)
}
