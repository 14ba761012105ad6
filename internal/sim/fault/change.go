package fault

import (
	"slices"

	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

var faultChange = &Fault{Name: "change", Usual: true, Thinned: true, Does: "the operator changes the membership"}

func init() {
	faultChange.Strike = func(w *World, _ *node.Member) { changeMembers(w) }
}

// changeMembers does what operators do: it adds and promotes learners, and replaces and removes members.
func changeMembers(w *World) {
	m, knows := memberToAsk(w), w.Leader() // the operator may know more than the member that is asked
	if knows == nil {
		knows = m
	}
	config := knows.Witness.Latest.Config
	changes := []protocol.Change(nil)
	if w.Set.Resize {
		changes = drawResize(w, &config)
	} else {
		changes = drawChange(w, &config)
	}
	if undo := unknownMembers(w, m, &config); len(undo) > 0 && !w.Set.Resize && w.Chance(0.5) {
		changes = undo
	}
	if lost := lostOf(w, &config); len(lost) > 0 {
		changes = replaceLost(w, &config, lost[0])
	}
	if len(changes) == 0 {
		return
	}
	askChange(w, m, changes)
	if changes[0].Kind == protocol.AddLearner {
		promoteLater(w, changes[0].Member.ID)
	}
}

// maxAdded is the maximal number of members that join during one run.
const maxAdded = 4

func drawChange(w *World, config *protocol.Config) []protocol.Change {
	voters := config.Voters()
	if len(voters) == 0 {
		return nil
	}
	var learners []protocol.MemberID
	for i := range config.Members {
		if config.Members[i].Learner {
			learners = append(learners, config.Members[i].ID)
		}
	}
	some := protocol.Member{ID: voters[w.Pick(len(voters))]}
	spare := len(w.Members) < w.Set.Nodes+maxAdded
	switch x := w.Pick(6); {
	case x == 0 && len(learners) > 0:
		return []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: learners[0]}}}
	case x <= 2 && len(learners) > 0:
		return promote(w, learners, some)
	case x == 3 && len(voters) > 1 && len(voters) > w.Set.Nodes/2:
		return []protocol.Change{{Kind: protocol.RemoveMember, Member: some}}
	case x == 4 && spare:
		return []protocol.Change{{Kind: protocol.AddVoter, Member: AddMember(w)}, {Kind: protocol.RemoveMember, Member: some}}
	case x == 5:
		some.Name = "renamed"
		return []protocol.Change{{Kind: protocol.UpdateMember, Member: some}}
	case spare:
		kind := protocol.AddLearner
		if w.Chance(0.3) {
			kind = protocol.AddVoter
		}
		return []protocol.Change{{Kind: kind, Member: AddMember(w)}}
	}
	return nil
}

// promote promotes learners. Half of the time a voter is removed by the same change.
func promote(w *World, learners []protocol.MemberID, some protocol.Member) (changes []protocol.Change) {
	for _, id := range learners {
		changes = append(changes, protocol.Change{Kind: protocol.AddVoter, Member: asVoter(w, id)})
		if w.Chance(0.5) {
			break
		}
	}
	if w.Chance(0.5) {
		changes = append(changes, protocol.Change{Kind: protocol.RemoveMember, Member: some})
	}
	return changes
}

// unknownMembers returns a removal that an outdated member considers done: of a member whose addition it has not
// applied.
func unknownMembers(w *World, m *node.Member, config *protocol.Config) (changes []protocol.Change) {
	behind := m.Applier.Config()
	for _, x := range config.Members {
		if behind.Find(x.ID) == nil && len(behind.Members) > 0 && len(config.Voters()) > 1 {
			return []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: x.ID}}}
		}
	}
	return nil
}

