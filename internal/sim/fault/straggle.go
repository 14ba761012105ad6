package fault

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Membership changes while one member does not know all bodies yet. Faults of links, disks and processes hardly ever
// cause that. They affect all instances of a member alike, and an operator seldom asks for a change at that moment.
// So some runs with coded bodies play these stories, and have hardly any other fault:
//
//   - a member is behind in one instance only, which is retired. Then another member is removed.
//   - a change of the number of instances is refused and will be proposed again. Meanwhile a member is removed, and
//     one instance cannot adopt that.
//   - a member is removed, so the others make whole copies. Some of them restart from an earlier snapshot, apply
//     nothing for a while, and look for copies to trim.

// straggleStories is the source of chance for stories of members that are behind.
var straggleStories = draw.New("straggling")

var faultStraggle = &Fault{Name: "straggle",
	Does: "the membership changes while one member does not know all bodies"}

func init() {
	faultStraggle.Draw = (*Settings).drawStraggle
	faultStraggle.Strike = func(w *World, _ *node.Member) { straggle(w) }
	faultStraggle.End = func(w *World) { w.straggling, w.Route = nil, 0 }
}

var changesWhileBehind = count.New("changes_of_members_while_somebody_is_behind",
	"changes of members while somebody is behind", count.Staged)

// straggling is a story in progress.
type straggling struct {
	// member gets no messages of instance; 0: all members get them.
	member   protocol.MemberID
	instance protocol.InstanceID
	// unread: all requests for bodies of the instance are lost.
	unread bool
	// holds: this leader cannot transfer its leadership.
	holds protocol.MemberID
}

// drawStraggle draws whether a run has such stories. Bodies may have too few holders when the cluster shrinks, most
// likely from four members to three.
func (s *Settings) drawStraggle(d draw.Chance) {
	often := 0.1
	if s.Nodes == 4 {
		often = 0.5
	}
	if s.Core.Placement != protocol.PlacementCode || s.Bodies.Share == 0 || s.Nodes < 4 || s.Keyed || !d.Yes(often) {
		return
	}
	s.Faults = rates{faultStraggle: s.Election * time.Duration(1+d.Below(3))}
	if d.Yes(0.3) {
		s.Faults[faultCrash] = s.Election * time.Duration(20+d.Below(40))
	}
	s.Timely()
	s.PerfectLinks()
	s.Meet, s.Aim = meetSettings{}, aimSettings{}
	s.Chaos, s.GiveUp = max(s.Chaos, 60*s.Election), 10*s.Election
	q := s.Nodes/2 + 1
	s.Core.MaxK, s.Core.ExtraWhole = 2+d.Below(q-1), 0
	s.SnapshotBytes, s.KeepLogBytes = d.Limit(3000, 8000, 20_000), 0
	s.Bodies.Share, s.Bodies.Scrub, s.Bodies.LimitSettings = 0.5+0.5*d.Share(),
		s.Election*time.Duration(1+d.Below(3)), node.LimitSettings{}
	s.Bodies.GatherBytes = 1 << 20
	s.Clients, s.Operations, s.Reads = 2+d.Below(4), 400, 0.3*d.Share()
	s.Think = max(s.Heartbeat/2, s.Chaos*time.Duration(s.Clients)/time.Duration(s.Operations))
	s.Padding, s.Load.Bursts = min(s.Padding, 100), 0
	s.Core.MaxUncommittedBytes = 1 << 20
	if s.Merged() {
		s.Weave.Scatter, s.Weave.Move = 0.5+0.5*d.Share(), 0
		s.Core.Leaders = [...]protocol.Leaders{
			protocol.LeadersTogether, protocol.LeadersSpread, protocol.LeadersAny, protocol.LeadersAny,
		}[d.Below(4)]
	}
	s.OneWay = d.Yes(0.5)
}

