package replica

import (
	"github.com/braidlog/braid/member"
)

// checkpointBytes is what a snapshot takes whose state is on the disk anyway: memberships, and
// which proposals took effect.
const checkpointBytes = 1 << 20

// DiskNeed tells how many bytes the log and the bodies of this member should find free.
func (r *Replica) DiskNeed() int64 {
	n := member.DiskNeed{
		Segment: member.SegmentBytes(r.opt.SnapshotBytes), Command: int64(r.opt.MaxCommandBytes), Snapshot: checkpointBytes,
		SpareLog: r.wal.Spare(), SpareBodies: r.bodies.store.Spare(),
	}
	return n.Bytes()
}