// promoteLater repeatedly asks for a learner to replace a voter, preferably one that is down.
func promoteLater(w *World, learner protocol.MemberID) {
	w.After(w.Between(w.Set.Election/4, w.Set.Election), func() {
		m := w.Leader()
		if w.Calm {
			return
		}
		if m != nil {
			config := &m.Witness.Latest.Config
			voters := config.Voters()
			if x := config.Find(learner); len(voters) == 0 || x != nil && !x.Learner ||
				x == nil && slices.Contains(config.Removed, learner) {
				return
			}
			i := slices.IndexFunc(voters, func(id protocol.MemberID) bool { return !w.Member(id).Up })
			if i < 0 {
				i = w.Pick(len(voters))
			}
			askChange(w, m, []protocol.Change{
				{Kind: protocol.AddVoter, Member: asVoter(w, learner)},
				{Kind: protocol.RemoveMember, Member: protocol.Member{ID: voters[i]}},
			})
		}
		promoteLater(w, learner)
	})
}

// drawResize shrinks the cluster, by one member or several at once, down to three members or fewer. Then it grows the
// cluster to its original size. If the remaining members hold too few rows of live bodies, they make whole copies
// first.
func drawResize(w *World, config *protocol.Config) (changes []protocol.Change) {
	voters := config.Voters()
	if len(voters) <= 3 {
		w.growing = true
	} else if len(voters) >= w.Set.Nodes {
		w.growing = false
	}
	if w.growing {
		for i := range config.Members {
			if m := &config.Members[i]; m.Learner {
				return []protocol.Change{{Kind: protocol.AddVoter, Member: asVoter(w, m.ID)}}
			}
		}
		if len(w.Members) < w.Set.Nodes+maxAdded {
			return []protocol.Change{{Kind: protocol.AddLearner, Member: AddMember(w)}}
		}
		w.growing = false
	}
	least := 1
	if w.Set.Faults[faultDamage] > 0 {
		least = leastDamaged
	}
	leave := len(voters) - 1 - w.Pick(3)
	if leave < 1 || w.Chance(0.5) {
		leave = 1
	}
	for range min(leave, len(voters)-least) {
		i := w.Pick(len(voters))
		changes = append(changes, protocol.Change{Kind: protocol.RemoveMember, Member: protocol.Member{ID: voters[i]}})
		voters = slices.Delete(voters, i, i+1)
	}
	return changes
}

// askChange asks a member for changes. Where bodies may have to be reconstructed first, the operator waits longer.
func askChange(w *World, m *node.Member, changes []protocol.Change) {
	patience := w.Between(w.Set.Election, 20*w.Set.Election)
	if w.Set.Resize {
		patience = 30 * w.Set.Election
	}
	w.Tracef("FAULT %s is asked for %s", m.ID, judge.DescribeChanges(changes))
	w.Ask(m, cluster.Operation{Kind: cluster.ChangeMembers, Changes: changes}, patience, func(error) {})
}

// memberToAsk returns the member that an operator asks: mostly the leader, often a former leader that does not know
// its successor.
func memberToAsk(w *World) *node.Member {
	if old := w.UpAnd(func(m *node.Member) bool { return m.LeadsAny() && m.Replaced() }); len(old) > 0 && w.Chance(0.5) {
		return old[w.Among(len(old))]
	}
	if m := w.Leader(); m != nil && !w.Chance(0.3) {
		return m
	}
	return w.victim()
}

// asVoter returns a member that was added as a learner as operators name it when they promote it. The leader may not
// know that it was added.
func asVoter(w *World, id protocol.MemberID) protocol.Member {
	return protocol.Member{ID: id, Zone: w.Member(id).Zone}
}

// AddMember starts a process with an empty disk. It waits until a message of its cluster arrives.
func AddMember(w *World) protocol.Member {
	m := node.NewMember(&w.Environment, protocol.MemberID(len(w.Members)+1))
	m.Join, m.Zone = true, someZone(w)
	w.Members = append(w.Members, m)
	if w.Set.Chaos > 0 && w.Chance(0.15) { // scenarios draw nothing
		w.Tracef("FAULT %s will never come", m.ID)
		m.Gone = true
		return protocol.Member{ID: m.ID, PeerURLs: m.URLs(), Zone: m.Zone}
	}
	w.StartLater(m, w.Between(0, w.Set.Election))
	return protocol.Member{ID: m.ID, PeerURLs: m.URLs(), Zone: m.Zone}
}