// straggles reports whether a message is lost because of a story.
func straggles(w *World, m *protocol.Message) bool {
	s := w.straggling
	switch {
	case s == nil:
		return false
	case w.Misses(m.To, m.Instance), m.Instance == s.instance && s.unread && m.Type == protocol.MsgFetch:
		return true
	}
	return m.Type == message.TimeoutNow && m.From == s.holds
}

// Misses reports whether a member gets no messages of an instance because of a story.
func (w *World) Misses(id protocol.MemberID, instance protocol.InstanceID) bool {
	s := w.straggling
	return s != nil && id == s.member && instance == s.instance
}

// straggle begins a story, or prepares the cluster for one: its original size, and several instances.
func straggle(w *World) {
	l := w.Leader()
	if l == nil || w.straggling != nil {
		return
	}
	config, d := l.Applier.Config(), w.From(straggleStories)
	voters := config.Voters()
	switch {
	case config.Joint() || !l.Settled():
	case len(voters) < w.Set.Nodes:
		regrow(w, l, &config)
	case !w.Set.Merged():
		restartBehind(w, l, voters, d)
	case len(l.InForce) == 1:
		n := 2 + d.Below(2)
		askReshape(w, l, n, 10*w.Set.Election)
	default:
		switch d.Below(5) {
		case 0:
			restartBehind(w, l, voters, d)
		case 1, 2:
			reshapeAgain(w, l, voters, d)
		default:
			fallBehind(w, l, voters, d)
		}
	}
}

// regrow replaces a member that was removed, as an operator does.
func regrow(w *World, l *node.Member, config *protocol.Config) {
	for i := range config.Members {
		if m := &config.Members[i]; m.Learner {
			askChange(w, l, []protocol.Change{{Kind: protocol.AddVoter, Member: asVoter(w, m.ID)}})
			return
		}
	}
	if len(w.Members) < w.Set.Nodes+maxAdded {
		askChange(w, l, []protocol.Change{{Kind: protocol.AddVoter, Member: AddMember(w)}})
	}
}

// oneOf draws one of ids that is not in others.
func oneOf(d draw.Chance, ids []protocol.MemberID, others ...protocol.MemberID) protocol.MemberID {
	left := slices.DeleteFunc(slices.Clone(ids), func(id protocol.MemberID) bool { return slices.Contains(others, id) })
	return left[d.Below(len(left))]
}

// await polls done until it returns true, or until the time most has passed. Then it calls then.
func await(w *World, most time.Duration, done func() bool, then func()) {
	until := w.Now() + most
	var look func()
	look = func() {
		if w.Calm || w.Now() >= until || done() {
			then()
			return
		}
		w.After(w.Set.Heartbeat/4, look)
	}
	look()
}

// removeNow asks the leader to remove a member, and repeats that until the member is removed, or until the time most
// has passed.
func removeNow(w *World, id protocol.MemberID, most time.Duration, then func()) {
	tries := 0
	gone := func() bool {
		l := w.Leader()
		if l == nil {
			return false
		}
		config := l.Applier.Config()
		if config.Find(id) == nil {
			return true
		}
		if tries++; tries%2 == 1 {
			l.Execute(cluster.Operation{Kind: cluster.ChangeMembers, Changes: []protocol.Change{
				{Kind: protocol.RemoveMember, Member: protocol.Member{ID: id}},
			}}, w.Set.Election, func(error) {})
		}
		return false
	}
	w.Tracef("FAULT %s is to be removed", id)
	await(w, most, gone, then)
}

// beginStory begins a story, during which clients may write through one instance alone.
func beginStory(w *World, s straggling, what string) {
	w.Count(changesWhileBehind)
	w.Tracef("FAULT %s", what)
	w.straggling = &s
	if s.instance != 0 && w.Set.OneWay {
		w.Route = s.instance
	}
}

// endStory ends the story.
func endStory(w *World) {
	if w.straggling != nil {
		w.Tracef("FAULT everybody hears everything again")
	}
	w.straggling, w.Route = nil, 0
}

