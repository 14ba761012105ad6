package quorum

import "github.com/braidlog/braid/protocol"

// Size is the number of votes that decide among n voters.
func Size(n int) int { return n/2 + 1 }

// Set is a set of voters that decides: a majority of Incoming and, while joint, a majority of Outgoing too.
type Set struct {
	Incoming []protocol.MemberID
	// Outgoing is empty unless the configuration is joint.
	Outgoing []protocol.MemberID
	// Zones has the zone of each voter in Incoming; nil: none has one. Protocols with quorums by zones have no joint
	// configurations.
	Zones []string
	// Need is the number of voters of each half that decide; 0: a majority.
	Need int
	// Grid, if there is one, replaces Need.
	Grid Grid
	// columns has the column of each voter in Incoming, where that depends on Zones.
	columns []uint8
}

// Voters are the voters of a configuration.
type Voters struct {
	IDs []protocol.MemberID // ascending
	// Zones has the zone of each; nil: none has one.
	Zones []string
}

// VotersOf returns the voters of a configuration.
func VotersOf(c *protocol.Config) Voters { return Voters{c.Voters(), ZonesOf(c)} }

// ZonesOf returns the zone of each voter of a configuration, in the order of their ids; nil if none has one.
func ZonesOf(c *protocol.Config) []string {
	var zones []string
	voters := 0
	for i := range c.Members {
		m := &c.Members[i]
		if m.Learner {
			continue
		}
		if voters++; m.Zone == "" && zones == nil {
			continue
		}
		for len(zones) < voters-1 {
			zones = append(zones, "")
		}
		zones = append(zones, m.Zone)
	}
	return zones
}

// Set returns the set of these voters.
func (v Voters) Set() Set { return Set{Incoming: v.IDs, Zones: v.Zones} }

// need is the number of n voters that decide.
func (s Set) need(n int) int {
	if s.Need > 0 {
		return s.Need
	}
	return Size(n)
}

// Of returns the set that decides under a configuration.
func Of(c *protocol.Config) Set {
	return Set{Incoming: c.Voters(), Outgoing: c.Outgoing, Zones: ZonesOf(c)}
}

// Has reports whether id is in either half.
func (s Set) Has(id protocol.MemberID) bool { return has(s.Incoming, id) || has(s.Outgoing, id) }

func has(ids []protocol.MemberID, id protocol.MemberID) bool {
	for _, v := range ids {
		if v == id {
			return true
		}
	}
	return false
}

// Agreed returns the highest value that the set has reached, where reached is the value of one voter: an index that
// is stored, a round that is confirmed, a time of contact. It is 0 for a set without voters, which never agrees on
// anything.
func (s Set) Agreed(reached func(protocol.MemberID) uint64) uint64 {
	v := s.agreed(s.Incoming, s.columns, reached)
	if len(s.Outgoing) > 0 {
		v = min(v, s.agreed(s.Outgoing, nil, reached))
	}
	return v
}

func (s Set) agreed(ids []protocol.MemberID, columns []uint8, reached func(protocol.MemberID) uint64) uint64 {
	if s.Grid.on() {
		return s.Grid.agreed(ids, columns, reached)
	}
	return agreed(ids, s.need(len(ids)), reached)
}

// agreed sorts in a fixed array: clusters are small, and this runs for every answer.
func agreed(ids []protocol.MemberID, need int, reached func(protocol.MemberID) uint64) uint64 {
	if need > len(ids) {
		return 0
	}
	var fixed [16]uint64
	sorted := fixed[:0]
	for _, id := range ids {
		sorted = insert(sorted, reached(id))
	}
	return highest(sorted, need)
}

// insert adds a value to an ascending list.
func insert(sorted []uint64, v uint64) []uint64 {
	sorted = append(sorted, v)
	i := len(sorted) - 1
	for ; i > 0 && sorted[i-1] > v; i-- {
		sorted[i] = sorted[i-1]
	}
	sorted[i] = v
	return sorted
}

// highest is the value that a given number of values in an ascending list have reached.
func highest(sorted []uint64, need int) uint64 { return sorted[len(sorted)-need] }

// Answer is a voter's answer to a vote.
type Answer uint8

// Answers.
const (
	Missing Answer = iota
	Granted
	Refused
)

// Result is the result of a vote so far.
type Result uint8

// Results.
const (
	Open Result = iota
	Won
	Lost
)

func (r Result) String() string { return [...]string{"open", "won", "lost"}[r] }

// Vote counts the answers. A vote is lost as soon as it cannot be won any more.
func (s Set) Vote(answer func(protocol.MemberID) Answer) Result {
	in := s.count(s.Incoming, s.columns, answer)
	if len(s.Outgoing) == 0 {
		return in
	}
	out := s.count(s.Outgoing, nil, answer)
	switch {
	case in == Lost || out == Lost:
		return Lost
	case in == Won && out == Won:
		return Won
	}
	return Open
}

// Covered reports whether every quorum includes a voter for which is returns true.
func (s Set) Covered(is func(protocol.MemberID) bool) bool {
	return s.Vote(func(id protocol.MemberID) Answer {
		if is(id) {
			return Refused
		}
		return Granted
	}) == Lost
}

// Fewest is no more than the number of voters for which is returns true in any quorum.
func (s Set) Fewest(is func(protocol.MemberID) bool) int {
	if !s.Covered(is) {
		return 0
	}
	fewest := 1
	if s.Grid.on() {
		return fewest
	}
	for _, half := range [][]protocol.MemberID{s.Incoming, s.Outgoing} {
		include := s.need(len(half)) - len(half)
		for _, id := range half {
			if is(id) {
				include++
			}
		}
		if len(half) > 0 {
			fewest = max(fewest, include)
		}
	}
	return fewest
}

func (s Set) count(ids []protocol.MemberID, columns []uint8, answer func(protocol.MemberID) Answer) Result {
	if s.Grid.on() {
		return s.Grid.count(ids, columns, answer)
	}
	return count(ids, s.need(len(ids)), answer)
}

func count(ids []protocol.MemberID, need int, answer func(protocol.MemberID) Answer) Result {
	var granted, missing int
	for _, id := range ids {
		switch answer(id) {
		case Granted:
			granted++
		case Missing:
			missing++
		}
	}
	switch {
	case granted >= need:
		return Won
	case granted+missing < need:
		return Lost
	}
	return Open
}
