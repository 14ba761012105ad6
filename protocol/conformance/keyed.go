package conformance

import (
	"slices"

	"github.com/braidlog/braid/protocol"
)

// If commands are ordered only by common keys, two members' logs differ. They must agree on the order of the commands
// of each key. A command without keys belongs to all.

// keyed is the agreed order of each key.
type keyed struct {
	keys int // 0: there is one order of all commands
	// of has the keys of each proposal; nil: all keys.
	of map[protocol.ProposalID][]uint64
	// order has the commands of each key, in the order of their first execution on any member. So a command that was
	// proposed after another one was executed comes after it.
	order [][]protocol.ProposalID
	// snapshots are the places of members in the orders of all keys, as of snapshots.
	snapshots map[place][]int
	reads     []keyedRead
}

// place is the place of a snapshot: its base, and its derived state.
type place struct {
	index  protocol.Index
	digest uint32
}

func placeOf(b *protocol.Base) place { return place{b.Index, protocol.Digest(b.Section.Data)} }

// keyedRead is a read that was served: when the member has applied its index, it must have these places.
type keyedRead struct {
	of    *Node
	index protocol.Index
	least []int
}

func (k *keyed) init(keys int) {
	*k = keyed{keys: keys, of: map[protocol.ProposalID][]uint64{}, order: make([][]protocol.ProposalID, keys),
		snapshots: map[place][]int{}}
}

// draw chooses the keys of a proposal. The choice is not random.
func (k *keyed) draw(e *protocol.Entry) protocol.ProposeOptions {
	if keys, known := k.of[e.ID]; known {
		return protocol.ProposeOptions{Keys: keys}
	}
	var keys []uint64
	for at := e.ID.Seq * 2654435761 >> 7; len(keys) < int(at%4); at >>= 3 {
		keys = append(keys, at>>2%uint64(k.keys))
	}
	k.of[e.ID] = keys
	return protocol.ProposeOptions{Keys: keys}
}

// places are the numbers of executed commands of each key.
func (k *keyed) places() []int {
	out := make([]int, k.keys)
	for i := range out {
		out[i] = len(k.order[i])
	}
	return out
}

// startKeyed sets a member's places to those of its snapshot.
func (j *judge) startKeyed(n *Node, base *protocol.Base) {
	if j.keyed.keys == 0 {
		return
	}
	at := j.keyed.snapshots[placeOf(base)]
	if at == nil && base.Index > 0 {
		j.t.Fatalf("member %s goes on from a snapshot at %d that nobody made", n.ID, base.Index)
	}
	n.places = make([]int, j.keyed.keys)
	copy(n.places, at)
}

// committedKeyed checks one entry of a member's log.
func (j *judge) committedKeyed(n *Node, batches []protocol.Entry) {
	k := &j.keyed
	for i := range batches {
		id := batches[i].ID
		n.took[id] = true
		keys := slices.Clone(k.of[id])
		if len(keys) == 0 {
			for key := range k.keys {
				keys = append(keys, uint64(key))
			}
		}
		slices.Sort(keys)
		for _, key := range slices.Compact(keys) {
			j.executes(n, int(key), id)
		}
	}
}

func (j *judge) executes(n *Node, key int, id protocol.ProposalID) {
	order, at := &j.keyed.order[key], n.places[key]
	if at == len(*order) {
		*order = append(*order, id)
	}
	if (*order)[at] != id {
		j.t.Fatalf("member %s executes %v as command %d of key %d, another executed %v there", n.ID, id, at,
			key, (*order)[at])
	}
	n.places[key]++
}

// servedKeyed: a read may be served.
func (j *judge) servedKeyed(n *Node, r protocol.ReadIndex, least []int) {
	j.keyed.reads = append(j.keyed.reads, keyedRead{n, r.Index, least})
	j.judgeReads()
}

// judgeReads checks the reads of members that have applied enough.
func (j *judge) judgeReads() {
	j.keyed.reads = slices.DeleteFunc(j.keyed.reads, func(r keyedRead) bool {
		if r.of.Core == nil {
			return true
		}
		if r.of.Applied < r.index {
			return false
		}
		for key, least := range r.least {
			if r.of.places[key] < least {
				j.t.Fatalf("member %s may read at %d, with %d commands of key %d; %d were executed when it asked", r.of.ID, r.index,
					r.of.places[key], key, least)
			}
		}
		return true
	})
}

// has reports whether a member has executed a proposal.
func (net *Net) has(n *Node, e protocol.Entry) bool {
	if net.Keyed > 0 {
		return n.took[e.ID]
	}
	return net.Took(e) != 0 && n.Applied >= net.Took(e)
}