// fallBehind makes a member miss the decisions of an instance. The member may be the leader of the first instance.
// The instance is retired, and another member is removed.
func fallBehind(w *World, l *node.Member, voters []protocol.MemberID, d draw.Chance) {
	at := 1 + d.Below(len(l.InForce)-1)
	in := l.InForce[at].Instance
	leads := w.LeaderOf(in)
	if leads == nil {
		return
	}
	late := oneOf(d, voters, l.ID, leads.ID)
	if leads != l && d.Yes(0.6) {
		late = l.ID
	}
	beginStory(w, straggling{member: late, instance: in}, fmt.Sprintf("%s gets nothing of instance %d", late, in))
	n := 1 + d.Below(at)
	w.After(w.Set.Election/2+d.Duration(0, w.Set.Election), func() {
		askReshape(w, l, n, 10*w.Set.Election)
		retired := func() bool {
			return !slices.ContainsFunc(w.Members, func(m *node.Member) bool {
				return m.Up && m.ID != late && m.InstancesApplied() != n
			})
		}
		await(w, 8*w.Set.Election, retired, func() {
			removeNow(w, oneOf(d, voters, late, l.ID), 4*w.Set.Election, func() { endStory(w) })
		})
	})
}

// reshapeAgain asks for a change of the number of instances, which is refused because a leadership transfer cannot
// end. A member is removed before the change is proposed again. One instance cannot adopt the removal, because no
// member can copy its bodies.
func reshapeAgain(w *World, l *node.Member, voters []protocol.MemberID, d draw.Chance) {
	at := 1 + d.Below(len(l.InForce)-1)
	n, in := 1+d.Below(at), l.InForce[at].Instance
	beginStory(w, straggling{instance: in, unread: true, holds: l.ID},
		fmt.Sprintf("nobody gets bodies of instance %d", in))
	w.After(w.Set.Election+d.Duration(0, w.Set.Election), func() {
		if !l.Up || w.Leader() != l {
			endStory(w)
			return
		}
		to := oneOf(d, voters, l.ID)
		w.Tracef("FAULT %s cannot hand over to %s, and is asked for %d instances", l.ID, to, n)
		l.WhenAwake(func() { l.InForce[0].Step(protocol.Transfer{To: to}) })
		w.After(d.Duration(w.Set.Election/8, w.Set.Election), func() {
			w.Ask(l, cluster.Operation{Kind: cluster.Reshape, Instances: n}, 12*w.Set.Election, func(error) {})
			removeNow(w, oneOf(d, voters, l.ID), 5*w.Set.Election, func() { w.After(3*w.Set.Election, func() { endStory(w) }) })
		})
	})
}

// restartBehind removes a member. As soon as that is done, some others restart. Their state machines stall, and they
// read all their bodies.
func restartBehind(w *World, l *node.Member, voters []protocol.MemberID, d draw.Chance) {
	gone := oneOf(d, voters, l.ID)
	beginStory(w, straggling{}, fmt.Sprintf("%s is removed, and others will start again", gone))
	removeNow(w, gone, 8*w.Set.Election, func() {
		endStory(w)
		for _, id := range voters {
			if m := w.Member(id); id != gone && m.Up && !w.Calm && d.Yes(0.6) {
				m.Crash()
				w.After(d.Duration(0, w.Set.Election/2), func() { startLagging(w, m) })
			}
		}
	})
}

// startLagging starts a member that applies nothing for a while, and reads all its bodies.
func startLagging(w *World, m *node.Member) {
	if w.StartMember(m); m.Up && !w.Calm {
		m.Lagging = w.Now() + 3*w.Set.Election
		w.Tracef("FAULT %s applies nothing until %.6f", m.ID, m.Lagging.Seconds())
		for i := range time.Duration(4) {
			m.Later(i*w.Set.Election/2, m.ReadAll)
		}
	}
}
