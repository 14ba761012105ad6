package fit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/quorum"
)

// Names of protocols, and of the setting of raft that is not among the common ones.
const (
	raft, craft, niagara, lcr = "raft", "craft", "niagara", "lcr"
	multiPaxos, iss           = "multi-paxos", "iss"
	lanes                     = "lanes"
)

// shape is what the model compares of a profile. The protocol's name follows from the rest, as a status has it.
type shape struct {
	protocol  string
	code      bool // bodies are coded
	k         int  // setting code-k; 0: its default
	lanes     bool
	instances int
	spread    bool // members share the leaders of the instances
}

// shapeOf is that of the active profile.
func shapeOf(v *View) shape {
	values := v.Profile.Values
	text, _ := values.Get(lanes)
	s := shape{protocol: v.Protocol, lanes: text == "true", instances: max(1, v.Instances)}
	if s.code = common.Placement.In(values) == protocol.PlacementCode; s.code {
		s.k = common.CodeK.In(values)
	}
	s.spread = s.instances > 1 && common.Leaders.In(values).Apart()
	return s
}

// led reports whether one member leads.
func (s *shape) led() bool { return s.protocol != iss && !s.spread }

// raftlike reports whether the core is that of raft, so that a tune is enough to change to another such shape.
func (s *shape) raftlike() bool { return s.protocol != iss && s.protocol != multiPaxos }

// regrouped is the shape with its leaders together. A switch to niagara turns lanes off.
func (s shape) regrouped() shape {
	s.spread, s.lanes = false, s.lanes && s.protocol != niagara
	return s
}

// leads reports whether a member, by its place among the voters, leads an instance or a segment.
func (s *shape) leads(i, leader int) bool {
	switch {
	case s.protocol == iss:
		return true
	case s.spread:
		return i < s.instances
	}
	return i == leader
}

// fragments is how many fragments of a body make it whole, with this many voters and this many that answer
// (docs/internals/craft.md, 2.4).
func (s *shape) fragments(voters, live int) int {
	if !s.code {
		return 1
	}
	quorum := voters/2 + 1
	k := quorum - 1
	if s.k > 0 {
		k = min(s.k, quorum)
	}
	return max(1, min(k, live-(voters-quorum)))
}

// key names the shape in setting fit-avoid.
func (s *shape) key() string {
	key := s.protocol
	if s.code && s.protocol != craft {
		key += "+code"
	}
	if s.k > 0 {
		key += fmt.Sprintf("+k%d", s.k)
	}
	if s.lanes && s.protocol != lcr {
		key += "+lanes"
	}
	if s.spread {
		key += "+spread"
	}
	if s.instances > 1 {
		key += fmt.Sprintf("+%d", s.instances)
	}
	return key
}

// parseShape reads what key writes.
func parseShape(key string) (s shape, ok bool) {
	words := strings.Split(key, "+")
	s = shape{protocol: words[0], instances: 1, code: words[0] == craft, lanes: words[0] == lcr}
	if !slices.Contains([]string{raft, craft, lcr, niagara, multiPaxos, iss}, s.protocol) {
		return s, false
	}
	for _, word := range words[1:] {
		var err error
		number, isK := strings.CutPrefix(word, "k")
		switch {
		case word == "code":
			s.code = true
		case word == lanes:
			s.lanes = true
		case word == string(protocol.LeadersSpread):
			s.spread = true
		case isK:
			s.k, err = strconv.Atoi(number)
		default:
			s.instances, err = strconv.Atoi(word)
		}
		if err != nil {
			return s, false
		}
	}
	return s, s.key() == key
}

// settings are those that a switch to the shape needs from another one, see [Candidate.Settings]. Raft's shapes keep
// the placement where the name does not say it.
func (s *shape) settings(from *shape) map[string]string {
	set := map[string]string{}
	kept := s.protocol == craft || from.raftlike() && from.code
	if s.code != kept && (s.protocol == niagara || s.protocol == lcr) {
		set[common.Placement.Name] = string(placement(s.code))
	}
	if s.code && (s.k != from.k || s.k > 0 && !from.code) {
		set[common.CodeK.Name] = strconv.Itoa(s.k) // 0 is the default
	}
	if s.protocol == niagara {
		set[common.Leaders.Name] = string(protocol.LeadersTogether)
		if s.spread {
			set[common.Leaders.Name] = string(protocol.LeadersSpread)
		}
		if s.instances != from.instances {
			set[common.Instances.Name] = strconv.Itoa(s.instances)
		}
	}
	if len(set) == 0 {
		return nil
	}
	return set
}

