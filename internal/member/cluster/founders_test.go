package cluster

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// founding is processes 1 to 4, each of which is started as a founder with a list of members, itself among them.
type founding struct {
	lists [4]uint // bit i-1 is member i
	links [4]uint // the processes with which it has a link, itself among them
}

// begin makes all links that the rules allow while no log has a lineage. told: founders tell their lists.
func (f *founding) begin(lists [4]uint, told bool) {
	f.lists = lists
	var members [4]*Handshakes
	var configs [4][]protocol.Config
	for i, list := range lists {
		var c protocol.Config
		for m := range protocol.MemberID(4) {
			if list>>m&1 == 1 {
				c.Members = append(c.Members, protocol.Member{ID: m + 1})
			}
		}
		own := OwnIdentity{Member: protocol.MemberID(i + 1), Log: protocol.LogID{byte(i + 1)}, Incarnation: 1,
			Marks: []uint64{1}, Born: true}
		if told {
			own.Founders = Founders(c.Members)
		}
		h := NewHandshakes(NewRegister(own), Birth{}, &saver{})
		members[i], configs[i] = &h, []protocol.Config{c}
		f.links[i] = 1 << i
	}
	for from, a := range members {
		for to, b := range members {
			if from == to || lists[from]>>to&1 == 0 || b.Admit(configs[to], protocol.MemberID(from+1)) != 0 {
				continue // it does not dial that one, or is not let in
			}
			if a.Relate(protocol.MemberID(to+1), 0, b.Founders()) == nil &&
				b.Relate(protocol.MemberID(from+1), 0, a.Founders()) == nil {
				f.links[from] |= 1 << to
				f.links[to] |= 1 << from
			}
		}
	}
}

// decides reports whether some processes can decide a log that one of them leads.
func (f *founding) decides(leader int, quorum uint) bool {
	list := f.lists[leader]
	return quorum>>leader&1 == 1 && quorum&^(list&f.links[leader]) == 0 && 2*bits.OnesCount(quorum) > bits.OnesCount(list)
}

// joined reports whether there may be two logs, and a link from a process that decides one of them to one that decides
// the other one.
func (f *founding) joined() bool {
	for a := range 4 {
		for b := range a {
			for qa := uint(1); qa < 16; qa++ {
				for qb := uint(1); qb < 16 && f.decides(a, qa); qb++ {
					if qa&qb == 0 && f.decides(b, qb) && f.linked(qa, qb) {
						return true
					}
				}
			}
		}
	}
	return false
}

func (f *founding) linked(qa, qb uint) bool {
	for i, links := range f.links {
		if qa>>i&1 == 1 && links&qb != 0 {
			return true
		}
	}
	return false
}

// TestFoundersOfTwoLogsHaveNoLinks, whichever lists of members four processes are started with: where two logs may be
// decided before either has a lineage, no process of one has a link with a process of the other. Without the comparison
// of lists there are such links.
func TestFoundersOfTwoLogsHaveNoLinks(t *testing.T) {
	joined := map[bool]int{}
	for all := range uint(1 << 16) {
		lists := [4]uint{all & 15, all >> 4 & 15, all >> 8 & 15, all >> 12}
		if lists[0]&1 == 0 || lists[1]&2 == 0 || lists[2]&4 == 0 || lists[3]&8 == 0 {
			continue // each is in its own list
		}
		for _, told := range []bool{true, false} {
			var f founding
			if f.begin(lists, told); f.joined() {
				joined[told]++
			}
		}
	}
	require.Zero(t, joined[true])
	require.NotZero(t, joined[false])
}

// TestFoundersAreCompared: members that joined, and those of earlier versions, tell none.
func TestFoundersAreCompared(t *testing.T) {
	three := []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3, PeerURLs: []string{"http://c:1"}}}
	require.Equal(t, Founders(three), Founders([]protocol.Member{{ID: 3}, {ID: 2}, {ID: 1}, {ID: 1}}),
		"in any order, at any address")
	require.NotEqual(t, Founders(three), Founders(three[:2]))
	learns := []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3, Learner: true}}
	require.NotEqual(t, Founders(three), Founders(learns), "other voters")
	require.NotEqual(t, Founders(three[:2]), Founders(learns))
	require.Equal(t, uint64(0xda2bfb225e0d1f05), Founders(three), "it is in directories")
	h, disk := handshakesOf(1)
	require.NoError(t, h.Relate(2, 0, Founders(three)), "it joined")
	h.register.own.Founders = Founders(three)
	require.NoError(t, h.Relate(2, 0, Founders(three)))
	require.NoError(t, h.Relate(2, 0, 0))
	var other *FoundersError
	require.ErrorAs(t, h.Relate(3, 5, Founders(three[:2])), &other)
	require.Equal(t, protocol.MemberID(3), other.Member)
	require.Zero(t, h.Lineage(), "nothing is taken over")
	require.NoError(t, disk.failed)
}
