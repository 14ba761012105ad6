package epochs

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// outline is the part of an epoch on which all members must agree.
type outline struct {
	number      uint64
	first, last protocol.Index
	voters      []protocol.MemberID
	leaders     []protocol.MemberID
	slots       []protocol.MemberID // the leader of each slot
	lead        protocol.MemberID
	since       uint64
}

func outlineOf(h *History) (o outline) {
	e := h.Epoch()
	o = outline{number: e.Number, first: e.First, last: e.Last, voters: e.Voters, leaders: e.Leaders}
	for i := e.First; i <= e.Last; i++ {
		o.slots = append(o.slots, e.Leaders[e.Place(i)])
	}
	o.lead, o.since = h.Lead()
	return o
}

// reference is a second implementation of the rules: epoch by epoch, over a whole log, with numbers of epochs in
// place of counters.
type reference struct {
	set    Settings
	slots  int
	voters []protocol.MemberID
	known  map[protocol.MemberID]*standing
}

type standing struct {
	suspected   uint64
	penalty     int
	bannedUntil int // the last epoch of the ban
	share       int
}

// outlines are the epochs that a log fills, and the one after them.
func (r *reference) outlines(log []protocol.Entry) (list []outline) {
	now := r.begin(outline{}, r.voters)
	for {
		list = append(list, now)
		if int(now.last) > len(log) {
			return list
		}
		now = r.begin(now, r.end(&now, log))
	}
}

// end evaluates the leaders of an epoch, and returns the next voters.
func (r *reference) end(o *outline, log []protocol.Entry) (voters []protocol.MemberID) {
	voters = r.voters
	values, had := map[protocol.MemberID][]bool{}, map[protocol.MemberID]int{}
	for n, id := range o.slots {
		e := log[int(o.first)-1+n]
		values[id] = append(values[id], e.Kind != protocol.EntryNoop)
		if e.Kind != protocol.EntryNoop && e.Kind != protocol.EntryEmpty {
			had[id]++
		}
		if e.Kind == protocol.EntryConfig {
			c, _ := protocol.DecodeConfig(e.Payload)
			voters = c.Voters()
		}
	}
	grow, shrink := false, true
	for _, id := range o.leaders {
		m, used := r.known[id], float64(had[id])/float64(len(values[id]))
		suspected := !values[id][len(values[id])-1]
		grow = grow || m.share == 4 && used >= 0.75 && !suspected
		shrink = shrink && used < 0.25
		m.judge(r.set, int(o.number), suspected, used)
		if r.set.EqualShares {
			m.share = 4
		}
	}
	if grow && 2*r.slots <= r.set.MaxSlots {
		r.slots *= 2
	} else if shrink && r.slots/2 >= r.set.MinSlots {
		r.slots /= 2
	}
	return voters
}

func (m *standing) judge(set Settings, epoch int, suspected bool, used float64) {
	switch {
	case suspected:
		m.suspected = uint64(epoch)
		if m.penalty *= 2; m.penalty < set.Ban {
			m.penalty = set.Ban
		}
		m.penalty = min(m.penalty, set.MaxBan)
		m.bannedUntil, m.share = epoch+m.penalty, 1
		return
	case used >= 0.75 && m.share < 4:
		m.share *= 2
	case used < 0.25 && m.share > 1:
		m.share /= 2
	}
	if m.penalty /= 2; m.penalty < set.Ban {
		m.penalty = 0
	}
	m.bannedUntil = min(m.bannedUntil, epoch+m.penalty)
}

func (r *reference) begin(before outline, voters []protocol.MemberID) (o outline) {
	o = outline{number: before.number + 1, first: before.last + 1, voters: voters, since: before.since}
	known := map[protocol.MemberID]*standing{}
	for _, id := range voters {
		if known[id] = r.known[id]; known[id] == nil {
			known[id] = &standing{share: 1}
			if r.set.EqualShares {
				known[id].share = 4
			}
		}
	}
	r.known, r.voters = known, voters
	o.leaders = r.elect(int(o.number))
	for _, id := range o.leaders { // ascending
		if o.lead == 0 || known[id].penalty < known[o.lead].penalty {
			o.lead = id
		}
	}
	if o.lead != before.lead {
		o.since = o.number
	}
	var shares []uint8
	for _, id := range o.leaders {
		shares = append(shares, uint8(known[id].share))
	}
	for range r.slots / 4 {
		for _, at := range spread(shares) {
			o.slots = append(o.slots, o.leaders[at])
		}
	}
	o.last = before.last + protocol.Index(len(o.slots))
	return o
}

