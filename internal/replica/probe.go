package replica

import (
	"context"
	"errors"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/protocol"
)

// probe asks the members that an operation adds, or makes voters, whether there may be a link with them. It returns a
// [*member.RefusedError] if one of them has a log of another lineage: it would be a member that no one talks to. A
// member that does not answer within an election timeout may be started later.
func (r *Replica) probe(ctx context.Context, op *cluster.Operation) error {
	if op.Kind != cluster.ChangeMembers {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.tuning().Election)
	defer cancel()
	config := r.first().status.Load().Config
	up, _ := r.linked()
	for i := range op.Changes {
		c := &op.Changes[i]
		urls, known := c.Member.PeerURLs, config.Find(c.Member.ID)
		if known != nil && len(urls) == 0 {
			urls = known.PeerURLs
		}
		if c.Kind == protocol.RemoveMember || c.Kind == protocol.UpdateMember || known != nil && !known.Learner ||
			up(c.Member.ID) {
			continue
		}
		err := r.links.Probe(ctx, uint64(c.Member.ID), addresses(urls, r.opt.TLSByURL))
		if refused := (*transport.HandshakeError)(nil); errors.As(err, &refused) &&
			refused.Reason == transport.ReasonLineage {
			r.log.Warn("a member is not added, its log was founded apart", "member", c.Member.ID, "err", err)
			return &member.RefusedError{What: op.Kind.String(), Reason: protocol.ReasonLineage}
		}
	}
	return nil
}
