package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// Settings that all members share: the profile of the log.

// profile returns a profile with an election timeout. The heartbeat is that of cores under test.
func (o *Options) profile(version uint64, timeout time.Duration) protocol.Profile {
	v := setting.MustParse("heartbeat-interval="+(10*Pace).String(), "election-timeout="+timeout.String())
	return protocol.Profile{Version: version, Values: v.Over(o.Profile)}
}

// tune asks a member for a profile and returns the request's context.
func (net *Net) tune(id protocol.MemberID, p protocol.Profile) uint64 {
	return net.Change(id, protocol.Change{Kind: protocol.Tune, Profile: &p})
}

// tuned asks all members for a profile until it is decided.
func (net *Net) tuned(p protocol.Profile) {
	net.t.Helper()
	tries := 0
	net.Until(fmt.Sprintf("version %d of the profile", p.Version), func() bool {
		if tries++; tries%20 == 1 && !net.current().Profile.Equal(&p) {
			for _, n := range net.Nodes {
				net.tune(n.ID, p)
			}
			net.Settle()
		}
		return net.current().Profile.Equal(&p)
	})
}

// refuses asks all members for a profile until the one that decides changes refuses it for a reason. The others refuse
// every change.
func (net *Net) refuses(want protocol.Reason, p protocol.Profile) {
	net.t.Helper()
	net.Until(fmt.Sprintf("a refusal: %s", want), func() (refused bool) {
		for _, n := range net.Nodes {
			switch reason := net.Refused(net.tune(n.ID, p)); reason {
			case want:
				refused = true
			case protocol.ReasonNotLeader, protocol.ReasonNoLeader, protocol.ReasonChangePending:
			default:
				net.t.Fatalf("member %s, asked for version %d of the profile, answers: %s", n.ID, p.Version, reason)
			}
		}
		return refused
	})
}

// uses fails if a running member does not have a profile, or has not applied it.
func (net *Net) uses(p protocol.Profile) {
	net.t.Helper()
	for _, n := range net.Nodes {
		if n.Core == nil {
			continue
		}
		if active := n.Core.Status().Config.Profile; !active.Equal(&p) || !n.Config.Profile.Equal(&p) {
			net.t.Fatalf("member %s applied version %d of the profile and uses version %d, not version %d", n.ID,
				n.Config.Profile.Version, active.Version, p.Version)
		}
	}
}

// restartAll crashes all members and starts them.
func (net *Net) restartAll() {
	for _, n := range net.Nodes {
		net.Crash(n.ID, 0)
	}
	net.Queue = nil
	for _, n := range net.Nodes {
		net.Restart(n.ID)
	}
}

// tunes: a change of the profile is decided, or refused for a reason; and restarts, snapshots and members that catch up
// keep it.
func tunes(t *testing.T, s suite) {
	net := s.net(t, 3, 11)
	net.Committed(1, 10)
	net.tuned(net.profile(1, 100*Pace))
	net.refuses(protocol.ReasonProfile, net.profile(1, 200*Pace))
	net.refuses(protocol.ReasonProfile, net.profile(3, 200*Pace))
	net.refuses(protocol.ReasonNoChange, net.profile(2, 100*Pace))
	unknown := net.profile(2, 200*Pace)
	unknown.Values = setting.MustParse("unknown=1").Over(unknown.Values)
	net.refuses(protocol.ReasonSettings, unknown)
	net.refuses(protocol.ReasonSettings, net.profile(2, 15*Pace)) // less than two heartbeats
	net.level()
	net.uses(net.profile(1, 100*Pace))

	long := net.profile(2, 400*Pace)
	net.tuned(long)
	net.level()
	net.uses(long)
	net.restartAll()
	net.patient(1, 400*Pace)
	net.Committed(1, 10)
	net.level()
	net.uses(long)

	net.Crash(3, 0)
	short := net.profile(3, 50*Pace)
	net.tuned(short)
	for range 30 {
		net.Committed(1, 10)
	}
	net.Compact(1, 0)
	net.Compact(2, 0)
	net.Restart(3)
	net.level()
	if net.Node(3).Snap.Index == 0 {
		t.Fatal("the member caught up without a snapshot, from entries that are gone")
	}
	net.uses(short)
	net.restartAll()
	net.Committed(2, 10)
	net.level()
	net.uses(short)
}

// patient fails if a member that no other one reaches campaigns before an election timeout has passed.
func (net *Net) patient(id protocol.MemberID, timeout time.Duration) {
	net.t.Helper()
	net.Cut = func(from, to protocol.MemberID) bool { return from == id || to == id }
	for passed := time.Duration(0); passed < timeout-Pace; passed += Pace {
		net.Tick(id, Pace)
		net.Settle()
		if role := net.Node(id).Core.Status().Role; role == protocol.PreCandidate || role == protocol.Candidate {
			net.t.Fatalf("member %s is a %s after %s, with an election timeout of %s", id, role, passed+Pace, timeout)
		}
	}
	net.Cut = nil
}

// undecidedTune: the leader that proposed a profile is cut off, and perhaps crashes, before it is decided. The others
// continue, and in the end all have the same profile: this one or the one before.
func undecidedTune(t *testing.T, s suite) {
	for reached := range 3 {
		for _, crash := range []bool{false, true} {
			net := s.net(t, 3, uint64(12+reached))
			net.Committed(1, 10)
			net.tuned(net.profile(1, 100*Pace))
			net.level()
			net.leaveUndecided(net.profile(2, 50*Pace), reached, crash)
			net.level()
			got := net.current().Profile
			if next := net.profile(2, 50*Pace); got.Version > 1 && !got.Equal(&next) {
				t.Fatalf("version %d of the profile, which no operator asked for, is %s", got.Version, got.Values)
			}
			net.uses(got)
			last := net.profile(got.Version+1, 200*Pace)
			net.tuned(last)
			net.level()
			net.uses(last)
		}
	}
}

// leaveUndecided has a leader propose a profile. reached other members receive it, and the leader gets no answer.
// They elect another leader. The first one then comes back, after a restart if it crashed.
func (net *Net) leaveUndecided(p protocol.Profile, reached int, crash bool) {
	var l *Node
	net.Until("a leader that takes a change", func() bool {
		l = net.Leader()
		return l != nil && net.Refused(net.tune(l.ID, p)) == protocol.ReasonNone
	})
	others := []protocol.MemberID{l.ID%3 + 1, (l.ID+1)%3 + 1}
	net.Cut = func(from, to protocol.MemberID) bool {
		return to == l.ID || from == l.ID && (to == others[1] && reached < 2 || reached == 0)
	}
	for range 20 {
		net.Tick(l.ID, Pace)
		net.Settle()
	}
	net.Cut = func(from, to protocol.MemberID) bool { return from == l.ID || to == l.ID }
	if crash {
		net.Crash(l.ID, 0)
	}
	net.Committed(others[1], 10)
	if net.Cut = nil; crash {
		net.Restart(l.ID)
	}
	net.Committed(l.ID, 10)
}