func placement(code bool) protocol.Placement {
	if code {
		return protocol.PlacementCode
	}
	return protocol.PlacementCopy
}

// shapes are those that are compared, the active one first.
func shapes(v *View, now shape) []shape {
	together, spread := common.DefaultInstances, max(common.DefaultInstances, len(v.Members))
	if now.instances > 1 {
		together, spread = now.instances, max(now.instances, len(v.Members))
	}
	spread = min(spread, protocol.MaxInstances)
	all := []shape{now, now.regrouped(), {protocol: raft, instances: 1}}
	cuts := cuts(len(v.Members), &now)
	for _, k := range cuts {
		all = append(all, shape{protocol: craft, code: true, k: k, instances: 1})
	}
	all = append(all, shape{protocol: niagara, instances: together},
		shape{protocol: niagara, instances: spread, spread: true})
	for _, k := range cuts {
		all = append(all, shape{protocol: niagara, instances: spread, spread: true, code: true, k: k})
	}
	all = append(all, shape{protocol: lcr, lanes: true, instances: 1}, shape{protocol: multiPaxos, instances: 1},
		shape{protocol: iss, instances: 1})
	out := all[:1]
	for _, s := range all[1:] {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// cuts are the values of setting code-k that are compared: the active one, the default, and the most. With that each
// fragment is smaller, and all members have to acknowledge it.
func cuts(members int, now *shape) []int {
	most := members/2 + 1
	all := []int{0, most}
	if members == 3 {
		all = all[1:] // by default three members cut nothing
	}
	if now.code && !slices.Contains(all, now.k) {
		all = append([]int{now.k}, all...)
	}
	return all
}

// excluded says why a shape is not possible or not allowed now; "": it is. The active one is never excluded.
func (s *shape) excluded(v *View, l *load, now *shape) string {
	values := v.Profile.Values
	quorums := quorum.Setting.In(values)
	level, ailing := l.level(), l.ailing()
	switch {
	case *s == *now:
		return ""
	case !quorums.Majority() && s.raftlike():
		return fmt.Sprintf("the quorums are %s, and it has majorities", quorums)
	case common.LeaseReads.In(values) && !s.raftlike():
		return "lease reads are on, and it has none"
	case s.code && !now.code && len(v.Members) < 5 && level < 3:
		return fmt.Sprintf("it needs 5 members, or 3 that answer alike: %d do", level)
	case s.lanes && l.blind() == 0:
		return "no command is blind"
	case !s.led() && ailing != nil:
		return "it waits for every member, and " + ailing.problem()
	case !s.led() && len(v.Members) == 1:
		return "there is one member"
	}
	return ""
}

// level is how many members answer alike: the leader, and the most others whose round trips to it, each with a sync,
// are at most levelTimes the shortest of them.
func (l *load) level() int {
	var times []float64
	for i := range l.members {
		m := &l.members[i]
		if i == l.leader || l.leader < 0 || !m.Present || !m.reported || m.slow != "" {
			continue
		}
		if t := m.sync + m.trip[l.leader]; !math.IsNaN(t) {
			times = append(times, max(t, levelLeast.Seconds()))
		}
	}
	slices.Sort(times)
	most := 0
	for i, first := range times {
		n := 0
		for _, t := range times[i:] {
			if t <= levelTimes*first {
				n++
			}
		}
		most = max(most, n)
	}
	return 1 + most
}

// blind is the share of blind commands of members that do not lead.
func (l *load) blind() float64 {
	n, all := 0.0, 0.0
	for i := range l.members {
		m := &l.members[i]
		all += m.rate
		if i != l.leader {
			n += m.rate * m.blind
		}
	}
	return share(n, all)
}

// Describe returns the candidate as people read it. leader is the name of its leader; "": without it.
func (c *Candidate) Describe(leader string) string {
	var b strings.Builder
	b.WriteString(c.Protocol)
	for _, name := range []string{common.Placement.Name, common.CodeK.Name, common.Instances.Name, common.Leaders.Name} {
		if text, ok := c.Settings[name]; ok {
			fmt.Fprintf(&b, " %s=%s", name, text)
		}
	}
	if leader != "" {
		fmt.Fprintf(&b, " led by %s", leader)
	}
	return b.String()
}
