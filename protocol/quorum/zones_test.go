package quorum

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// zoned are all systems that depend on zones, with numbers up to three.
func zoned() (all []System) {
	for _, y := range systems(3) {
		if y.grid(false).on() {
			all = append(all, y)
		}
	}
	return all
}

// assignments are all zones of n voters, among these names.
func assignments(n int, names ...string) [][]string {
	all := [][]string{nil}
	for range n {
		var next [][]string
		for _, some := range all {
			for _, name := range names {
				next = append(next, append(slices.Clone(some), name))
			}
		}
		all = next
	}
	return all
}

// dumbColumns are the columns of voters, as masks of their places.
func dumbColumns(y System, zones []string) []uint {
	var names []string
	for _, z := range zones {
		if !slices.Contains(names, z) {
			names = append(names, z)
		}
	}
	slices.Sort(names)
	columns := make([]uint, max(y.zones.Count, 1))
	if y.rows > 0 {
		columns = make([]uint, max(1, len(zones)/y.rows))
	}
	at := 0
	for i, name := range names {
		for voter, z := range zones {
			switch {
			case z != name:
			case y.rows > 0:
				columns[at%len(columns)] |= 1 << voter
				at++
			case i < len(columns):
				columns[i] |= 1 << voter
			}
		}
	}
	return columns
}

// dumbInZones reports whether a set of voters with zones elects, or decides.
func dumbInZones(y System, zones []string, mask uint, elects bool) bool {
	won, columns := 0, dumbColumns(y, zones)
	for _, c := range columns {
		of, in := 0, 0
		for i := range zones {
			of += int(c >> i & 1)
			in += int(c & mask >> i & 1)
		}
		down := of - 1
		if y.zones.Count > 0 {
			down = min(y.zones.Down, of-1)
		}
		if of > 0 && (elects && in >= of-down || !elects && in > down) {
			won++
		}
	}
	switch {
	case y.rows > 0 && elects:
		return won == len(columns)
	case y.rows > 0:
		return won > 0
	case elects:
		return won >= y.zones.Count-y.zones.Lost
	}
	return won > y.zones.Lost
}

// family is a set of sets of voters: bit m says whether the mask m is one of them.
func family(n int, is func(mask uint) bool) (f uint64) {
	for mask := range uint(1) << n {
		if is(mask) {
			f |= 1 << mask
		}
	}
	return f
}

// meets reports whether every set of one family intersects every one of another.
func meets(n int, a, b uint64) bool {
	for x := range uint(1) << n {
		for z := range uint(1) << n {
			if x&z == 0 && a>>x&1 == 1 && b>>z&1 == 1 {
				return false
			}
		}
	}
	return true
}

// Wherever voters are, the quorums are those of the dumb version, and intersect; and a system fits if there are some
// of both phases, and a zone for each of its zones.
func TestQuorumsOfAllZones(t *testing.T) {
	for n := 1; n <= 5; n++ {
		for _, zones := range assignments(n, "", "a", "b", "c") {
			for _, y := range zoned() {
				if distinct(zones) > 0 { // otherwise Zones is nil
					checkZones(t, y, zones)
				}
			}
		}
	}
}

func checkZones(t *testing.T, y System, zones []string) {
	n, what := len(zones), fmt.Sprintf("%s of %q", y, zones)
	set := Set{Incoming: voters(n), Zones: zones}
	has := func(s Set, mask uint) bool {
		return s.Vote(func(id protocol.MemberID) Answer {
			if mask>>place(id)&1 == 1 {
				return Granted
			}
			return Refused
		}) == Won
	}
	elect, decide := y.Elects(set), y.Decides(set)
	elects := family(n, func(m uint) bool { return has(elect, m) })
	decides := family(n, func(m uint) bool { return has(decide, m) })
	if elects != family(n, func(m uint) bool { return dumbInZones(y, zones, m, true) }) ||
		decides != family(n, func(m uint) bool { return dumbInZones(y, zones, m, false) }) {
		t.Fatalf("%s: other quorums than the dumb version's", what)
	}
	if !meets(n, elects, decides) {
		t.Fatalf("%s: quorums of the phases do not intersect", what)
	}
	fits := y.Fits(n, zones) == nil
	if fits && (elects == 0 || decides == 0) || y.rows > 0 && fits != (n >= y.rows) {
		t.Fatalf("%s: fits is %t", what, fits)
	}
	if count := distinct(zones); y.zones.Count > 0 &&
		fits != (n >= y.zones.Count && count == y.zones.Count && !slices.Contains(zones, "")) {
		t.Fatalf("%s: fits is %t with %d zones", what, fits, count)
	}
	if fits && n <= 4 {
		checkTolerance(t, what, y.Tolerates(n, zones), n, elects, decides)
	}
}