func (r *reference) elect(epoch int) (leaders []protocol.MemberID) {
	leaders = slices.Clone(r.voters)
	if p := r.set.Policy; p == Blacklist || p == Combined {
		list := slices.Clone(r.voters)
		slices.SortFunc(list, func(a, b protocol.MemberID) int {
			return cmp.Or(cmp.Compare(r.known[b].suspected, r.known[a].suspected), cmp.Compare(a, b))
		})
		for _, id := range list[:(len(list)-1)/2] {
			if last := int(r.known[id].suspected); last > 0 && epoch <= last+r.set.MaxBan {
				leaders = slices.DeleteFunc(leaders, func(other protocol.MemberID) bool { return other == id })
			}
		}
	}
	if p := r.set.Policy; p == Simple || p == Blacklist {
		return leaders
	}
	for {
		free := slices.DeleteFunc(slices.Clone(leaders),
			func(id protocol.MemberID) bool { return r.known[id].bannedUntil >= epoch })
		if len(free) > 0 {
			return free
		}
		for _, id := range leaders {
			r.known[id].bannedUntil--
		}
	}
}

// The behaviors of leaders in an epoch.
const (
	dead      = iota // nothing
	revoked          // values, but none at the end
	idle             // an empty value at the end
	few              // some values, and the last one
	full             // a value in each slot
	behaviors        // the number of behaviors
)

// randomLog fills some epochs with an entry for each slot, including no-ops.
func randomLog(rng *rand.Rand, set Settings, voters []protocol.MemberID, epochs int) (log []protocol.Entry) {
	h, pool := New(set, configOf(voters, nil)), append(randomIDs(rng, 3), voters...)
	slices.Sort(pool)
	pool = slices.Compact(pool)
	doing := map[protocol.MemberID]int{}
	for range epochs {
		e := h.Epoch()
		for i := e.First; i <= e.Last; i++ {
			id := e.Leaders[e.Place(i)]
			if segment := e.SegmentOf(i); i == segment.First() && rng.IntN(3) == 0 {
				doing[id] = rng.IntN(behaviors)
			}
			entry := randomEntry(rng, e.SegmentOf(i), i, doing[id], pool)
			h.Apply(&entry)
			log = append(log, entry)
		}
		h.Pass(e.Last)
	}
	return log
}

func randomEntry(rng *rand.Rand, s Segment, i protocol.Index, doing int, pool []protocol.MemberID) (e protocol.Entry) {
	e = protocol.Entry{Index: i, Kind: protocol.EntryNoop}
	switch last := i == s.Last(); {
	case doing == dead || doing == revoked && last:
	case doing == idle && last:
		e.Kind = protocol.EntryEmpty
	case doing != full && !last && rng.IntN(3) > 0:
	case rng.IntN(15) == 0:
		some := slices.DeleteFunc(slices.Clone(pool), func(protocol.MemberID) bool { return rng.IntN(3) == 0 })
		if len(some) > 0 {
			voters := 1 + rng.IntN(len(some))
			c := configOf(some[:voters], some[voters:])
			if rng.IntN(2) == 0 {
				c.Members[rng.IntN(len(c.Members))].Zone = "zone"
			}
			e.Kind, e.Payload = protocol.EntryConfig, protocol.EncodeConfig(c)
		}
	default:
		e.Kind = []protocol.EntryKind{protocol.EntryBatch, protocol.EntryGroup, protocol.EntryBatch}[rng.IntN(3)]
	}
	return e
}

func randomSettings(rng *rand.Rand) Settings {
	s := Settings{MinSlots: 4 << rng.IntN(2), Policy: Policy(rng.IntN(int(policies))), Ban: 1 + rng.IntN(3)}
	s.MaxSlots, s.MaxBan = s.MinSlots<<rng.IntN(3), s.Ban+rng.IntN(12)
	s.EqualShares = rng.IntN(3) == 0
	return s
}

// The history agrees with the reference on random logs.
func TestReference(t *testing.T) {
	suspected, changed, adapted := 0, 0, 0
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 6))
		set, voters := randomSettings(rng), randomIDs(rng, 1+rng.IntN(6))
		log := randomLog(rng, set, voters, 30)
		r := reference{set: set, slots: set.MinSlots, voters: voters}
		h := New(set, configOf(voters, nil))
		want := r.outlines(log)
		require.Len(t, want, 31)
		for n := range want {
			h.Pass(want[n].first - 1)
			require.NoError(t, h.Check())
			require.Equal(t, want[n], outlineOf(h), "seed %d", seed)
			for i := want[n].first; i <= want[n].last && n < 30; i++ {
				h.Apply(&log[i-1])
			}
			if n > 0 {
				suspected += len(want[n].voters) - len(want[n].leaders)
				changed += bitOf(fmt.Sprint(want[n].voters) != fmt.Sprint(want[n-1].voters))
				adapted += bitOf(len(want[n].slots)*len(want[n-1].leaders) != len(want[n-1].slots)*len(want[n].leaders))
			}
		}
	}
	require.Greater(t, min(suspected, changed, adapted), 300, "%d did not lead, %d changes, %d lengths", suspected,
		changed, adapted)
}

func bitOf(b bool) int {
	if b {
		return 1
	}
	return 0
}
