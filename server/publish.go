package server

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/braidlog/braid"
)

const (
	publishRetry = 100 * time.Millisecond
	publishPause = 2 * time.Second // the longest pause between attempts
	refusedPause = time.Minute     // after a refusal, while the membership stays the same
)

// publication is a part of this member's entry in the membership that it sets itself. The zone is apart from name and
// client URLs: quorums may depend on it, so it may be refused.
type publication struct {
	what   string
	wanted braid.Member
	// refused is the membership in which it was refused. It is proposed again in another one, and from again on. why was
	// logged.
	refused []braid.Member
	again   time.Time
	why     braid.Reason
}

// publications are those of this member. Peer URLs are left out: they are the operator's to change, perhaps at this
// moment.
func (s *Server) publications() []*publication {
	return []*publication{
		{what: "name and client URLs", wanted: braid.Member{ID: s.id, Name: s.cfg.Name,
			ClientURLs: s.cfg.AdvertiseClientURLs}},
		{what: "zone", wanted: braid.Member{ID: s.id, Zone: s.cfg.Zone}},
	}
}

// publish makes the membership show this part. It reports whether it does; otherwise the server stops.
func (s *Server) publish(p *publication) bool {
	pause := time.Duration(0)
	for {
		select {
		case <-time.After(pause):
		case <-s.stopping:
			return false
		}
		pause = min(max(2*pause, publishRetry), publishPause)
		m := s.cluster.find(uint64(s.id))
		if m == nil {
			continue // not added yet
		}
		if m.Amended(&p.wanted) {
			return true
		}
		members := s.log.Status().Members
		if p.refused != nil && time.Now().Before(p.again) && reflect.DeepEqual(members, p.refused) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
		err := s.log.ChangeMembers(ctx, braid.Change{Kind: braid.UpdateMember, Member: p.wanted})
		cancel()
		s.published(p, members, err)
	}
}

// published notes the result of proposing a part in a membership.
func (s *Server) published(p *publication, members []braid.Member, err error) {
	p.refused = nil
	var refused *braid.RefusedError
	switch {
	case err == nil:
		return
	case !errors.As(err, &refused) || refused.Retryable():
		s.logger.Debug("could not publish "+p.what+", trying again", "err", err)
		return
	case refused.Reason != p.why:
		s.logger.Warn("the cluster refuses this member's "+p.what+", which is proposed again after other changes of members",
			"zone", p.wanted.Zone, "reason", refused.Reason.String())
	}
	p.refused, p.why, p.again = members, refused.Reason, time.Now().Add(refusedPause)
}
