package instance

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// LogKeeper decides up to where an instance's log may be cut when there is a new snapshot. The log
// back to the snapshot before it is always kept. A member that is less than a snapshot behind
// catches up from it. More is kept for members that need more and can be reached. Otherwise a
// member that is sent a snapshot would find the log cut when it has it, and would be sent one
// after another. What is kept for them is bounded in bytes. A member that is further behind gets a
// snapshot.
type LogKeeper struct {
	// Bytes bounds what is kept for members that catch up.
	Bytes  int64
	Mutant mutant.Name // keep-nothing, weave-cut-committed
	// marks are the snapshots since the log begins, ascending, with how many bytes had been
	// applied by then. The first is where the log begins. marks is empty until one is known.
	marks []logMark
}

type logMark struct {
	index protocol.Index
	bytes int64
}

// Begin says that the log now begins after an index: at start, or after another member's snapshot
// was taken. bytes is how much was applied so far, of all instances, here and in Snapshot.
func (k *LogKeeper) Begin(index protocol.Index, bytes int64) {
	k.marks = append(k.marks[:0], logMark{index, bytes})
}

// Snapshot notes a durable snapshot, and returns up to where the log may be cut. That is at most
// upTo if upTo is not 0, else at most the snapshot before this one. streaming is where a snapshot
// stands that is on its way from here to a member, 0 if there is none or if that is not known yet.
func (k *LogKeeper) Snapshot(index, upTo protocol.Index, bytes int64, st *protocol.Status,
	streaming func(protocol.MemberID) protocol.Index) protocol.Index {
	if len(k.marks) == 0 {
		k.Begin(st.First-1, 0)
	}
	cut := k.marks[len(k.marks)-1].index
	if index > cut {
		k.marks = append(k.marks, logMark{index, bytes})
	}
	if upTo > 0 {
		cut = min(upTo, k.marks[len(k.marks)-1].index)
	}
	for i := range st.Peers {
		p := &st.Peers[i]
		if !p.Active || k.Mutant == member.MutantKeepNothing {
			continue // a member that is down may be down for long
		}
		need := p.Needs
		if p.Snapshot {
			need = max(streaming(p.ID), st.First-1)
		}
		if need < cut && need+1 >= st.First && bytes-k.before(need) <= k.Bytes {
			cut = need
		}
	}
	if k.Mutant == member.MutantCutCommitted {
		cut = st.Commit
	}
	n := 0
	for n+1 < len(k.marks) && k.marks[n+1].index <= cut {
		n++
	}
	k.marks = append(k.marks[:0], k.marks[n:]...)
	return cut
}

// before is how many bytes had been applied at the last mark up to an index. That is no more than
// when the index was applied.
func (k *LogKeeper) before(index protocol.Index) int64 {
	bytes := k.marks[0].bytes
	for _, m := range k.marks {
		if m.index <= index {
			bytes = m.bytes
		}
	}
	return bytes
}

// CutAt says where an instance's log may be cut when a snapshot is durable. That is where members
// that catch up allow it, see LogKeeper. But the cut is behind damaged entries, if the newest
// snapshot stands for them.
func CutAt(keep, newest, harmed protocol.Index) protocol.Index {
	if harmed <= newest {
		return max(keep, harmed)
	}
	return keep
}
