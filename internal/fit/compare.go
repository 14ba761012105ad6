package fit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
)

// option is a candidate with what the model says of it.
type option struct {
	Cost
	shape  shape
	leader int     // its place among the voters, -1: several lead, or none is known
	gain   float64 // factor on today's throughput
}

// key tells options apart: of leaders only whether it is the present one, as which other one is best may change from
// second to second.
func (o *option) key(present protocol.MemberID) string {
	if o.Leader != 0 && o.Leader != present {
		return o.shape.key() + " by another"
	}
	return o.shape.key()
}

// compare lists all candidates with their costs, the active profile first, then by throughput. favored is the leader
// that was wished for a second ago, 0 if none was.
func compare(v *View, l *load, learned []float64, favored protocol.MemberID) []option {
	now := shapeOf(v)
	m := newModel(l, now, learned)
	m.favored = favored
	var all []option
	for _, s := range shapes(v, now) {
		if !s.led() {
			all = append(all, m.option(v, &s, -1))
			continue
		}
		all = append(all, m.option(v, &s, l.leader))
		if s.lanes && s.protocol == niagara {
			continue // a handover is a switch to the same protocol, which would turn lanes off
		}
		if other := m.best(v, &s); other != nil {
			m.excludeFar(other, &all[0])
			all = append(all, *other)
		}
	}
	for i := range all {
		all[i].gain = share(all[i].Throughput, all[0].Throughput)
	}
	return all
}

// order puts the active profile first, and then what is not excluded, by throughput.
func order(all []option) {
	slices.SortStableFunc(all[1:], func(a, b option) int {
		if (a.Excluded == "") != (b.Excluded == "") {
			return cmp.Compare(len(a.Excluded), len(b.Excluded))
		}
		return cmp.Compare(b.Throughput, a.Throughput)
	})
}

// exclude excludes what was taken back.
func exclude(v *View, all []option) {
	text := common.FitAvoid.In(v.Profile.Values)
	for i := range all[1:] {
		o := &all[1+i]
		if left := avoids(text, o.shape.key(), v.Wall); o.Excluded == "" && left > 0 && o.shape != all[0].shape {
			o.Excluded = fmt.Sprintf("it was taken back or left: not again for %s", left)
		}
	}
}

// option is one candidate.
func (m *model) option(v *View, s *shape, leader int) option {
	o := option{shape: *s, leader: leader, Cost: Cost{Candidate: Candidate{Protocol: s.protocol,
		Settings: s.settings(&m.now)}}}
	if *s == m.now {
		o.Settings = nil
	}
	if leader >= 0 && s.led() {
		o.Leader = m.members[leader].ID
	}
	active := *s == m.now && (leader == m.leader || !s.led())
	c := m.of(s, leader)
	if s.protocol == iss && m.now.protocol != iss {
		o.Settings = epochs(c.rate / float64(len(m.members)))
	}
	if active {
		c.rate, c.latency = m.rate, share(m.inside, m.rate)
	}
	o.Throughput, o.Latency, o.Limit = c.rate, c.latency, c.limit
	switch why := s.excluded(v, m.load, &m.now); {
	case active:
	case cmp.Or(m.lacking, m.unknown, why, c.unknown) != "":
		o.exclude(cmp.Or(m.lacking, m.unknown, why, c.unknown))
	case m.rate < leastRate && m.inside < leastInside:
		o.exclude("there is too little load to compare")
	}
	return o
}

// epochs are the settings of a log that continues with iss, at this rate of each member. Epochs begin with as many
// slots as the load fills in some seconds: they double, but while they are short, members wait for their ends most of
// the time.
func epochs(rate float64) map[string]string {
	least := leastSlots
	for float64(least) < min(mostSlots, epochLasts*rate) {
		least *= 2
	}
	switch least {
	case leastSlots:
		return nil
	case mostSlots:
		return map[string]string{epochSlots: strconv.Itoa(mostSlots)}
	}
	return map[string]string{epochSlots: fmt.Sprintf("%d-%d", least, mostSlots)}
}