func checkTolerance(t *testing.T, what string, got Tolerance, n int, elects, decides uint64) {
	lost := func(f uint64) (least int) {
		least = n
		for up := range uint(1) << n {
			if f>>up&1 == 0 {
				down := 0
				for i := range n {
					down += int(^up >> i & 1)
				}
				least = min(least, down-1)
			}
		}
		return least
	}
	if got.Decide != lost(decides) || got.Heal != lost(elects) {
		t.Fatalf("%s: tolerates %d and %d, not %d and %d", what, got.Decide, got.Heal, lost(decides), lost(elects))
	}
}

// One voter is put into another zone, or joins, or leaves. Either the quorums are the same, or the change counts as
// one of voters: then a leader asks for promises again, because old promises need not intersect the new decisions, and
// Carries says whether they do.
func TestEveryChangeOfAZone(t *testing.T) {
	same, carried, asked := 0, 0, 0
	for n := 2; n <= 4; n++ {
		for _, zones := range assignments(n, "a", "b", "c") {
			for _, y := range zoned() {
				old := Voters{voters(n), zones}
				if y.Fits(n, zones) != nil {
					continue
				}
				for _, next := range changed(old) {
					if y.Fits(len(next.IDs), next.Zones) != nil {
						continue
					}
					switch is := y.Same(old, next); {
					case is:
						require.Equal(t, old, next)
						same++
					case checkCarried(t, y, old, next):
						carried++
					default:
						asked++
					}
				}
			}
		}
	}
	t.Logf("%d changes keep the quorums, %d carry decisions, %d need promises of the new quorums", same, carried, asked)
	require.Positive(t, carried)
	require.Positive(t, asked, "a leader that kept its promises would be unsafe")
}

// changed are the voters after each change of one of them, and after none.
func changed(v Voters) []Voters {
	out := []Voters{v}
	for i := range v.IDs {
		for _, z := range []string{"a", "b", "c", "d"} {
			if next := slices.Clone(v.Zones); z != next[i] {
				next[i] = z
				out = append(out, Voters{v.IDs, next})
			}
		}
		out = append(out, Voters{slices.Delete(slices.Clone(v.IDs), i, i+1), slices.Delete(slices.Clone(v.Zones), i, i+1)})
	}
	for _, z := range []string{"a", "b", "c", "d"} {
		id := protocol.MemberID(10*len(v.IDs) + 3)
		out = append(out, Voters{append(slices.Clone(v.IDs), id), append(slices.Clone(v.Zones), z)})
	}
	return out
}

func checkCarried(t *testing.T, y System, old, next Voters) bool {
	all := max(len(old.IDs), len(next.IDs))
	of := func(v Voters, elects bool) uint64 {
		return family(all, func(mask uint) bool {
			own := uint(0)
			for i, id := range v.IDs {
				own |= mask >> place(id) & 1 << i
			}
			return dumbInZones(y, v.Zones, own, elects)
		})
	}
	// Members that have left may be in a decision, and in no election.
	decides, elects, could := of(old, false), uint64(0), of(next, true)
	for mask := range uint(1) << all {
		own := uint(0)
		for _, id := range next.IDs {
			own |= mask & (1 << place(id))
		}
		if own == mask && could>>mask&1 == 1 {
			elects |= 1 << mask
		}
	}
	want := meets(all, elects, decides)
	require.Equal(t, want, y.Carries(old, next), "%s from %v to %v", y, old, next)
	return want
}

// Voters without zones are in turns, as before there were zones.
func TestZonesOfVoters(t *testing.T) {
	c := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2, Zone: "x", Learner: true}, {ID: 3}, {ID: 4}}}
	require.Nil(t, ZonesOf(&c))
	require.Equal(t, []int{0, 1, 0}, zonesBy(InZones(Zones{Count: 2}), &c))
	require.Equal(t, []int{0, 1, 2}, zonesBy(System{}, &c))
	c.Members[2].Zone = "b"
	require.Equal(t, []string{"", "b", ""}, ZonesOf(&c))
	c.Members[0].Zone, c.Members[3].Zone = "a", "b"
	require.Equal(t, []string{"a", "b", "b"}, Of(&c).Zones)
	require.Equal(t, []int{0, 1, 1}, zonesBy(System{}, &c), "leaders and reads know zones with any quorums")
	require.Equal(t, VotersOf(&c).Set(), Of(&c))
}

func zonesBy(y System, c *protocol.Config) (zones []int) {
	v := VotersOf(c)
	for _, id := range v.IDs {
		zones = append(zones, y.Zone(v, id))
	}
	return zones
}

func TestZonesThatDoNotFitSayWhy(t *testing.T) {
	for says, zones := range map[string][]string{
		"quorums zones:2/0/1: some of the voters have no zone; either all have one, or none has": {"a", "b", ""},
		"quorums zones:2/0/1: the voters are in 3 zones":                                         {"a", "b", "c"},
		"quorums zones:2/0/1: the voters are in 1 zones":                                         {"a", "a", "a"},
	} {
		require.EqualError(t, InZones(Zones{2, 0, 1}).Fits(3, zones), says)
	}
	require.NoError(t, InGrid(2).Fits(3, []string{"a", "", "c"}), "a row of a grid need not be one zone")
}
