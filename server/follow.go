package server

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// selfView is this member's view of itself and the leader at the last change. It is never changed, only replaced, so
// requests read it without a lock.
//
// The leader, in etcd's sense, is the member that leads the global log ([braid.Status.Lead]). It is the primary lessor
// and compacts automatically, and its term is the API's.
type selfView struct {
	id, leader braid.MemberID
	term       uint64
	learner    bool
	member     bool // it is in the membership that is applied here
	// led: every instance has a leader, so that something can be written.
	led bool
	// lost is when an instance lost its leader; zero if each has one, or never had.
	lost time.Time
	// replaced is closed when another view replaces this one.
	replaced chan struct{}
}

func (v *selfView) isLeader() bool { return v.leader == v.id && v.id != 0 }

// leaderlessTimeouts is for how many election timeouts streams that require a leader stay open
// without one. Reconnecting costs a client much more than waiting.
const leaderlessTimeouts = 3

func (s *Server) electionTimeout() time.Duration { return time.Duration(s.election.Load()) }

// retime takes in the times of a profile.
func (s *Server) retime(p *braid.Profile) {
	election, longest := timeoutsOf(p, s.cfg.electionTimeout())
	s.election.Store(int64(election))
	if !s.cfg.ownExtension {
		s.store.Leases().Extend(longest)
	}
}

// replace takes in where members keep bodies.
func (s *Server) replace(placement string) {
	if s.cfg.largeByPlacement {
		s.store.SetLargeValueBytes(largeFrom(placement))
	}
}

// largeFrom is the size from which on a value is large.
func largeFrom(placement string) int {
	if placement == braid.PlacementCopy || placement == "" {
		return largeWholeBytes
	}
	return store.DefaultLargeValueBytes
}

// timeoutsOf returns the election timeout of a profile, own if there is none, and by how much leases are extended: the
// longest one of all profiles of the log, because a primary lessor may have promised as much under any of them.
func timeoutsOf(p *braid.Profile, own time.Duration) (election, longest time.Duration) {
	election = own
	if timeout, ok := timeoutOf(p); ok {
		election = timeout
	}
	longest = election
	for i := range p.Earlier {
		if before, ok := timeoutOf(&p.Earlier[i]); ok {
			longest = max(longest, before)
		}
	}
	return election, longest
}

// timeoutOf is the election timeout of a profile; ok is false if it does not have it.
func timeoutOf(p *braid.Profile) (timeout time.Duration, ok bool) {
	timeout, err := time.ParseDuration(p.Settings["election-timeout"])
	return timeout, err == nil
}

// updateSelf replaces the view by that of the log's present status.
func (s *Server) updateSelf() (old, now *selfView) {
	st := s.log.Status()
	s.observe(&st)
	s.retime(&st.Profile)
	s.replace(st.Placement)
	now = &selfView{id: s.id, leader: st.Leader(), term: uint64(st.Lead.Term), led: st.HasLeaders(),
		replaced: make(chan struct{})}
	for i := range st.Members {
		if st.Members[i].ID == s.id {
			now.member = true
			now.learner = st.Members[i].Learner && !st.Members[i].Joining
		}
	}
	old = s.self.Load()
	switch {
	case now.led:
	case old.led:
		now.lost = time.Now()
	default:
		now.lost = old.lost
	}
	s.self.Store(now)
	close(old.replaced)
	return old, now
}

// awaitLeader returns nil when every instance has a leader. It waits for as long as an election takes after the last
// leader was lost: a switch, a transfer and an election are no reason to refuse a request, a lost majority is one.
func (s *Server) awaitLeader(ctx context.Context) error {
	v := s.self.Load()
	if v.led {
		return nil
	}
	elected := time.NewTimer(time.Until(v.lost.Add(s.electionTimeout())))
	defer elected.Stop()
	for !v.led {
		select {
		case <-v.replaced:
			v = s.self.Load()
		case <-elected.C:
			return rpctypes.ErrGRPCNoLeader
		case <-ctx.Done():
			return toStatus(ctx.Err())
		case <-s.stopping:
			return rpctypes.ErrGRPCStopped
		}
	}
	return nil
}

// follow acts on changes of leader and membership, until the server stops.
func (s *Server) follow() {
	leaderless := time.NewTimer(time.Hour)
	leaderless.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	changes := s.log.Changes(ctx)
	s.lead(nil, s.self.Load(), leaderless)
	for {
		select {
		case _, more := <-changes:
			if !more {
				changes = nil // the member has stopped
			}
			old, now := s.updateSelf()
			s.lead(old, now, leaderless)
			if old.member && !now.member {
				s.background.Go(func() { s.dismissOnce.Do(s.leave) })
			}
		case <-leaderless.C:
			s.logger.Warn("no leader for too long, ending streams that require one")
			s.streams.endLeaderless(rpctypes.ErrGRPCNoLeader)
		case <-s.stopping:
			return
		}
	}
}

// lead makes the leader the primary lessor. This goes through the log. So if two members think
// that they lead, at most one of them is primary.
func (s *Server) lead(old, now *selfView, leaderless *time.Timer) {
	switch {
	case now.led:
		leaderless.Stop()
	case old == nil || old.led:
		leaderless.Reset(leaderlessTimeouts * s.electionTimeout())
	}
	if old != nil && old.leader == now.leader && old.term == now.term {
		return
	}
	if now.leader != 0 && (old == nil || old.leader != now.leader) {
		s.metrics.LeaderChanges.Add(1)
	}
	s.compactWhileLeading(now.isLeader())
	if !now.isLeader() {
		s.store.Leases().Demote()
		return
	}
	s.background.Go(func() { s.claimLeases(now.term) })
}

// claimLeases makes this member the primary lessor, and repeats that while it leads in a term,
// because the claim of an earlier leader may come late and the newest claim holds.
func (s *Server) claimLeases(term uint64) {
	for claimed := false; ; {
		v := s.self.Load()
		if !v.isLeader() || v.term != term {
			return
		}
		pause := s.electionTimeout()
		if !claimed || !s.store.Leases().IsPrimary() {
			ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
			_, err := s.log.Propose(ctx, s.store.Leases().Claim())
			cancel()
			if errors.Is(err, braid.ErrStopped) {
				return
			}
			if claimed = err == nil; !claimed {
				s.logger.Warn("could not take over the leases, trying again", "err", err)
				pause = askRetry
			}
		}
		select {
		case <-time.After(pause):
		case <-s.stopping:
			return
		}
	}
}

// primary returns the primary lessor, 0 if none is known.
func (s *Server) primary() braid.MemberID { return braid.MemberID(s.store.Leases().Primary()) }

// orderWanted orders the store's own commands: revocations of expired leases, checkpoints, alarms. The store repeats a
// command that is lost, so results do not matter.
func (s *Server) orderWanted() {
	for command := range s.store.Wanted() {
		err := s.log.ProposeAsync(command, func(any, error) {})
		if err != nil {
			s.logger.Debug("a command of the store was refused, it will come again", "err", err)
		}
	}
}