// leastSlots and mostSlots are the defaults of iss: slots of a leader in an epoch.
// epochLasts is for how many seconds the first ones last.
const (
	epochSlots            = "epoch-slots"
	leastSlots, mostSlots = 64, 1024
	epochLasts            = 10
)

// best is the candidate with the best leader other than the present one; nil: there is none. The favored one is the
// best if it is nearly so.
func (m *model) best(v *View, s *shape) (best *option) {
	var favored *option
	for i := range m.members {
		if i == m.leader || !m.members[i].mayLead() {
			continue
		}
		o := m.option(v, s, i)
		if o.Excluded != "" {
			continue
		}
		if best == nil || o.Throughput > best.Throughput*nearer ||
			o.Throughput > best.Throughput/nearer && m.way(i) < m.way(best.leader) {
			best = &o
		}
		if o.Leader == m.favored {
			favored = &o
		}
	}
	if favored != nil && favored.Throughput >= nearlyBest*best.Throughput {
		return favored
	}
	return best
}

// excludeFar excludes another leader if round trips are the limit and the way to it is not at most half as long.
// Otherwise leadership would alternate between two regions whose clients do not wait for answers: seen from a leader in
// one, the commands of the other take long, so that many are in progress there.
func (m *model) excludeFar(o, now *option) {
	if !now.shape.led() || m.leader < 0 || now.Limit != roundTrips || m.way(o.leader) <= m.way(m.leader)/2 {
		return
	}
	o.exclude("the way to " + m.members[o.leader].called() + " is not half as long")
}

// exclude excludes an option whose cost says nothing then.
func (o *option) exclude(why string) {
	o.Excluded, o.Throughput, o.Latency, o.Limit = why, 0, 0, ""
}

// nearer: of leaders whose throughput differs by less than this factor, the one nearest to the clients is best.
const nearer = 1.01

// effort says how much a change costs: a handover least, a seal most. Of equal ones the simpler protocol costs less,
// and one leader less than several, for whom all wait.
func (o *option) effort(now *shape, leader int) (n int) {
	switch {
	case o.shape == *now:
	case o.shape.regrouped() == now.regrouped(): // the leaders move
		n = 5
	case o.shape.raftlike() && now.raftlike():
		n = 20
	default:
		n = 40
	}
	if !o.shape.led() || o.leader != leader {
		n += 10
	}
	return n + slices.Index([]string{raft, craft, lcr, niagara, multiPaxos, iss}, o.shape.protocol)
}

// choose returns the option to wish for: the one that gains most, or one that gains nearly as much with less effort.
func choose(all []option, leader int, may func(*option) bool) *option {
	var best *option
	now, most := &all[0].shape, 0.0
	for i := range all[1:] {
		o := &all[1+i]
		if o.Excluded != "" || !may(o) {
			continue
		}
		if best == nil { // they are in the order of their throughput
			best, most = o, o.gain
		}
		if o.gain >= nearlyBest*most && o.effort(now, leader) < best.effort(now, leader) {
			best = o
		}
	}
	return best
}

// wish is the option as a wish on the active profile.
func (o *option) wish(v *View, reason string) *Wish {
	return &Wish{Candidate: o.Candidate, Version: v.Profile.Version, Gain: o.gain, Reason: reason}
}

func leaderOf(v *View) protocol.MemberID {
	if len(v.Leaders) == 0 {
		return 0
	}
	return v.Leaders[0]
}

// weigh lets a function replace what the model says.
func weigh(v *View, all []option, by func(*View, []Cost)) {
	costs := make([]Cost, len(all))
	for i := range all {
		costs[i] = all[i].Cost
	}
	by(v, costs)
	for i := range all {
		o := &all[i]
		o.Throughput, o.Excluded = costs[i].Throughput, costs[i].Excluded
		o.gain = share(o.Throughput, costs[0].Throughput)
	}
}
